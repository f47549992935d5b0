// Failures for tests, each a small change to the one of a program alone on a GPU of 80 GiB.
#pragma once

#include "shim/report/cause.hpp"

namespace tidepool::test {

inline report::Failure refused(const char* entry, Bytes requested) {
  report::Failure failure;
  failure.entry = entry;
  failure.requested = failure.tried_first = requested;
  failure.device_name = "Made-up H100";
  failure.uuid = "GPU-1";
  failure.total = 80 * kGiB;
  failure.pid = 1000;
  failure.mode = "ondemand";
  failure.command = "python train.py";
  return failure;
}

inline void hold(report::Failure& failure, Bytes live, Bytes cached = 0) {
  failure.live = failure.peak = live;
  failure.cached = cached;
  failure.held = live + cached;
  failure.allocations_before = 12;
}

inline void answer(report::Failure& failure, Bytes used) {
  failure.machine.state = report::MachineView::State::answered;
  failure.machine.lists_processes = true;
  failure.machine.total = failure.total;
  failure.machine.used = used;
}

inline report::Holder& list(report::Failure& failure, long pid, Bytes bytes, const char* command) {
  report::Holder& holder = failure.machine.holders[failure.machine.listed++];
  holder.pid = pid;
  holder.bytes = bytes;
  holder.is_self = pid == failure.pid;
  holder.in_sight = command[0] != '\0';
  holder.user = holder.in_sight ? "alice" : "";
  holder.command = command;
  return holder;
}

}  // namespace tidepool::test
