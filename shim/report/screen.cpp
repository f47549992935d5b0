// The screen, part by part: what was asked, why it failed, who holds the memory, what to do.
#include "shim/report/screen.hpp"

#include <algorithm>

#include "shim/base/frameworks.hpp"
#include "shim/report/advice.hpp"

namespace tidepool::report {
namespace {

constexpr std::size_t kMargin = 12;
constexpr std::size_t kStackLines = 8;
constexpr std::size_t kHolderLines = 8;
constexpr std::size_t kSettingLines = 8;

Text& head(Text& out, std::string_view title) { return (out << "  " << title).column(kMargin); }
Text& more(Text& out) { return out.column(kMargin); }

void put_request(const Failure& failure, Text& out) {
  out << "tidepool: " << (failure.error == 2 ? "out of memory: " : "the driver refused: ") << failure.entry;
  if (failure.requested > 0) out << " of ", out.size(failure.requested);
  out << " on GPU " << failure.device << " (pid " << failure.pid << ")\n";
}

void put_cause(const Failure& failure, Cause cause, Text& out) {
  head(out, "why");
  switch (cause) {
    case Cause::not_memory: out << "this is not about memory: driver error " << failure.error; break;
    case Cause::host_memory:
      out << "host memory that the GPU can reach could not be had; the GPU is not to blame";
      break;
    case Cause::context:
      out << "the process's context, the first thing that it needs on a GPU, has no room";
      break;
    case Cause::own_limit:
      out << "this process's own limit, TIDEPOOL_LIMIT: ";
      out.size(failure.limit.value_or(0)) << ", of which ";
      out.size(failure.live) << " are live";
      break;
    case Cause::framework_share:
      out << "JAX's own share of the device (XLA_PYTHON_CLIENT_MEM_FRACTION): ";
      out.size(failure.framework_share.value_or(0));
      break;
    case Cause::capacity:
      if (failure.requested > failure.total)
        out << "more was asked for at once than this GPU has";
      else
        out << "nearly all of this GPU was asked for at once, and the driver needs some of it itself";
      break;
    case Cause::own_use:
      out << "this process has filled the GPU itself: ";
      out.size(failure.live) << " live, ";
      out.size(failure.cached) << " cached";
      break;
    case Cause::other_processes:
      out << (failure.held_by_others() == failure.unattributed()
                  ? "memory is held that no process in sight explains"
                  : "other processes hold the memory");
      break;
    case Cause::own_pool:
      out << (failure.library ? part_name(*failure.library) : "the driver")
          << " finds nothing left: this process's own pool is one block of ";
      out.size(failure.largest_block);
      break;
    case Cause::fragmentation:
      out << "enough is free, but not in one piece: the largest hole is ";
      out.size(failure.largest_hole);
      break;
    case Cause::unknown: out << "unknown: the numbers below do not explain it"; break;
  }
  out << "\n";
}

void put_asked(const Failure& failure, Text& out) {
  head(out, "asked");
  if (failure.requested > 0)
    out.size(failure.requested);
  else
    out << "the call does not say how much";
  if (failure.framework) out << ", by " << part_name(*failure.framework);
  if (failure.library) out << (failure.framework ? " for " : ", by ") << part_name(*failure.library);
  if (failure.tried_first > failure.requested) out << "; tried first: ", out.size(failure.tried_first);
  if (failure.refusals > 1) out << "; refused " << failure.refusals << " times";
  if (failure.allocations_before == 0)
    out << "; nothing was served before";
  else
    out << "; " << failure.allocations_before
        << (failure.allocations_before == 1 ? " was served before, " : " were served before, "),
        out.size(failure.peak) << " at the most";
  out << "\n";
}

void put_date(std::time_t when, Text& out) {
  std::tm local{};
  if (::localtime_r(&when, &local) == nullptr) return;
  char text[20];
  out << std::string_view(text, std::strftime(text, sizeof text, "%m-%d %H:%M", &local));
}

// "/usr/bin/python train.py" as "python train.py".
std::string_view without_folder(std::string_view command) {
  const std::size_t folder = command.substr(0, command.find(' ')).rfind('/');
  return folder == std::string_view::npos ? command : command.substr(folder + 1);
}

void put_holder(const Holder& holder, Text& out) {
  more(out) << "  pid " << holder.pid;
  out.column(kMargin + 16);
  if (holder.bytes)
    out.size(*holder.bytes);
  else
    out << "size unknown";
  out.column(kMargin + 30) << (holder.in_sight ? holder.user.view() : "not of this container, or gone");
  if (holder.since) out << ", since ", put_date(*holder.since, out);
  if (holder.in_sight) (out << ": ").printable(without_folder(holder.command.view()), 60);
  out << "\n";
}

void put_others(const Failure& failure, Text& out) {
  const MachineView& machine = failure.machine;
  const Bytes others = failure.held_by_others();
  if (!failure.known_free()) {
    more(out) << "what others hold is not known";
    if (machine.state == MachineView::State::silent) out << ": " << machine.problem.view();
    out << "\n";
    return;
  }
  more(out) << "others hold ";
  out.size(others);
  if (machine.state == MachineView::State::silent)
    out << ", by the driver's count; who they are cannot be told: " << machine.problem.view();
  else if (machine.state == MachineView::State::answered && !machine.lists_processes)
    out << "; who they are cannot be told: " << machine.problem.view();
  out << "\n";
  std::size_t shown = 0;
  for (std::size_t i = 0; i < machine.listed; ++i)
    if (!machine.holders[i].is_self && shown < kHolderLines) put_holder(machine.holders[i], out), ++shown;
  if (machine.unlisted > 0) more(out) << "  and " << machine.unlisted << " more processes\n";
  if (const Bytes rest = failure.unattributed(); rest >= 64 * kMiB && rest < others)
    (more(out) << "  ").size(rest)
        << " more that no process in sight explains (contexts, other containers)\n";
  else if (rest >= kGiB && rest == others && machine.state == MachineView::State::answered)
    (more(out) << "  ").size(rest)
        << " held outside this container, or by contexts: no process in sight explains it\n";
}

void put_device(const Failure& failure, Text& out) {
  head(out, "GPU ") << failure.device_name.view() << ", ";
  out.size(failure.total) << "; ";
  if (const std::optional<Bytes> free = failure.known_free())
    out.size(*free) << " free";
  else
    out << "free: not asked";
  out << "\n";
  more(out) << "this process holds ";
  out.size(failure.held) << ": ";
  out.size(failure.live) << " live, ";
  out.size(failure.cached) << " cached (" << failure.mode << ", ";
  if (failure.limit)
    out << "limit ", out.size(*failure.limit) << ")\n";
  else
    out << "no limit)\n";
  put_others(failure, out);
}

// The marker lists NAME=VALUE;NAME=VALUE (base/frameworks.hpp).
bool set_by_us(std::string_view name, const Failure& failure) {
  const char* marker = failure.setting(kFrameworkMarker);
  for (std::string_view rest = marker == nullptr ? "" : marker; !rest.empty();) {
    if (rest.starts_with(name) && rest.substr(name.size()).starts_with('=')) return true;
    rest.remove_prefix(std::min(rest.find(';'), rest.size() - 1) + 1);
  }
  return false;
}

bool is_of_other_framework(std::string_view name, const Failure& failure) {
  if (!failure.framework || name.starts_with("TIDEPOOL_")) return false;
  const auto is_for = [&](std::string_view prefix) { return name.starts_with(prefix); };
  switch (*failure.framework) {
    case Part::jax: return !is_for("XLA_");
    case Part::tensorflow: return !is_for("TF_");
    case Part::pytorch: return !is_for("PYTORCH_");
    default: return false;
  }
}

// Settings that have a say in how much is asked for, and are set; those that tidepool set itself too.
void put_settings(const Failure& failure, Text& out) {
  constexpr const char* kVariables[] = {"XLA_PYTHON_CLIENT_PREALLOCATE",
                                        "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                        "XLA_CLIENT_MEM_FRACTION",
                                        "XLA_PYTHON_CLIENT_ALLOCATOR",
                                        "TF_FORCE_GPU_ALLOW_GROWTH",
                                        "TF_GPU_ALLOCATOR",
                                        "PYTORCH_ALLOC_CONF",
                                        "PYTORCH_CUDA_ALLOC_CONF",
                                        "TIDEPOOL_MODE",
                                        "TIDEPOOL_FRACTION",
                                        "TIDEPOOL_LIMIT",
                                        "TIDEPOOL_WAIT"};
  std::size_t shown = 0;
  for (const char* name : kVariables) {
    const char* value = failure.setting(name);
    if (shown == kSettingLines || value == nullptr || is_of_other_framework(name, failure)) continue;
    shown++ > 0 ? more(out) : head(out, "set");
    (out << name << "=").printable(value, 60)
        << (set_by_us(name, failure) ? "    (set by tidepool)\n" : "\n");
  }
}

void put_stack(std::string_view stack, Text& out) {
  for (std::size_t line = 0; line < kStackLines && !stack.empty(); ++line) {
    const std::size_t end = std::min(stack.find('\n'), stack.size());
    line == 0 ? head(out, "python") : more(out);
    out.printable(stack.substr(0, end).substr(std::min(stack.substr(0, end).find_first_not_of(' '), end)),
                  100)
        << "\n";
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
}

void put_lines(std::string_view title, std::string_view lines, Text& out) {
  for (bool first = true; !lines.empty(); first = false) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    first ? head(out, title) : more(out);
    out << lines.substr(0, end) << "\n";
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
}

}  // namespace

void write_screen(const Failure& failure, Cause cause, std::string_view python_stack, std::string_view report,
                  Text& out) {
  put_request(failure, out);
  put_cause(failure, cause, out);
  put_asked(failure, out);
  put_device(failure, out);
  put_settings(failure, out);
  put_stack(python_stack, out);
  Advice advice;
  advise(failure, cause, advice);
  put_lines("do", advice.to_do.view(), out);
  put_lines("no use", advice.no_use.view(), out);
  put_lines("report", report, out);
}

namespace {

Text& put_refusal(const Failure& failure, Text& out) {
  out << failure.entry << " of ";
  return out.size(failure.requested) << " was refused on GPU " << failure.device << "; ";
}

}  // namespace

void write_recovery(const Failure& failure, Cause cause, Bytes served, Text& out) {
  put_refusal(failure, out) << "the program got over it with ";
  out.size(served) << "; cause: " << cause_name(cause);
}

void write_indifference(const Failure& failure, Cause cause, Text& out) {
  put_refusal(failure, out) << "the program ended well without; cause: " << cause_name(cause);
}

}  // namespace tidepool::report
