// What the trace is told of a call. Each is one test of a flag where nothing is recorded.
#pragma once

#include "shim/ledger/ledger.hpp"
#include "shim/route/device.hpp"
#include "shim/route/lanes.hpp"
#include "shim/route/owner.hpp"
#include "shim/trace/recorder.hpp"

namespace tidepool::traced {

// Of memory of the arena.
void write_served(const Device& device, Address address, Bytes size, const Owner& owner,
                  const StreamName& stream) noexcept;
void write_freed(const Device& device, const trace::Moment& moment, Address address, const Label& label,
                 const StreamName& stream) noexcept;
// Of the driver's own.
void write_passed(const Device& device, Address address, const Record& record, trace::Source source) noexcept;
void write_freed(const Device& device, const trace::Moment& moment, Address address,
                 const Record& record) noexcept;
// Anything else, which has no owner and no stream.
void write_event(const Device& device, trace::Action action, std::uint64_t address, Bytes size,
                 trace::Family family = {}, trace::Source source = {}, std::uint64_t time = 0) noexcept;

inline void served(const Device& device, CUdeviceptr address, Bytes size, const Owner& owner,
                   const StreamName& stream) {
  if (trace::on()) [[unlikely]]
    write_served(device, {address}, size, owner, stream);
}

inline void passed(const Device& device, CUdeviceptr address, const Record& record,
                   trace::Source source = trace::Source::driver) {
  if (trace::on()) [[unlikely]]
    write_passed(device, {address}, record, source);
}

inline void freed(const Device& device, const trace::Moment& moment, Address address, const Label& label,
                  const StreamName& stream = {}) {
  if (moment.is_taken()) [[unlikely]]
    write_freed(device, moment, address, label, stream);
}

inline void freed(const Device& device, const trace::Moment& moment, Address address, const Record& record) {
  if (moment.is_taken()) [[unlikely]]
    write_freed(device, moment, address, record);
}

inline void refused(const Device& device, Bytes size) {
  if (trace::on()) [[unlikely]]
    write_event(device, trace::Action::refuse, 0, size);
}

// The process holds another amount.
inline void held(const Device& device) {
  if (trace::on()) [[unlikely]]
    write_event(device, trace::Action::hold, 0, 0);
}

// Memory of cuMemCreate, by the number that the books have for it.
inline void made(const Device& device, std::uint64_t number, Bytes size, trace::Source source) {
  if (trace::on()) [[unlikely]]
    write_event(device, trace::Action::allocate, number, size, trace::Family::own, source);
}
inline void ended(const Device& device, const trace::Moment& moment, std::uint64_t number, Bytes size) {
  if (moment.is_taken()) [[unlikely]]
    write_event(device, trace::Action::free, number, size, trace::Family::own, {}, moment.time());
}

}  // namespace tidepool::traced
