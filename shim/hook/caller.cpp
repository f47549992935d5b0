// Walks the stack of a call by its unwind tables, and has CPython write its own by the function that it keeps
// for crashes, which allocates nothing and may run without the interpreter's lock.
#include "shim/hook/caller.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cstring>

#include "shim/hook/objects.hpp"

namespace tidepool {
namespace {

using report::Part;

constexpr struct {
  const char* in_name;
  Part part;
} kParts[] = {{"libcudnn", Part::cudnn},
              {"libcublas", Part::cublas},
              {"libcusolver", Part::cusolver},
              {"libnccl", Part::nccl},
              {"libcufft", Part::cufft},
              {"xla_cuda", Part::jax},
              {"libtensorflow", Part::tensorflow},
              {"libtorch", Part::pytorch},
              {"libc10", Part::pytorch}};

struct Stack {
  std::array<std::uintptr_t, 64> addresses;
  std::size_t count = 0;
};

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void* data) {
  auto& stack = *static_cast<Stack*>(data);
  if (stack.count == stack.addresses.size()) return _URC_END_OF_STACK;
  stack.addresses[stack.count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// The innermost frame that is in the library; a large number for none.
std::size_t first_frame_in(const elf::Library& library, const Stack& stack) {
  for (std::size_t frame = 0; frame < stack.count; ++frame)
    for (std::size_t i = 0; i < library.header_count; ++i) {
      const auto& header = library.headers[i];
      const std::uintptr_t begin = library.base + header.p_vaddr;
      if (header.p_type == PT_LOAD && stack.addresses[frame] >= begin &&
          stack.addresses[frame] < begin + header.p_memsz)
        return frame;
    }
  return stack.addresses.size();
}

void name_parts(const Stack& stack, report::Failure& failure) {
  std::size_t framework_at = stack.addresses.size();
  std::size_t library_at = stack.addresses.size();
  for_each_library([&](const elf::Library& library) {
    for (const auto& known : kParts) {
      const bool named = std::strstr(elf::name_of(library), known.in_name) != nullptr ||
                         (library.path != nullptr && std::strstr(library.path, known.in_name) != nullptr);
      if (!named) continue;
      const std::size_t frame = first_frame_in(library, stack);
      std::size_t& nearest = report::is_library(known.part) ? library_at : framework_at;
      if (frame < nearest) {
        nearest = frame;
        (report::is_library(known.part) ? failure.library : failure.framework) = known.part;
      }
      break;
    }
    return false;
  });
}

struct Interpreter {
  std::atomic<bool> looked{false};
  std::atomic<void (*)(int, void*)> dump_traceback{nullptr};
  std::atomic<void* (*)()> this_thread{nullptr};
};
constinit Interpreter interpreter;

// Once found it stays: an interpreter is not unloaded. CPython 3.10, and 3.13 and later, do not export the first.
void find_interpreter() {
  if (interpreter.looked.load(std::memory_order_acquire)) return;
  for_each_library([](const elf::Library& library) {
    void* dump = elf::address_of(library, "_Py_DumpTraceback");
    void* thread = elf::address_of(library, "PyGILState_GetThisThreadState");
    if (dump == nullptr || thread == nullptr) return false;
    interpreter.this_thread = reinterpret_cast<void* (*)()>(thread);
    interpreter.dump_traceback = reinterpret_cast<void (*)(int, void*)>(dump);
    interpreter.looked.store(true, std::memory_order_release);
    return true;
  });
}

// Of the lines of a stack, those of the program's own files: a framework has thirty above them.
class StackFilter {
 public:
  explicit StackFilter(report::Name<2048>& out) : out_(out) {}
  void put(char letter) {
    if (letter != '\n') {
      if (length_ < sizeof line_ - 2) line_[length_++] = letter;
      return;
    }
    line_[length_] = '\0';
    // The first line says that the most recent call comes first.
    const bool of_program =
        std::strstr(line_, "-packages/") == nullptr && std::strstr(line_, "File \"<frozen") == nullptr;
    if (count_++ > 0 && of_program && used_ + length_ + 2 < sizeof out_.text) {
      line_[length_++] = '\n';
      std::memcpy(out_.text + used_, line_, length_);
      used_ += length_;
      out_.text[used_] = '\0';
    }
    length_ = 0;
  }

 private:
  report::Name<2048>& out_;
  char line_[512];
  std::size_t length_ = 0, used_ = 0, count_ = 0;
};

// By a pipe: the interpreter writes to a descriptor. More than the pipe holds is lost, and nothing waits.
void read_python_stack(report::Name<2048>& out) {
  find_interpreter();
  if (interpreter.dump_traceback == nullptr) return;
  void* const thread = interpreter.this_thread.load()();
  int ends[2];
  if (thread == nullptr || ::pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return;
  interpreter.dump_traceback.load()(ends[1], thread);
  ::close(ends[1]);
  StackFilter filter(out);
  char chunk[512];
  for (ssize_t size = 0; (size = ::read(ends[0], chunk, sizeof chunk)) > 0;)
    for (ssize_t i = 0; i < size; ++i) filter.put(chunk[i]);
  ::close(ends[0]);
}

// As one would type it: "python train.py".
void read_command(report::Failure& failure) {
  char words[sizeof failure.command.text];
  const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  const ssize_t size = file < 0 ? 0 : ::read(file, words, sizeof words - 1);
  if (file >= 0) ::close(file);
  if (size <= 0) return;
  words[size] = '\0';
  const char* const folder = std::strrchr(words, '/');  // of the first word: the others follow a null
  const char* const begin = folder == nullptr ? words : folder + 1;
  for (char* letter = words; letter < words + size - 1; ++letter)
    if (*letter == '\0') *letter = ' ';
  failure.command = begin;
}

}  // namespace

void look_at_caller(report::Failure& failure, report::Name<2048>& python_stack) {
  read_command(failure);
  Stack stack;
  _Unwind_Backtrace(note_frame, &stack);
  name_parts(stack, failure);
  read_python_stack(python_stack);
}

}  // namespace tidepool
