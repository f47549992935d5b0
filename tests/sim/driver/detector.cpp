// Reports of memory used after it is gone; see detector.hpp.
#include "detector.hpp"

#include <cstdio>

#include "call.hpp"
#include "pool.hpp"
#include "rules.hpp"

namespace sim {
namespace {

constexpr std::size_t kept_reports = 1000;

Violations& reports() {
  static Violations* const instance = new Violations;
  return *instance;
}

struct Dying {
  std::uint64_t base, bytes;
  std::uint64_t number;
};
std::vector<Dying>& dying() {
  static auto* const list = new std::vector<Dying>;
  return *list;
}

void report(const std::string& text, bool certain) {
  auto& list = certain ? reports().certain : reports().possible;
  if (list.size() < kept_reports) list.push_back(text);
  if (!certain && !rules().report_possible) return;
  std::fprintf(stderr, "sim: %s%s\n", certain ? "" : "possible ", text.c_str());
  log_violation(text, certain);
}

std::string range_text(std::uint64_t base, std::uint64_t bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%llx + %llu", static_cast<unsigned long long>(base),
                static_cast<unsigned long long>(bytes));
  return text;
}

std::string work_text(const Operation& operation) {
  const bool kernel =
      operation.work.kind == Work::Kind::kernel || operation.work.kind == Work::Kind::foreign_kernel;
  return std::string(kernel ? "kernel " : "") + operation.work.name + " on stream " +
         std::to_string(operation.lane->id);
}

bool overlaps(const Work& work, std::uint64_t base, std::uint64_t bytes) {
  for (const Touch& touch : work.touches)
    if (touch.base < base + bytes && base < touch.base + touch.bytes) return true;
  return false;
}

// Whether a kernel of the context may use the block.
bool has_access(const Context& context, const Block& block, bool writes) {
  const unsigned bit = 1u << context.device;
  switch (block.kind) {
    case Block::Kind::mapped: return (writes ? block.writers : block.readers) & bit;
    case Block::Kind::device:
      return block.device == context.device || (block.context && context.peers.contains(block.context->id));
    case Block::Kind::stream_ordered: {
      if (block.device == context.device) return true;
      const auto at = block.pool->access.find(context.device);
      return at != block.pool->access.end() && (at->second == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
                                                (!writes && at->second == CU_MEM_ACCESS_FLAGS_PROT_READ));
    }
    default: return true;
  }
}

// How many bytes from address on are there for the context; 0: none.
std::uint64_t reach(const Context& context, std::uint64_t address, bool writes, bool on_device) {
  if (const Block* block = state().find_block(address))
    if (on_device ? has_access(context, *block, writes) : block->accessible)
      return block->base + block->size - address;
  for (const Dying& one : dying())
    if (address >= one.base && address < one.base + one.bytes) return one.base + one.bytes - address;
  return 0;
}

}  // namespace

const Violations& violations() { return reports(); }

void add_dying(std::uint64_t base, std::uint64_t bytes, std::uint64_t number) {
  dying().push_back({base, bytes, number});
}

void remove_dying(std::uint64_t number) {
  std::erase_if(dying(), [number](const Dying& one) { return one.number == number; });
}

void check_release(const char* how, std::uint64_t base, std::uint64_t bytes, unsigned devices,
                   std::uint64_t sequence) {
  if (!timeline().pending()) return;
  const Operation* certain = nullptr;
  const Operation* possible = nullptr;
  for (const auto& [id, lane] : timeline().lanes())
    for (const auto& operation : lane->queue) {
      if (operation->sequence > sequence) break;
      if (overlaps(operation->work, base, bytes)) {
        if (!certain) certain = operation.get();
      } else if (operation->work.kind == Work::Kind::foreign_kernel && !possible &&
                 devices >> lane->context->device & 1) {
        possible = operation.get();
      }
    }
  const auto text = [&](const Operation& operation) {
    return std::string("use-after-free by the device: ") + how + " of " + range_text(base, bytes) +
           " while " + work_text(operation) + " (queued before) is unfinished";
  };
  if (certain) report(text(*certain), true);
  if (possible) report(text(*possible), false);
}

bool check_touches(Context& context, const char* name, const std::vector<Touch>& touches, bool on_device) {
  for (const Touch& touch : touches) {
    for (std::uint64_t at = touch.base; at < touch.base + touch.bytes;) {
      if (const std::uint64_t bytes = reach(context, at, touch.writes, on_device)) {
        at += bytes;
        continue;
      }
      report("illegal address: " + std::string(name) + (touch.writes ? " writes " : " reads ") +
                 range_text(touch.base, touch.bytes) + ", of which " + range_text(at, 1) +
                 " is not there for device " + std::to_string(context.device),
             true);
      context.error = CUDA_ERROR_ILLEGAL_ADDRESS;
      timeline().abandon_after_this(context);
      return false;
    }
  }
  return true;
}

}  // namespace sim
