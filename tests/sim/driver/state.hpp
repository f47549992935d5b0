// Everything the driver knows, under one lock, and the look-ups that every entry starts with.
//
// One lock is enough here: entries are short, and an order of locks would be one more thing to
// trust. Never destroyed, since clients call the driver from their own exit handlers.
#pragma once
#include <cuda.h>

#include <map>
#include <mutex>
#include <string>

#include "context.hpp"
#include "device.hpp"

namespace sim {

class Pool;

// An address range that the driver knows.
struct Block {
  // imported: of another process, by IPC or from its pool.
  enum class Kind { device, managed, stream_ordered, mapped, host, registered, imported };
  Kind kind = Kind::device;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  int device = 0;
  Context* context = nullptr;  // null: belongs to no context (mapped, stream-ordered)
  Pool* pool = nullptr;
  CUmemGenericAllocationHandle handle = 0;  // mapped
  bool accessible = true;                   // mapped: after cuMemSetAccess
  unsigned readers = 0, writers = 0;        // mapped: a bit per device
  unsigned flags = 0;
  std::uint64_t id = 0;
  bool sync_memops = false;
  unsigned long long handle_types = 0;  // it can be exported as
  bool low = false;                     // of the 32-bit ABI: mapped by itself, below 4 GiB
};

// Imported from a pool of another process: freed like the pool's own (cuda.h, cuMemPoolImportPointer).
inline bool from_pool(const Block& block) { return block.kind == Block::Kind::imported && block.pool; }

using Blocks = std::map<std::uint64_t, Block, std::less<std::uint64_t>,
                        NodeStore<std::pair<const std::uint64_t, Block>>>;

struct State {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Context>> primary;  // by ordinal, kept for ever: the same handle comes back
  std::vector<bool> primary_active;               // a reset ends the context, not the references to it
  std::vector<unsigned> primary_references;
  std::vector<unsigned> primary_flags;
  Table<Context, CUcontext> contexts;  // created ones
  Table<Stream, CUstream> streams;
  Table<Event, CUevent> events;
  Table<Graph, CUgraph> graphs;
  Table<Module, CUmodule> modules;
  std::unordered_map<CUfunction, Function*> functions;
  Blocks blocks;
  std::vector<std::shared_ptr<Capture>> captures;
  std::uint64_t next_id = 1;

  Context* find_context(CUcontext handle);
  // The block that holds address, or null.
  Block* find_block(std::uint64_t address);
  Block& add_block(Block block);
};

State& state();

// Outside the state, so that a fork can be kept out without making one.
std::mutex& driver_mutex();

// Held by every entry for as long as it looks at the state. A call takes time.
class Lock : public std::unique_lock<std::mutex> {
 public:
  Lock() : std::unique_lock<std::mutex>(driver_mutex()) { timeline().tick(); }
};

int thread_id();

// The calling thread's stack of current contexts.
CUcontext current_handle();
CUresult push_current(CUcontext handle);
CUresult pop_current(CUcontext* handle);
void replace_current(CUcontext handle);
// The current context if it lives. INVALID_CONTEXT if there is none, CONTEXT_IS_DESTROYED if it is dead,
// its error if its work failed; with even_broken it is found all the same.
CUresult current_context(Context** context, bool even_broken = false);

// Resolves NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD and created streams. Fails with the context's
// error if its work failed.
CUresult find_stream(CUstream handle, Stream** stream);
// Gives a new stream its queue.
void open_lane(Stream& stream, bool legacy);

// Waits for all work of the context; its error afterwards.
CUresult drain(Lock& lock, Context& context);

// Frees what dies with a context: its cuMemAlloc, pitch, managed and host memory, streams, events,
// modules; not its cuMemCreate or stream-ordered memory (cuda.h, cuCtxDestroy).
void destroy_contents(Context* context);
void free_block(Blocks::iterator at);
void free_memory(const Block& block);  // of a block that is not known any more
// Before a call takes a block away: reports unfinished work that may use it.
void check_free(const char* how, const Block& block);
unsigned devices_with_access(const Block& block);

bool valid_device(CUdevice device);

// Host memory as the driver hands it out: whole pages, zeroed, without a cost until touched.
void* map_host(std::size_t bytes);
void unmap_host(std::uint64_t base, std::size_t bytes);

#define SIM_TRY(expression) \
  if (const CUresult sim_result = (expression); sim_result != CUDA_SUCCESS) return sim_result

}  // namespace sim
