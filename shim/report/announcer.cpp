// One series of refusals at a time, from its first to its screen.
#include "shim/report/announcer.hpp"

#include <algorithm>

#include "shim/base/clock.hpp"
#include "shim/report/screen.hpp"

namespace tidepool::report {

bool Announcer::was_shown(int device, Cause cause) const {
  return std::any_of(shown_.begin(), shown_.begin() + static_cast<std::ptrdiff_t>(shown_count_),
                     [&](const Shown& one) { return one.device == device && one.cause == cause; });
}

void Announcer::put_in_words() {
  cause_ = find_cause(failure_);
  screen_ = Text();
  write_screen(failure_, cause_, python_stack_.view(), report_path_, screen_);
}

void Announcer::refused(const Failure& failure, std::string_view python_stack, bool final) {
  std::unique_lock hold(lock_);
  if (open() && failure_.device == failure.device) {
    // The smallest is what the program cannot do without.
    if (failure.requested <= failure_.requested) {
      const Bytes first = failure_.tried_first;
      const std::uint64_t refusals = failure_.refusals;
      const MachineView machine = failure_.machine;
      failure_ = failure;
      failure_.tried_first = first;
      failure_.refusals = refusals;
      failure_.machine = machine;
      python_stack_ = python_stack;
    }
    ++failure_.refusals;
    put_in_words();
    if (final || Clock::now() >= deadline_) show(hold);
    return;
  }
  if (open() || was_shown(failure.device, find_cause(failure))) {
    counted_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  failure_ = failure;
  failure_.tried_first = failure.requested;
  python_stack_ = python_stack;
  put_in_words();
  open_.store(true, std::memory_order_relaxed);
  ++series_;
  deadline_ = Clock::now() + kPatience;
  if (final) deadline_ = Clock::now();
  asking_ = means_.start_thread != nullptr && means_.start_thread("tidepool-oom", &Announcer::watch, this);
  if (asking_ || !final) return;
  show(hold);
}

// In a thread of its own.
void Announcer::watch(void* announcer) {
  Announcer& self = *static_cast<Announcer*>(announcer);
  std::unique_lock hold(self.lock_);
  const std::uint64_t series = self.series_;
  const Failure failure = self.failure_;
  hold.unlock();
  MachineView machine;
  if (self.means_.ask_machine) self.means_.ask_machine(failure, machine);
  hold.lock();
  self.asking_ = false;
  if (self.open() && self.series_ == series) {
    self.failure_.machine = machine;
    self.put_in_words();
  }
  self.settled_.notify_all();
  const auto under_way = [&] { return self.open() && self.series_ == series; };
  while (under_way() && Clock::now() < self.deadline_) self.wait_until(self.deadline_, hold);
  if (under_way()) self.show(hold);
}

void Announcer::show(std::unique_lock<std::mutex>& hold) {
  open_.store(false, std::memory_order_relaxed);
  settled_.notify_all();
  if (was_shown(failure_.device, cause_)) {
    counted_.fetch_add(failure_.refusals, std::memory_order_relaxed);
    return;
  }
  if (shown_count_ < shown_.size()) shown_[shown_count_++] = {failure_.device, cause_};
  if (means_.show) means_.show(screen_.view());
  try {
    diagnoses_.push_back({utc_now(), failure_, cause_, std::string(screen_.view())});
  } catch (const std::bad_alloc&) {
    // The screen was shown; the report goes without.
  }
  hold.unlock();
  if (means_.shown) means_.shown();
}

void Announcer::served(int device, Bytes size) {
  Text line;
  {
    const std::lock_guard hold(lock_);
    // What is much smaller than what was refused says nothing of it: exceptions need memory too.
    if (!open() || failure_.device != device || size < failure_.requested / 9 * 4) return;
    open_.store(false, std::memory_order_relaxed);
    settled_.notify_all();
    write_recovery(failure_, cause_, size, line);
  }
  if (means_.note) means_.note(line.view());
}

void Announcer::flush(bool failed) {
  std::unique_lock hold(lock_);
  // Who holds the memory is worth a moment; and the library that is being asked ends with the process.
  const auto deadline = Clock::now() + kPatience / 2;
  while (asking_ && Clock::now() < deadline) wait_until(deadline, hold);
  if (!open()) return;
  if (failed) return show(hold);
  open_.store(false, std::memory_order_relaxed);
  settled_.notify_all();
  Text line;
  write_indifference(failure_, cause_, line);
  hold.unlock();
  if (means_.note) means_.note(line.view());
}

// By the clock of the day and in short pieces: a wait by the steady one is a symbol that musl lacks.
void Announcer::wait_until(Clock::time_point deadline, std::unique_lock<std::mutex>& hold) {
  constexpr std::chrono::milliseconds kPiece{50};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  settled_.wait_until(hold, std::chrono::system_clock::now() + std::min(left, kPiece));
}

void Announcer::flush_from_handler() {
  if (!open() || !lock_.try_lock()) return;
  if (open() && !was_shown(failure_.device, cause_) && means_.show) means_.show(screen_.view());
  open_.store(false, std::memory_order_relaxed);
  lock_.unlock();
}

std::vector<Diagnosis> Announcer::diagnoses() const {
  const std::lock_guard hold(lock_);
  return diagnoses_;
}

}  // namespace tidepool::report
