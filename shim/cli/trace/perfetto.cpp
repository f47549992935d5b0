// A trace as Chrome's JSON trace events (the "Trace Event Format"). Times are microseconds. A thread's events
// are instants on its track; what is live and held is a counter of the device.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "shim/cli/reports.hpp"
#include "shim/cli/trace/formats.hpp"
#include "shim/trace/replay.hpp"

namespace tidepool::cli {
namespace {

std::string microseconds(std::uint64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%03llu", static_cast<unsigned long long>(ns / 1000),
                static_cast<unsigned long long>(ns % 1000));
  return text;
}

std::string command_of(const trace::Trace& trace) {
  std::string line;
  for (const std::string& argument : trace.command) line += (line.empty() ? "" : " ") + argument;
  return line;
}

class Writer {
 public:
  Writer(const trace::Trace& trace, std::ostream& out) : pid_(trace.pid), out_(out) {}

  void counter(const trace::TracedEvent& event, const trace::DeviceState& state) {
    next() << R"({"ph":"C","name":"GPU )" << static_cast<int>(event.device) << R"( memory","pid":)" << pid_
           << R"(,"ts":)" << microseconds(event.time) << R"(,"args":{"live":)" << state.live << R"(,"held":)"
           << state.held << "}}";
  }
  // `change`: of what the application has.
  void instant(const trace::TracedEvent& event, std::int64_t change, const trace::DeviceState& state,
               std::size_t index) {
    next() << R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":)" << pid_
           << R"(,"tid":)" << event.thread << R"(,"ts":)" << microseconds(event.time)
           << R"(,"args":{"Device Type":1,"Device Id":)" << static_cast<int>(event.device) << R"(,"Addr":)"
           << event.address << R"(,"Bytes":)" << change << R"(,"Total Allocated":)" << state.live
           << R"(,"Total Reserved":)" << state.held << R"(,"Ev Idx":)" << index << R"(,"event":")"
           << name_of(event.action) << R"(","stream":)" << event.stream << R"(,"family":")"
           << name_of(event.family) << R"(","source":")" << name_of(event.source) << R"("}})";
  }
  void refusal(const trace::TracedEvent& event) {
    next() << R"({"ph":"i","s":"p","name":"out of memory","pid":)" << pid_ << R"(,"tid":)" << event.thread
           << R"(,"ts":)" << microseconds(event.time) << R"(,"args":{"Device Id":)"
           << static_cast<int>(event.device) << R"(,"Bytes":)" << event.size << "}}";
  }
  void process_name(const std::string& name) {
    next() << R"({"ph":"M","name":"process_name","pid":)" << pid_ << R"(,"args":{"name":)"
           << to_text(nlohmann::json(name)) << "}}";
  }

 private:
  std::ostream& next() { return out_ << (first_ ? (first_ = false, "\n") : ",\n"); }

  const std::uint64_t pid_;
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_perfetto(const trace::Trace& trace, std::ostream& out) {
  out << R"({"displayTimeUnit":"ms","traceEvents":[)";
  Writer writer(trace, out);
  writer.process_name(command_of(trace));
  trace::Replay replay;
  std::size_t index = 0;
  for (const trace::TracedEvent& event : trace.events) {
    const trace::Replay::Ended ended = replay.apply(event);
    const trace::DeviceState& state = replay.device(event.device);
    const auto size = static_cast<std::int64_t>(event.size);
    if (event.action == trace::Action::allocate)
      writer.instant(event, size, state, index);
    else if (event.action == trace::Action::free && ended.any)
      writer.instant(event, -static_cast<std::int64_t>(ended.allocation.size), state, index);
    else if (event.action == trace::Action::refuse)
      writer.refusal(event);
    writer.counter(event, state);
    ++index;
  }
  out << "\n]}\n";
}

}  // namespace tidepool::cli
