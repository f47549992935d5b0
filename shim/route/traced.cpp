// Events of the trace from what the router knows.
#include "shim/route/traced.hpp"

namespace tidepool::traced {
namespace {

using trace::Action;
using trace::Family;

Family family_of(Kind kind) {
  return kind == Kind::synchronous ? Family::synchronous : Family::stream_ordered;
}

std::uint64_t number_of(const StreamName& stream) {
  return reinterpret_cast<std::uint64_t>(stream.is_threads_own() ? CU_STREAM_PER_THREAD : stream.stream);
}

trace::Event event(const Device& device, Action action, std::uint64_t address, Bytes size) {
  return {.action = action,
          .device = device.ordinal,
          .address = address,
          .size = size,
          .held = device.account.reserved.now()};
}

}  // namespace

void write_served(const Device& device, Address address, Bytes size, const Owner& owner,
                  const StreamName& stream) noexcept {
  trace::Event given = event(device, Action::allocate, address.value, size);
  given.family = family_of(owner.kind);
  given.source = trace::Source::arena;
  given.owner = owner.packed();
  given.stream = number_of(stream);
  trace::write(given, trace::now());
}

void write_freed(const Device& device, const trace::Moment& moment, Address address, const Label& label,
                 const StreamName& stream) noexcept {
  const Owner owner = Owner::of(label);
  trace::Event gone = event(device, Action::free, address.value, label.requested);
  gone.family = family_of(owner.kind);
  gone.source = trace::Source::arena;
  gone.owner = owner.packed();
  gone.stream = number_of(stream);
  trace::write(gone, moment.time());
}

void write_passed(const Device& device, Address address, const Record& record,
                  trace::Source source) noexcept {
  trace::Event given = event(device, Action::allocate, address.value, record.requested);
  given.family = family_of(record.kind);
  given.source = source;
  given.owner = record.context;
  given.stream = record.stream;
  trace::write(given, trace::now());
}

void write_freed(const Device& device, const trace::Moment& moment, Address address,
                 const Record& record) noexcept {
  trace::Event gone = event(device, Action::free, address.value, record.requested);
  gone.family = family_of(record.kind);
  gone.source = record.lazy ? trace::Source::lazy : trace::Source::driver;
  gone.owner = record.context;
  gone.stream = record.stream;
  trace::write(gone, moment.time());
}

void write_event(const Device& device, Action action, std::uint64_t address, Bytes size, Family family,
                 trace::Source source, std::uint64_t time) noexcept {
  trace::Event plain = event(device, action, address, size);
  plain.family = family;
  plain.source = source;
  trace::write(plain, time == 0 ? trace::now() : time);
}

}  // namespace tidepool::traced
