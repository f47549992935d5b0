// `tidepool trace`: what a trace holds, in a few lines, or converted.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include "shim/base/sizes.hpp"
#include "shim/cli/commands.hpp"
#include "shim/cli/reports.hpp"
#include "shim/cli/table.hpp"
#include "shim/cli/trace/formats.hpp"
#include "shim/trace/replay.hpp"

namespace tidepool::cli {
namespace {

using Row = std::vector<std::string>;

constexpr std::size_t kMostClasses = 8;

std::string seconds(std::uint64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(ns) / 1e9);
  return text;
}

std::string ending_of(const trace::Trace& trace) {
  if (trace.failure != 0) return std::string("the recording stopped: ") + std::strerror(trace.failure);
  return trace.ended != 0 ? "by itself, after " + seconds(trace.ended) : "killed, or it still runs";
}

std::vector<Row> of_process(const trace::Trace& trace) {
  std::string command;
  for (const std::string& argument : trace.command) command += (command.empty() ? "" : " ") + argument;
  std::vector<Row> rows{{"command", printable(shorten(command, 100))},
                        {"process", std::to_string(trace.pid)},
                        {"mode", trace.mode},
                        {"ended", ending_of(trace)},
                        {"events", std::to_string(trace.events.size())}};
  if (trace.missing > 0)
    rows.push_back({"missing", "the oldest, up to " + std::to_string(trace.missing) +
                                   ": the file is full, and the newest were kept"});
  if (!trace.events.empty())
    rows.push_back({"time", seconds(trace.events.front().time) + " to " + seconds(trace.events.back().time)});
  return rows;
}

// The classes that make up most of the peak.
void add_peak(const trace::Trace& trace, int ordinal, std::uint64_t moment, std::vector<Row>& rows) {
  const auto classes = trace::by_size(trace::live_at(trace, ordinal, moment));
  std::vector<std::pair<std::uint64_t, trace::SizeClass>> largest(classes.begin(), classes.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& one, const auto& other) { return one.second.bytes > other.second.bytes; });
  rows.push_back({"  at the peak, by size"});
  for (std::size_t i = 0; i < std::min(largest.size(), kMostClasses); ++i) {
    const auto& [most, one] = largest[i];
    rows.push_back({"    up to " + format_size(most), format_size(one.bytes) + " in " +
                                                          std::to_string(one.blocks) +
                                                          (one.blocks == 1 ? " block" : " blocks")});
  }
}

void summarise(const trace::Trace& trace) {
  trace::Replay replay;
  for (const trace::TracedEvent& event : trace.events) replay.apply(event);
  std::vector<Row> rows = of_process(trace);
  for (const auto& [ordinal, state] : replay.devices()) {
    rows.push_back({""});
    rows.push_back({"device " + std::to_string(ordinal)});
    for (const trace::TracedDevice& device : trace.devices)
      if (device.ordinal == ordinal) rows.push_back({"  name", printable(device.name)});
    rows.push_back({"  allocations", std::to_string(state.allocations)});
    rows.push_back({"  frees", std::to_string(state.frees)});
    rows.push_back({"  refused", std::to_string(state.refusals)});
    rows.push_back({"  live at end", format_size(state.live)});
    rows.push_back({"  live, peak", format_size(state.live_peak) + " at " + seconds(state.peak_at)});
    rows.push_back({"  held, peak", format_size(state.held_peak)});
    if (state.live_peak > 0) add_peak(trace, ordinal, state.peak_at, rows);
  }
  std::cout << format_table(rows, Align::left);
}

using Write = void (*)(const trace::Trace&, std::ostream&);

Write writer_of(const std::string& format) {
  if (format == "csv") return &write_csv;
  if (format == "html") return &write_html;
  return format == "perfetto" ? &write_perfetto : &write_torch_snapshot;
}

int convert(const trace::Trace& trace, const TraceOptions& options) {
  const Write write = writer_of(options.format);
  if (options.out.empty()) {
    if (options.format == "torch-snapshot" && ::isatty(STDOUT_FILENO) == 1)
      return say("a torch-snapshot is not for a terminal; -o FILE names a file for it"), kRefused;
    write(trace, std::cout);
    std::cout.flush();
    return std::cout ? 0 : 1;
  }
  std::ofstream out(options.out, std::ios::binary | std::ios::trunc);
  if (out) write(trace, out);
  out.close();
  if (out) return 0;
  say(printable(options.out) + " cannot be written: " + std::strerror(errno));
  return 1;
}

}  // namespace

int show_trace(const TraceOptions& options) {
  try {
    const trace::Trace trace = trace::read(options.file);
    if (!options.format.empty()) return convert(trace, options);
    summarise(trace);
    return 0;
  } catch (const std::runtime_error& error) {
    say(printable(options.file) + " " + error.what());
    return kRefused;
  }
}

}  // namespace tidepool::cli
