// A trace as one page for people: for each device what was live and held over time, and what the peak was
// made of. It holds all it needs: no script, nothing from elsewhere.
#include <algorithm>
#include <array>
#include <map>

#include "shim/base/sizes.hpp"
#include "shim/cli/trace/formats.hpp"
#include "shim/trace/replay.hpp"

namespace tidepool::cli {
namespace {

constexpr std::size_t kColumns = 900;
constexpr std::uint64_t kHeight = 300;

struct Column {
  bool known = false;
  std::uint64_t live = 0;  // at most, in the column's time
  std::uint64_t held = 0;
};
using Columns = std::array<Column, kColumns>;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) switch (letter) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  return out;
}

std::string command_of(const trace::Trace& trace) {
  std::string line;
  for (const std::string& argument : trace.command) line += (line.empty() ? "" : " ") + argument;
  return escaped(line);
}

// Longer than 0, so that it can be divided by.
std::uint64_t span_of(const trace::Trace& trace) {
  return trace.events.empty() ? 1 : std::max<std::uint64_t>(trace.events.back().time, 1);
}

std::map<int, Columns> columns_of(const trace::Trace& trace, trace::Replay& replay) {
  std::map<int, Columns> devices;
  const std::uint64_t span = span_of(trace);
  for (const trace::TracedEvent& event : trace.events) {
    replay.apply(event);
    const trace::DeviceState& state = replay.device(event.device);
    const double part = static_cast<double>(event.time) / static_cast<double>(span);
    Column& column = devices[event.device][static_cast<std::size_t>(part * (kColumns - 1))];
    column = {true, std::max(column.live, state.live), std::max(column.held, event.held)};
  }
  // Where nothing happens it stays as it was.
  for (auto& [device, columns] : devices)
    for (std::size_t i = 1; i < kColumns; ++i)
      if (!columns[i].known) columns[i] = {false, columns[i - 1].live, columns[i - 1].held};
  return devices;
}

void write_line(const Columns& columns, std::uint64_t Column::*value, std::uint64_t most, const char* kind,
                std::ostream& out) {
  out << "<polyline class=\"" << kind << "\" points=\"";
  for (std::size_t i = 0; i < kColumns; ++i) {
    const double part = static_cast<double>(columns[i].*value) / static_cast<double>(most);
    out << (i == 0 ? "" : " ") << i << ',' << kHeight - static_cast<std::uint64_t>(part * kHeight);
  }
  out << "\"/>\n";
}

void write_plot(const Columns& columns, std::uint64_t most, std::uint64_t span, std::ostream& out) {
  out << "<svg viewBox=\"-90 -10 1000 350\" role=\"img\">\n";
  for (std::uint64_t quarter = 0; quarter <= 4; ++quarter) {
    const std::uint64_t y = kHeight - quarter * kHeight / 4;
    out << "<line x1=\"0\" x2=\"" << kColumns << "\" y1=\"" << y << "\" y2=\"" << y
        << "\"/><text x=\"-8\" y=\"" << y + 4 << "\" text-anchor=\"end\">" << format_size(most / 4 * quarter)
        << "</text>\n";
  }
  for (std::uint64_t quarter = 0; quarter <= 4; ++quarter)
    out << "<text x=\"" << quarter * kColumns / 4 << "\" y=\"" << kHeight + 20 << "\" text-anchor=\"middle\">"
        << static_cast<double>(span / 1'000'000 * quarter / 4) / 1000 << " s</text>\n";
  write_line(columns, &Column::held, most, "held", out);
  write_line(columns, &Column::live, most, "live", out);
  out << "</svg>\n";
}

void write_peak(const trace::Trace& trace, int device, std::uint64_t moment, std::ostream& out) {
  out << "<table><tr><th>size, up to</th><th>blocks</th><th>together</th></tr>\n";
  for (const auto& [most, one] : trace::by_size(trace::live_at(trace, device, moment)))
    out << "<tr><td>" << format_size(most) << "</td><td>" << one.blocks << "</td><td>"
        << format_size(one.bytes) << "</td></tr>\n";
  out << "</table>\n";
}

constexpr const char* kStyle =
    "body{font:15px sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}"
    "svg{width:100%}svg text{font-size:12px;fill:#555}line{stroke:#ddd}"
    "polyline{fill:none;stroke-width:1.5}.live{stroke:#06c;color:#06c}.held{stroke:#c60;color:#c60}"
    "td,th{padding:2px 16px 2px 0;text-align:right}";

}  // namespace

void write_html(const trace::Trace& trace, std::ostream& out) {
  trace::Replay replay;
  const std::map<int, Columns> devices = columns_of(trace, replay);
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>GPU memory of "
      << command_of(trace) << "</title>\n<style>" << kStyle
      << "</style></head><body>\n<h1>GPU memory over time</h1>\n<p>" << command_of(trace) << " (process "
      << trace.pid << ", mode " << escaped(trace.mode) << ")</p>\n";
  if (trace.missing > 0)
    out << "<p>The oldest events are missing, up to " << trace.missing << ": the trace was full.</p>\n";
  for (const auto& [device, columns] : devices) {
    const trace::DeviceState& state = replay.device(device);
    out << "<h2>GPU " << device << "</h2>\n<p><b class=\"live\">live</b>: what the program has, at most "
        << format_size(state.live_peak) << "; <b class=\"held\">held</b>: of the device, at most "
        << format_size(state.held_peak) << "; " << state.allocations << " allocations, " << state.refusals
        << " refused</p>\n";
    write_plot(columns, std::max<std::uint64_t>({state.live_peak, state.held_peak, 1}), span_of(trace), out);
    out << "<h3>At the peak, by size</h3>\n";
    write_peak(trace, device, state.peak_at, out);
  }
  out << "</body></html>\n";
}

}  // namespace tidepool::cli
