// The composition root: puts settings, router and report together.
#include "shim/runtime.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <cstdlib>
#include <ctime>

#include "shim/base/clock.hpp"
#include "shim/base/descriptor.hpp"
#include "shim/base/farewell.hpp"
#include "shim/base/frameworks.hpp"
#include "shim/base/lifecycle.hpp"
#include "shim/base/log.hpp"
#include "shim/base/own_threads.hpp"
#include "shim/peers/machine.hpp"
#include "shim/report/report.hpp"
#include "shim/trace/recorder.hpp"

// Of glibc alone: musl has no handler that is told the exit status.
#pragma weak on_exit

namespace tidepool {
namespace {

std::vector<std::string> command_line() {
  std::vector<std::string> arguments;
  const int descriptor = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return arguments;
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t size = 0; (size = ::read(descriptor, chunk.data(), chunk.size())) > 0;)
    text.append(chunk.data(), static_cast<std::size_t>(size));
  ::close(descriptor);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\0', begin);
    arguments.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return arguments;
}

std::string environment_or_empty(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

bool jax_uses_pool() {
  for (const auto& [name, value] : framework_variables_set())
    if (name == "XLA_PYTHON_CLIENT_ALLOCATOR" && value == "cuda_async") return true;
  return false;
}

Settings read_settings() {
  Settings settings = settings_from_environment();
  log::open(settings.log, settings.log_file);
  for (const SettingError& error : settings.errors)
    log::warn(error.message() + "; this process runs in passthrough");
  return settings;
}

void fill_in(const peers::Holder& from, long self, report::Holder& to) {
  to.pid = from.pid;
  to.bytes = from.bytes;
  to.in_sight = from.in_sight;
  to.is_self = from.pid == self;
  to.user = from.user;
  to.command = from.command;
  to.since = from.since;
}

void ask_machine(const report::Failure& failure, report::MachineView& view) {
  const peers::DeviceUsage usage = peers::usage_of(failure.uuid.text);
  view.state = report::MachineView::State::silent;
  view.problem = usage.problem.empty() ? usage.memory.problem : usage.problem;
  if (!usage.memory.value) return;
  view.state = report::MachineView::State::answered;
  view.total = usage.memory.value->total;
  view.used = usage.memory.value->used;
  view.lists_processes = usage.holders.value.has_value();
  view.problem = usage.holders.problem;
  if (!view.lists_processes) return;
  for (const peers::Holder& holder : *usage.holders.value)
    if (view.listed < view.holders.size())
      fill_in(holder, failure.pid, view.holders[view.listed++]);
    else
      ++view.unlisted;
}

std::optional<Bytes> free_on_machine(const char* uuid) { return peers::free_memory(uuid); }

// A screen is no line of the log: it goes to whoever watches the program.
std::function<void(std::string_view)> screen_writer(LogLevel level) {
  if (level == LogLevel::off) return {};
  return [](std::string_view screen) { write_quietly(STDERR_FILENO, screen); };
}

report::Device report_of(Device& device) {
  const Device::Requested requested = device.requested();
  report::Device out{.ordinal = device.ordinal,
                     .uuid = device.uuid,
                     .name = device.name,
                     .total = device.total,
                     .limit = {},
                     .live = requested.now,
                     .requested = device.account.served_bytes() + device.account.passed_bytes(),
                     .served = device.account.served_bytes(),
                     .requested_peak = requested.peak,
                     .reserved = device.account.reserved.now(),
                     .reserved_peak = device.account.reserved.peak(),
                     .cached = device.cached(),
                     .unbacked_reservation = device.reservation.unbacked(),
                     .lazily_backed = device.account.lazy.now(),
                     .allocations = device.account.allocations(),
                     .frees = device.account.frees(),
                     .out_of_memory = device.out_of_memory_events()};
  if (device.account.limit() != kUnlimited) out.limit = device.account.limit();
  return out;
}

}  // namespace

constinit std::atomic<Runtime*> Runtime::built{nullptr};

Runtime::Runtime(const HookSide& hooks)
    : hooks_(hooks),
      settings_(read_settings()),
      run_folder_(environment_or_empty("TIDEPOOL_RUN")),
      started_(utc_now()),
      announcer_({.ask_machine = &ask_machine,
                  .start_thread = &own_threads::start,
                  .show = screen_writer(settings_.log),
                  .note = [](std::string_view line) { log::info(line); },
                  .shown = [this] { on_out_of_memory(); }},
                 settings_.report.empty() ? "" : expand_path(settings_.report, ::getpid())),
      router_(settings_, jax_uses_pool(), announcer_, hooks.look_at_caller, &free_on_machine,
              [this] { on_out_of_memory(); }) {}

namespace {

// pthread_cancel unwinds through our frames with the libgcc of the system, and ends the process if ours,
// linked statically, has never unwound anything: its register table is filled by its first walk.
void prepare_unwinder() {
  _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_NORMAL_STOP; }, nullptr);
}

}  // namespace

Runtime* Runtime::create(const HookSide& hooks) {
  prepare_unwinder();
  std::unique_ptr<Runtime> runtime(new Runtime(hooks));
  if (runtime->settings_.mode == Mode::off) return nullptr;
  built.store(runtime.get(), std::memory_order_release);
  return runtime.release();
}

Runtime* Runtime::get_first(const HookSide& hooks) {
  static Runtime* const instance = create(hooks);
  return instance == nullptr || lifecycle::detached() ? nullptr : instance;
}

Runtime* Runtime::existing() {
  return lifecycle::detached() ? nullptr : built.load(std::memory_order_acquire);
}

void Runtime::driver_initialised() noexcept {
  try {
    Runtime* runtime = existing();
    if (runtime == nullptr || runtime->pid_.exchange(::getpid()) != 0) return;
    lifecycle::driver_started();
    // Registered only now: handlers run in reverse, so ours runs while the driver still answers.
    if (&on_exit != nullptr)
      ::on_exit([](int status, void*) { finish_with(status); }, nullptr);
    else
      std::atexit(&Runtime::finish);
    ::at_quick_exit(&Runtime::finish);
    runtime->start_trace();
    if (!runtime->reports()) return;
    {
      const std::lock_guard hold(runtime->report_lock_);
      runtime->at_start_ = early_framework_variables();
    }
    farewell::prepare(&Runtime::finish);
  } catch (...) {
    // No memory for a report: the program goes on without.
  }
}

void Runtime::finish() noexcept { finish_with(EXIT_FAILURE); }

void Runtime::finish_with(int status) noexcept {
  try {
    Runtime* runtime = existing();
    // A child by vfork or clone shares this memory without having passed a fork handler.
    if (runtime == nullptr || ::getpid() != runtime->pid_) return;
    runtime->router_.end_keeping();
    runtime->announcer_.flush(status != 0);
    trace::note_end();
    runtime->write_report();
  } catch (...) {
  }
}

void Runtime::say_last_words() noexcept {
  Runtime* runtime = existing();
  if (runtime != nullptr && ::getpid() == runtime->pid_) runtime->announcer_.flush_from_handler();
}

void Runtime::start_trace() {
  if (settings_.trace.empty()) return;
  trace::Options options{.path = expand_path(settings_.trace, pid_),
                         .mode = mode_name(settings_.mode),
                         .command = command_line()};
  const std::string asked = options.path;
  const std::string problem = trace::start(options);
  if (!problem.empty())
    log::warn("TIDEPOOL_TRACE " + options.path + " cannot be written (" + problem + "); nothing is recorded");
  else if (options.path != asked)
    log::warn("TIDEPOOL_TRACE " + asked + " is being written by another process; this one writes " +
              options.path + " (%p in the name is the process id)");
}

// Retry loops fail thousands of times a second; one report a second tells as much.
void Runtime::on_out_of_memory() {
  const long now = std::time(nullptr);
  long last = last_report_seconds_.load();
  if (now != last && last_report_seconds_.compare_exchange_strong(last, now)) write_report();
}

void Runtime::write_report() {
  if (!reports()) return;
  const std::lock_guard hold(report_lock_);
  HookFacts facts = hooks_.facts();
  std::vector<report::Diagnosis> diagnoses = announcer_.diagnoses();
  // A screen may come when no call is made.
  if (facts.intercepted == reported_ && diagnoses.size() == reported_diagnoses_) return;
  reported_ = facts.intercepted;
  reported_diagnoses_ = diagnoses.size();

  report::Report report{.pid = pid_,
                        .command = command_line(),
                        .mode = mode_name(settings_.mode),
                        .settings = {},
                        .frameworks = framework_variables_set(),
                        .set_late = changed_since(at_start_, early_framework_variables()),
                        .started = started_,
                        .ended = utc_now(),
                        .devices = {},
                        .intercepted = facts.intercepted,
                        .driver_calls = facts.forwarded,
                        .uncovered = facts.uncovered,
                        .diagnoses = std::move(diagnoses),
                        .refusals_counted = announcer_.counted()};
  for (std::size_t i = 0; i < settings_.written.size(); ++i)
    report.settings.push_back(
        {setting_rows()[i].variable, settings_.written[i].value, settings_.written[i].from_environment});
  driver.for_each_entry([&](const char* name, std::uint64_t calls) { report.driver_calls[name] += calls; });
  for (const auto& device : router_.devices()) report.devices.push_back(report_of(*device));

  const std::string json = report::to_json(report);
  const auto write = [&](const std::string& path) {
    const std::string failure = report::write_report(json, path);
    if (failure.empty() || report_failed_) return;
    // `tidepool run` has returned, and removed its folder, before a process that went its own way.
    if (!run_folder_.empty() && path.starts_with(run_folder_) && ::access(run_folder_.c_str(), F_OK) != 0)
      return;
    report_failed_ = true;
    log::warn("the report " + path + " cannot be written (" + failure + ")");
  };
  if (!settings_.report.empty()) write(expand_path(settings_.report, pid_));
  if (!run_folder_.empty()) write(run_folder_ + "/" + std::to_string(pid_) + ".json");
}

}  // namespace tidepool
