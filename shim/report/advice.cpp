// Advice by cause. Whoever follows it keeps the mode that was chosen, and at least nine tenths of the memory
// that was asked for, where that can be had at all; where it cannot, the advice says what can.
#include "shim/report/advice.hpp"

#include <algorithm>

namespace tidepool::report {
namespace {

Bytes less(Bytes from, Bytes amount) { return from - std::min(from, amount); }

// What the program has been seen to need, with a quarter for what it has not come to yet.
Bytes need_with_margin(const Failure& failure) {
  const Bytes need = std::max(failure.peak, failure.live + failure.requested);
  return (need + need / 4 + kGiB / 2 - 1) / (kGiB / 2) * (kGiB / 2);
}

// "TIDEPOOL_LIMIT=12.5GiB"
void put_half_gibs(Text& out, Bytes size) {
  out << size / kGiB << (size % kGiB >= kGiB / 2 ? ".5" : "") << "GiB";
}

unsigned hundredths_of(const Failure& failure, Bytes size) {
  return failure.total == 0 ? 0 : static_cast<unsigned>(size / (failure.total / 100 + 1));
}

void put_command(Text& out, const Failure& failure) { out.printable(failure.command.view(), 60) << "\n"; }

void raise_limit(const Failure& failure, Advice& out) {
  const Bytes most = less(failure.total, failure.held_by_others());
  const Bytes need = need_with_margin(failure);
  if (failure.live + failure.requested > most) {
    out.to_do << "no limit would be enough: at most ";
    out.to_do.size(most) << " of this GPU can be this process's; ask for less\n";
    return;
  }
  out.to_do << "TIDEPOOL_LIMIT=";
  put_half_gibs(out.to_do, std::max(std::min(need, most) / (kGiB / 2) * (kGiB / 2), kGiB / 2));
  out.to_do << " ";
  put_command(out.to_do, failure);
  out.no_use << "waiting; ending other processes; MEM_FRACTION: the limit is this process's own";
}

void raise_share(const Failure& failure, Advice& out) {
  const Bytes need = failure.live + failure.requested;
  const unsigned share = std::min(95U, hundredths_of(failure, need + need / 10) + 1);
  if (hundredths_of(failure, need) >= 95) {
    out.to_do << "the program wants ";
    out.to_do.size(need) << " at once, which is all of the device: ask for less\n";
    return;
  }
  out.to_do << "XLA_PYTHON_CLIENT_MEM_FRACTION=";
  out.to_do.hundredths(share) << " ";
  put_command(out.to_do, failure);
  out.no_use << "ending other processes: the share is JAX's own";
}

void leave_others(const Failure& failure, Advice& out) {
  const Holder* largest = nullptr;
  for (std::size_t i = 0; i < failure.machine.listed; ++i)
    if (!failure.machine.holders[i].is_self && largest == nullptr) largest = &failure.machine.holders[i];
  if (const char* wait = failure.setting("TIDEPOOL_WAIT"); wait != nullptr && std::string_view(wait) != "0")
    out.to_do << "nothing, if it comes free within TIDEPOOL_WAIT=" << wait << ": the call is waiting\n";
  else
    (out.to_do << "TIDEPOOL_WAIT=600 ").printable(failure.command.view(), 60)
        << "    waits ten minutes for the memory\n";
  if (largest != nullptr && largest->in_sight) {
    out.to_do << "or end pid " << largest->pid << ", or start it by `tidepool run --mode ondemand -- ";
    out.to_do.printable(largest->command.view(), 40) << "`: it holds what it uses, then\n";
  } else if (largest != nullptr) {
    out.to_do << "or end pid " << largest->pid
              << ", which is not of this container: ask who runs the machine\n";
  }
  const Bytes fits = failure.known_free().value_or(0) / 100 * 95;
  const bool of_jax = failure.framework == Part::jax && failure.allocations_before == 0;
  if (of_jax && fits > kGiB && failure.total > 0 &&
      failure.setting("XLA_PYTHON_CLIENT_ALLOCATOR") == nullptr) {
    out.to_do << "or XLA_PYTHON_CLIENT_MEM_FRACTION=";
    out.to_do.hundredths(hundredths_of(failure, fits)) << "    JAX's pool fits what is free, if ";
    out.to_do.size(fits) << " are enough\n";
  }
  out.no_use << (failure.cached == 0 ? "trimming: this process caches nothing"
                                     : "trimming: what this process caches is too little");
}

void shrink_pool(const Failure& failure, Advice& out) {
  // A tenth less than was asked for at most: cuDNN, cuBLAS and NCCL take 0.3 to 1 GiB together.
  const Bytes pool = failure.largest_block;
  const Bytes smaller = std::max(pool - pool / 10, less(pool, kGiB));
  const unsigned share = hundredths_of(failure, smaller);
  if (failure.framework == Part::tensorflow)
    out.to_do << "TF_FORCE_GPU_ALLOW_GROWTH=true ";
  else if (failure.framework != Part::jax)
    out.to_do << "make the pool smaller, ", out.to_do.size(smaller) << " at the most: ";
  else
    out.to_do << "XLA_PYTHON_CLIENT_MEM_FRACTION=", out.to_do.hundredths(share) << " ";
  put_command(out.to_do, failure);
  out.no_use << "installing the library again: it is there, and has no memory";
}

void use_less(const Failure& failure, Advice& out) {
  const Bytes room = less(failure.total, failure.held_by_others() + failure.live);
  out.to_do << "ask for at most ";
  out.to_do.size(std::min(room, failure.known_free().value_or(room) + failure.cached))
      << " at once (a smaller batch, shards, half precision), or free some before\n";
  if (failure.allocations_before == 0)
    out.no_use << "MEM_FRACTION, waiting: this was the first buffer, and too large";
  else
    out.no_use << "trimming: " << (failure.cached == 0 ? "nothing is cached" : "what is cached is too little")
               << "; waiting for other processes";
}

void defragment(const Failure& failure, Advice& out) {
  if (failure.framework == Part::pytorch)
    out.to_do << "PYTORCH_ALLOC_CONF=expandable_segments:True ";
  else
    out.to_do << "TIDEPOOL_BACKING=vmm ";
  put_command(out.to_do, failure);
  out.no_use << "a smaller fraction or limit";
}

void make_room_for_context(const Failure& failure, Advice& out) {
  out.to_do << "a context takes 0.3 to 1 GiB; free that much, or use another GPU: CUDA_VISIBLE_DEVICES=N ";
  put_command(out.to_do, failure);
  out.no_use << "batch size, MEM_FRACTION: nothing was allocated yet";
}

void look_at_host(const Failure&, Advice& out) {
  out.to_do << "free host memory, or raise what locks it: `ulimit -l`, the container's memory limit\n";
  out.no_use << "anything about GPU memory: the GPU was not asked";
}

// Codes of cuda.h, CUresult.
void look_at_error(const Failure& failure, Advice& out) {
  switch (failure.error) {
    case 46:
      out.to_do
          << "the GPU is in exclusive mode, and another process has it: end that, or `nvidia-smi -c 0`\n";
      break;
    case 100:
      out.to_do << "no GPU is visible: look at CUDA_VISIBLE_DEVICES and the container's devices\n";
      break;
    case 101:
      out.to_do << "this GPU was not granted to the process: set CUDA_VISIBLE_DEVICES to those that were\n";
      break;
    default: out.to_do << "`tidepool doctor` looks at the driver and the devices\n"; break;
  }
  out.no_use << "anything about memory";
}

}  // namespace

void advise(const Failure& failure, Cause cause, Advice& out) {
  switch (cause) {
    case Cause::not_memory: return look_at_error(failure, out);
    case Cause::host_memory: return look_at_host(failure, out);
    case Cause::context: return make_room_for_context(failure, out);
    case Cause::own_limit: return raise_limit(failure, out);
    case Cause::framework_share: return raise_share(failure, out);
    case Cause::capacity:
    case Cause::own_use: return use_less(failure, out);
    case Cause::other_processes: return leave_others(failure, out);
    case Cause::own_pool: return shrink_pool(failure, out);
    case Cause::fragmentation: return defragment(failure, out);
    case Cause::unknown: out.to_do << "`tidepool doctor` shows who holds what now\n"; return;
  }
}

}  // namespace tidepool::report
