// The driver's own blocks between two uses.
#include "shim/route/native_blocks.hpp"

#include <algorithm>
#include <ctime>

#include "shim/driver/driver.hpp"

namespace tidepool {
namespace {

// What a program may have beyond its own peak, for blocks that are replaced by slightly different ones.
constexpr Bytes kRemainder = 32 * kMiB;
constexpr auto kLongest = std::chrono::seconds(10);
// A program that asks for more has no use for equal ones.
constexpr std::size_t kMostForms = 64;
constexpr std::size_t kMostEmptyShelves = 1024;
// A fence costs as much as a few frees; so many may wait for one.
constexpr std::size_t kBatch = 64;
constexpr Bytes kBatchBytes = 16 * kMiB;

// The driver's answer to a free in the block's own context, which need not be the caller's.
CUresult free_in(std::uint64_t context, Address address) {
  const auto own = reinterpret_cast<CUcontext>(context);
  CUcontext current = nullptr;
  if (const CUresult result = driver.cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  if (current != own)
    if (const CUresult result = driver.cuCtxPushCurrent_v2(own); result != CUDA_SUCCESS) return result;
  const CUresult freed = driver.cuMemFree_v2(address.value);
  if (current != own) driver.cuCtxPopCurrent_v2(&current);
  return freed;
}

}  // namespace

NativeBlocks::Clock::time_point NativeBlocks::Clock::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

template <NativeBlocks::Links NativeBlocks::Idle::*links>
void NativeBlocks::Chain<links>::append(Idle* idle) {
  idle->*links = {last, nullptr};
  (last == nullptr ? first : (last->*links).after) = idle;
  last = idle;
}

template <NativeBlocks::Links NativeBlocks::Idle::*links>
void NativeBlocks::Chain<links>::prepend(Idle* idle) {
  idle->*links = {nullptr, first};
  (first == nullptr ? last : (first->*links).before) = idle;
  first = idle;
}

template <NativeBlocks::Links NativeBlocks::Idle::*links>
void NativeBlocks::Chain<links>::remove(Idle* idle) {
  const Links own = idle->*links;
  (own.before == nullptr ? first : (own.before->*links).after) = own.after;
  (own.after == nullptr ? last : (own.after->*links).before) = own.before;
}

NativeBlocks::Idle* NativeBlocks::new_idle() {
  if (spare_.empty()) {
    // Room for its return first: that must not throw.
    spare_.reserve(storage_.size() + 1);
    return &storage_.emplace_back();
  }
  Idle* idle = spare_.back();
  spare_.pop_back();
  return idle;
}

void NativeBlocks::put(Idle* idle, bool as_oldest) {
  idle->shelf = &shelves_[idle->kind];
  (idle->epoch == 0 ? idle->shelf->ready : idle->shelf->pending).append(idle);
  if (idle->epoch != 0) count_pending(*idle, true);
  ++count_;
  as_oldest ? ages_.prepend(idle) : ages_.append(idle);
  lowest_.store(std::min(lowest_.load(std::memory_order_relaxed), idle->address.value));
  highest_.store(std::max(highest_.load(std::memory_order_relaxed), (idle->address + idle->kind.size).value));
  bytes_.fetch_add(idle->kind.size, std::memory_order_relaxed);
}

void NativeBlocks::take_out(Idle* idle) {
  (idle->epoch == 0 ? idle->shelf->ready : idle->shelf->pending).remove(idle);
  if (idle->epoch != 0) count_pending(*idle, false);
  ages_.remove(idle);
  --count_;
  bytes_.fetch_sub(idle->kind.size, std::memory_order_relaxed);
}

void NativeBlocks::retire(Idle* idle) {
  take_out(idle);
  spare_.push_back(idle);
}

void NativeBlocks::settle(Shelf& shelf) {
  while (shelf.pending.first != nullptr && shelf.pending.first->epoch < closed_) {
    Idle* idle = shelf.pending.first;
    shelf.pending.remove(idle);
    count_pending(*idle, false);
    idle->epoch = 0;
    shelf.ready.append(idle);
  }
}

void NativeBlocks::count_pending(const Idle& idle, bool more) {
  pending_count_ += more ? 1 : -1;
  pending_bytes_ += more ? idle.kind.size : -idle.kind.size;
}

NativeBlocks::Found NativeBlocks::take(const Kind& kind) {
  const std::lock_guard hold(lock_);
  const auto found = shelves_.find(kind);
  if (found == shelves_.end()) return {};
  Shelf& shelf = found->second;
  if (shelf.ready.first == nullptr) settle(shelf);
  // The last to come: programs that repeat themselves get the same addresses.
  Idle* idle = shelf.ready.last;
  if (idle == nullptr)
    return {{},
            shelf.pending.first != nullptr && (pending_count_ >= kBatch || pending_bytes_ >= kBatchBytes)};
  const Address address = idle->address;
  retire(idle);
  ledger_.unkeep(address);
  return {address, false};
}

void NativeBlocks::keep(Address address, const Kind& kind, bool finished, Clock::time_point now) {
  const std::lock_guard hold(lock_);
  if (shelves_.size() > kMostEmptyShelves + count_)
    std::erase_if(shelves_, [](const auto& entry) {
      return entry.second.ready.first == nullptr && entry.second.pending.first == nullptr;
    });
  Idle* idle = new_idle();
  *idle = {address, kind, nullptr, finished ? 0 : epoch_.load(), now, {}, {}};
  put(idle, false);
}

void NativeBlocks::close_fence(Fence fence) {
  const std::lock_guard hold(lock_);
  closed_ = std::max(closed_, fence.epoch);
}

bool NativeBlocks::has_surplus(Bytes more, Clock::time_point now) const {
  if (bytes() == 0) return false;
  const Bytes live = account_.live.now() + more;
  if (live + bytes() > std::max(account_.live.peak(), live) + kRemainder) return true;
  const std::lock_guard hold(lock_);
  return ages_.first != nullptr && now - ages_.first->since > kLongest;
}

// Off the list before the call: once the driver has returned, another thread may be given the address. What
// the driver refuses, in a host callback say, is offered again; what it does not know is gone.
template <typename Wanted>
Bytes NativeBlocks::give_back_first(const Wanted& wanted) {
  std::unique_lock hold(lock_);
  Idle* idle = ages_.first;
  while (idle != nullptr && !wanted(*idle)) idle = idle->by_age.after;
  if (idle == nullptr) return 0;
  take_out(idle);
  const std::optional<Record> record = ledger_.remove_kept(idle->address);
  hold.unlock();
  const CUresult freed = free_in(idle->kind.context, idle->address);
  const Bytes size = idle->kind.size;
  hold.lock();
  if (freed != CUDA_SUCCESS && freed != CUDA_ERROR_INVALID_VALUE) {
    put(idle, true);
    if (record) ledger_.add(idle->address, *record);
    return 0;
  }
  spare_.push_back(idle);
  account_.let_go(size);
  return size;
}

Bytes NativeBlocks::give_back_oldest() {
  return bytes() == 0 ? 0 : give_back_first([](const Idle&) { return true; });
}

Bytes NativeBlocks::give_back_all() {
  Bytes given_back = 0;
  while (const Bytes size = give_back_oldest()) given_back += size;
  return given_back;
}

Bytes NativeBlocks::give_back_all(std::uint64_t context) {
  if (bytes() == 0) return 0;
  Bytes given_back = 0;
  while (const Bytes size = give_back_first([&](const Idle& idle) { return idle.kind.context == context; }))
    given_back += size;
  return given_back;
}

template <typename Wanted>
void NativeBlocks::drop(const Wanted& wanted) {
  if (bytes() == 0) return;
  const std::lock_guard hold(lock_);
  for (Idle* idle = ages_.first; idle != nullptr;) {
    Idle* next = idle->by_age.after;
    if (wanted(*idle)) {
      ledger_.remove_kept(idle->address);
      account_.let_go(idle->kind.size);
      retire(idle);
    }
    idle = next;
  }
}

void NativeBlocks::forget(std::uint64_t context) {
  drop([&](const Idle& idle) { return idle.kind.context == context; });
}

void NativeBlocks::forget(Address address) {
  drop([&](const Idle& idle) { return idle.address == address; });
}

int NativeBlocks::form_of(const Pitched& asked) const {
  const std::lock_guard hold(lock_);
  const auto known = std::find_if(forms_.begin(), forms_.end(), [&](const Pitched& form) {
    return form.width == asked.width && form.height == asked.height && form.element == asked.element;
  });
  return known == forms_.end() ? Record::kOnce
                               : Record::kPlain + 1 + static_cast<int>(known - forms_.begin());
}

int NativeBlocks::learn_form(const Pitched& given) {
  if (const int known = form_of(given); known != Record::kOnce) return known;
  const std::lock_guard hold(lock_);
  if (forms_.size() == kMostForms) return Record::kOnce;
  forms_.push_back(given);
  return Record::kPlain + static_cast<int>(forms_.size());
}

Bytes NativeBlocks::pitch_of(int form) const {
  const std::lock_guard hold(lock_);
  return forms_[static_cast<std::size_t>(form - Record::kPlain - 1)].pitch;
}

}  // namespace tidepool
