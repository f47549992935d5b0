// A trace as comma-separated values, and what its events are called.
#include "shim/cli/trace/formats.hpp"
#include "shim/trace/replay.hpp"

namespace tidepool::cli {

const char* name_of(trace::Action action) {
  switch (action) {
    case trace::Action::state: return "state";
    case trace::Action::allocate: return "allocate";
    case trace::Action::free: return "free";
    case trace::Action::refuse: return "refuse";
    case trace::Action::grow: return "grow";
    case trace::Action::shrink: return "shrink";
    case trace::Action::hold: return "hold";
  }
  return "";
}

const char* name_of(trace::Family family) {
  switch (family) {
    case trace::Family::none: return "";
    case trace::Family::synchronous: return "synchronous";
    case trace::Family::stream_ordered: return "stream_ordered";
    case trace::Family::own: return "own";
  }
  return "";
}

const char* name_of(trace::Source source) {
  switch (source) {
    case trace::Source::none: return "";
    case trace::Source::arena: return "arena";
    case trace::Source::driver: return "driver";
    case trace::Source::again: return "driver_again";
    case trace::Source::lazy: return "managed";
  }
  return "";
}

void write_csv(const trace::Trace& trace, std::ostream& out) {
  out << "time_ns,unix_time_ns,event,device,address,size,stream,thread,family,source,owner,live_bytes,"
         "held_bytes\n";
  trace::Replay replay;
  for (const trace::TracedEvent& event : trace.events) {
    replay.apply(event);
    out << event.time << ',' << trace.wall_base + event.time << ',' << name_of(event.action) << ','
        << static_cast<int>(event.device) << ',' << event.address << ',' << event.size << ',' << event.stream
        << ',' << event.thread << ',' << name_of(event.family) << ',' << name_of(event.source) << ','
        << event.owner << ',' << replay.device(event.device).live << ',' << event.held << '\n';
  }
}

}  // namespace tidepool::cli
