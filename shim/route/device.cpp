// One device as this process sees it.
#include "shim/route/device.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "policies/catalogue.hpp"
#include "shim/base/log.hpp"
#include "shim/trace/recorder.hpp"

namespace tidepool {
namespace {

std::string uuid_of(int ordinal) {
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid_v2(&uuid, ordinal) != CUDA_SUCCESS &&
      driver.cuDeviceGetUuid(&uuid, ordinal) != CUDA_SUCCESS)
    return {};
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    std::array<char, 4> byte{};
    std::snprintf(byte.data(), byte.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte.data();
  }
  return text;
}

std::string name_of(int ordinal) {
  std::array<char, 256> name{};
  return driver.cuDeviceGetName(name.data(), static_cast<int>(name.size()), ordinal) == CUDA_SUCCESS
             ? name.data()
             : std::string();
}

Bytes total_of(int ordinal) {
  std::size_t total = 0;
  return driver.cuDeviceTotalMem_v2(&total, ordinal) == CUDA_SUCCESS ? total : 0;
}

}  // namespace

bool rdma_module_loaded() {
  static const bool loaded = [] {
    struct stat info {};
    for (const char* module : {"/sys/module/nvidia_peermem", "/sys/module/nv_peer_mem", "/sys/module/gdrdrv",
                               "/sys/module/nvidia_fs"})
      if (stat(module, &info) == 0) return true;
    return false;
  }();
  return loaded;
}

Result<Range> AccountedBacking::reserve(Bytes size) {
  const std::lock_guard hold(reserve_lock_);
  const std::size_t count = range_count_.load(std::memory_order_relaxed);
  if (count == kMostRanges) return Failure{Reason::driver, CUDA_ERROR_OUT_OF_MEMORY};
  Result<Range> range = physical_.reserve(size);
  if (range) {
    ranges_[count] = range.value();
    range_count_.store(count + 1, std::memory_order_release);
  }
  return range;
}

bool AccountedBacking::owns(Address address) const {
  const std::size_t count = range_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i)
    if (ranges_[i].begin <= address && address < ranges_[i].end()) return true;
  return false;
}

// The current context's device, which is ours for all but a stream of another device's; then nothing is
// known. What is idle gives way.
Bytes AccountedBacking::available() {
  const Bytes idle = idle_handles_.bytes();
  const Bytes left = account_.left() > kUnlimited - idle ? kUnlimited : account_.left() + idle;
  CUdevice current = -1;
  std::size_t free = 0;
  std::size_t total = 0;
  if (driver.cuCtxGetDevice(&current) != CUDA_SUCCESS || current != device_ ||
      driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return left;
  return std::min(left, Bytes{free} + idle);
}

void AccountedBacking::trace_page(trace::Action action, Address page) const {
  if (trace::on()) [[unlikely]]
    trace::write({.action = action,
                  .device = device_,
                  .address = page.value,
                  .size = kPage,
                  .held = account_.reserved.now()},
                 trace::now());
}

// What the application has done with gives way.
Status AccountedBacking::create(Address page) {
  const RelaxedCapture relaxed(gate_);
  Status status = create_once(page);
  const auto short_of_memory = [&] {
    return !status &&
           (status.failure().reason == Reason::limit || status.failure().reason == Reason::out_of_memory);
  };
  while (short_of_memory() && idle_handles_.give_back_oldest() > 0) status = create_once(page);
  return status;
}

Status AccountedBacking::create_once(Address page) {
  if (!account_.take(kPage)) return Failure{Reason::limit, CUDA_ERROR_OUT_OF_MEMORY};
  Status status = physical_.create(page);
  if (status) {
    account_.reserved.add(kPage);
    held.add(kPage);
    trace_page(trace::Action::grow, page);
    if (held.now() + idle_handles_.bytes() >= share_ + Keeper::kWorthwhile) keeper_.watch();
  } else {
    account_.give_back(kPage);
  }
  return status;
}

Status AccountedBacking::move(Address page, Address to) {
  if (rdma_module_loaded()) return Failure{Reason::driver, CUDA_ERROR_NOT_PERMITTED};
  const RelaxedCapture relaxed(gate_);
  Status status = physical_.move(page, to);
  if (status) {
    trace_page(trace::Action::shrink, page);
    trace_page(trace::Action::grow, to);
  }
  return status;
}

Status AccountedBacking::enable(Range range) {
  const RelaxedCapture relaxed(gate_);
  return physical_.enable(range);
}

Status AccountedBacking::release(Address page) {
  if (rdma_module_loaded()) return Failure{Reason::driver, CUDA_ERROR_NOT_PERMITTED};
  const RelaxedCapture relaxed(gate_);
  Status status = physical_.release(page);
  if (status) {
    account_.reserved.subtract(kPage);
    held.subtract(kPage);
    account_.give_back(kPage);
    trace_page(trace::Action::shrink, page);
  }
  return status;
}

Device::Device(int ordinal_number, const Settings& settings, CaptureGate& gate, Ledger& ledger,
               Keeper& keeper)
    : ordinal(ordinal_number),
      uuid(uuid_of(ordinal_number)),
      name(name_of(ordinal_number)),
      total(total_of(ordinal_number)),
      idle_handles(account, total),
      native_blocks(account, ledger),
      reservation(backing_),
      settings_(settings),
      physical_(ordinal_number),
      backing_(physical_, account, idle_handles, gate, keeper, ordinal_number) {
  // passthrough observes and reports only.
  if (settings.serves()) account.set_limit(limit_for_device(settings, ordinal, uuid, total));
}

bool Device::has_arena() {
  // Not std::call_once: an exception cannot pass through it where libgcc is linked statically (measured).
  if (!built_.load(std::memory_order_acquire)) {
    const std::lock_guard hold(build_lock_);
    if (!built_.load(std::memory_order_relaxed)) build_arena();
    built_.store(true, std::memory_order_release);
  }
  return has_policy();
}

void Device::build_arena() {
  if (!settings_.serves()) return;
  if (!vmm_supported(ordinal)) {
    log::warn("device " + std::to_string(ordinal) +
              " has no virtual memory calls: its memory is left to the driver");
    return;
  }
  PolicyConfig config;
  config.total = total;
  if (settings_.mode == Mode::prealloc) {
    std::size_t free = 0;
    std::size_t all = 0;
    if (driver.cuMemGetInfo_v2(&free, &all) != CUDA_SUCCESS) free = total;
    const auto wanted = static_cast<Bytes>(settings_.fraction * static_cast<double>(total));
    config.initial = std::min({wanted, account.limit(), Bytes{free}}) / kPage * kPage;
    preallocated_ = config.initial;
    backing_.keep_share(preallocated_);
  }
  policy_ = make_policy(settings_.mode == Mode::prealloc ? "prealloc" : "ondemand", config, backing_);
  if (policy_ != nullptr) policy_->count_outside(static_cast<std::int64_t>(account.live.now()));
  has_policy_.store(policy_ != nullptr, std::memory_order_release);
}

void Device::passed(Bytes size) {
  account.passed(size);
  count_outside(static_cast<std::int64_t>(size));
}

void Device::passed_back(Bytes size) {
  account.passed_back(size);
  count_outside(-static_cast<std::int64_t>(size));
}

void Device::passed_again(Bytes size) {
  account.passed_again(size);
  count_outside(static_cast<std::int64_t>(size));
}

void Device::kept(Bytes size) {
  account.kept(size);
  count_outside(-static_cast<std::int64_t>(size));
}

void Device::count_outside(std::int64_t size) {
  if (has_policy()) policy_->count_outside(size);
}

void Device::passed_lazily(Bytes size) {
  account.passed_lazily(size);
  if (has_policy()) policy_->count_outside(static_cast<std::int64_t>(size));
}

void Device::passed_lazily_back(Bytes size) {
  account.passed_lazily_back(size);
  if (has_policy()) policy_->count_outside(-static_cast<std::int64_t>(size));
}

bool Device::backs_lazily() const {
  int supported = 0;
  return driver.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, ordinal) ==
             CUDA_SUCCESS &&
         supported != 0;
}

Device::Requested Device::requested() {
  if (!has_policy()) return {account.live.now(), account.live.peak()};
  const Snapshot held = policy_->snapshot();
  return {held.requested, std::max(held.requested_peak, account.live.peak())};
}

Bytes Device::cached() {
  const Snapshot held = snapshot();
  return held.cached + held.in_limbo + idle_handles.bytes() + native_blocks.bytes();
}

Snapshot Device::snapshot() { return has_policy() ? policy_->snapshot() : Snapshot{}; }

void Device::record_out_of_memory(report::OutOfMemory event) {
  const std::lock_guard hold(events_lock_);
  if (events_.size() < 32) events_.push_back(std::move(event));
}

std::vector<report::OutOfMemory> Device::out_of_memory_events() const {
  const std::lock_guard hold(events_lock_);
  return events_;
}

}  // namespace tidepool
