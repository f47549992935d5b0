// Counting, refusing and logging of calls; see call.hpp.
#include "call.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>

#include "cost.hpp"
#include "faults.hpp"
#include "settings.hpp"
#include "state.hpp"

namespace sim {
namespace {

constexpr int count = static_cast<int>(Name::count_);
constinit std::atomic<std::uint64_t> counters[count] = {};
constinit std::atomic<Life> life_{Life::fresh};
thread_local int per_thread_depth = 0;
thread_local int callback_depth = 0;

const char* const names[] = {
#define SIM_NAME(name) #name,
#include "names.inc"
#undef SIM_NAME
};

constexpr int not_open = -2;
constexpr int no_log = -1;
constinit std::atomic<int> log_file{not_open};
constinit std::mutex log_mutex;

int open_log() {
  const std::lock_guard lock(log_mutex);
  if (const int file = log_file.load(); file != not_open) return file;
  int file = no_log;
  if (!settings().log.empty()) {
    const std::string path = expand_path(settings().log);
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) std::fprintf(stderr, "simulated GPU: cannot write SIM_LOG %s\n", path.c_str());
  }
  log_file = file;
  return file;
}

// A child has its own log and its own counts. Its parent's driver is dead in it (measured on real
// ones: every call of the child fails with NOT_INITIALIZED), unless the parent never called cuInit.
void in_child() {
  if (life_ == Life::running) life_ = Life::orphaned;
  if (const int file = log_file.exchange(not_open); file >= 0) ::close(file);
  for (auto& counter : counters) counter = 0;
  forget_costs();
}

// No other thread is within the driver while the process is copied, so the child finds no lock taken.
void before_fork() {
  driver_mutex().lock();
  log_mutex.lock();
}

void in_parent() {
  log_mutex.unlock();
  driver_mutex().unlock();
}

void in_fork_child() {
  in_parent();
  in_child();
}

[[gnu::constructor]] void watch_forks() { pthread_atfork(before_fork, in_parent, in_fork_child); }

nlohmann::json value_of(const Argument& argument, CUresult result) {
  const bool out = argument.kind == Argument::Kind::word_out || argument.kind == Argument::Kind::int_out;
  if (out && (!argument.value || result != CUDA_SUCCESS)) return nullptr;
  switch (argument.kind) {
    case Argument::Kind::word_out: return *reinterpret_cast<const std::uint64_t*>(argument.value);
    case Argument::Kind::int_out: return *reinterpret_cast<const int*>(argument.value);
    case Argument::Kind::text:
      return argument.value ? nlohmann::json(reinterpret_cast<const char*>(argument.value)) : nullptr;
    default: return argument.value;
  }
}

}  // namespace

const char* name_of(Name name) { return names[static_cast<int>(name)]; }
std::uint64_t calls_of(Name name) { return counters[static_cast<int>(name)]; }
Life life() { return life_; }
void set_life(Life value) { life_ = value; }

Call::Call(Name name, Gate gate) : name_(name) {
  const std::uint64_t earlier = counters[static_cast<int>(name)].fetch_add(1, std::memory_order_relaxed);
  static const bool faulty = faults_asked();
  if (faulty && (result = fault_of(static_cast<int>(name), earlier + 1)) != CUDA_SUCCESS) return;
  if (callback_depth) {
    result = CUDA_ERROR_NOT_PERMITTED;
  } else if (gate == Gate::initialized) {
    switch (life_.load(std::memory_order_acquire)) {
      case Life::running: break;
      case Life::over: result = CUDA_ERROR_DEINITIALIZED; break;
      default: result = CUDA_ERROR_NOT_INITIALIZED; break;
    }
  }
}

void Call::charge(std::size_t bytes) const {
  static const bool costly = costs_asked();
  if (costly) add_cost(static_cast<int>(name_), bytes);
}

void Call::unsupported() {
  unsupported_ = true;
  if (open()) result = CUDA_ERROR_NOT_SUPPORTED;
}

bool Call::logged() const {
  const int file = log_file.load(std::memory_order_relaxed);
  return (file == not_open ? open_log() : file) >= 0;
}

void Call::log(std::initializer_list<Argument> arguments) const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  nlohmann::ordered_json line = {{"time", now.tv_sec * 1'000'000'000LL + now.tv_nsec},
                                 {"pid", getpid()},
                                 {"tid", static_cast<int>(syscall(SYS_gettid))},
                                 {"entry", name_of(name_)},
                                 {"result", static_cast<int>(result)}};
  if (unsupported_) line["implemented"] = false;
  nlohmann::ordered_json& values = line["args"] = nlohmann::ordered_json::object();
  for (const Argument& argument : arguments) values[argument.name] = value_of(argument, result);
  std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // One write per line: processes that share the file do not cut each other's lines.
  while (::write(log_file, text.data(), text.size()) < 0 && errno == EINTR) {
  }
}

void log_violation(const std::string& text, bool certain) {
  const int known = log_file.load(std::memory_order_relaxed);
  const int file = known == not_open ? open_log() : known;
  if (file < 0) return;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const nlohmann::ordered_json line = {{"time", now.tv_sec * 1'000'000'000LL + now.tv_nsec},
                                       {"pid", getpid()},
                                       {"violation", text},
                                       {"certain", certain}};
  const std::string written = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  while (::write(file, written.data(), written.size()) < 0 && errno == EINTR) {
  }
}

CallbackScope::CallbackScope() { ++callback_depth; }
CallbackScope::~CallbackScope() { --callback_depth; }
PerThreadScope::PerThreadScope() { ++per_thread_depth; }
PerThreadScope::~PerThreadScope() { --per_thread_depth; }
bool PerThreadScope::active() { return per_thread_depth > 0; }

}  // namespace sim
