// A trace in the formats of others. Each writes the whole to a stream; what goes wrong there, the stream
// says.
#pragma once

#include <ostream>

#include "shim/trace/reader.hpp"

namespace tidepool::cli {

// One line for each event, with what is live and held after it; a header line.
void write_csv(const trace::Trace& trace, std::ostream& out);
// Chrome's JSON trace events, for ui.perfetto.dev: counters of each device, and each event with PyTorch's
// "[memory]" arguments, which HolisticTraceAnalysis and TensorBoard read.
void write_perfetto(const trace::Trace& trace, std::ostream& out);
// The pickle of torch.cuda.memory._snapshot(), for torch.cuda._memory_viz and pytorch.org/memory_viz.
void write_torch_snapshot(const trace::Trace& trace, std::ostream& out);

// A page for people, with a plot of what was live and held.
void write_html(const trace::Trace& trace, std::ostream& out);

const char* name_of(trace::Action action);
const char* name_of(trace::Family family);
const char* name_of(trace::Source source);

}  // namespace tidepool::cli
