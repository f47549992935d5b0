// Threads of ours in the application's process.
#include "shim/base/own_threads.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>

namespace tidepool::own_threads {
namespace {

constexpr std::size_t kStack = 512 << 10;  // the default may be as large as the user's limit

constinit std::atomic<int> alive{0};
constinit std::atomic<bool> ending{false};

struct Task {
  const char* name;
  void (*body)(void*);
  void* argument;
};

void* run(void* started) {
  const Task task = *std::unique_ptr<Task>(static_cast<Task*>(started));
  // Counted by itself: never more than there are, which would end a program that still has a thread.
  alive.fetch_add(1);
  ::prctl(PR_SET_NAME, task.name);
  task.body(task.argument);
  alive.fetch_sub(1);
  return nullptr;
}

// The first thread stays on the list when it has ended, until the process does.
bool first_thread_ended() {
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  char text[256];
  const ssize_t length = file < 0 ? 0 : ::read(file, text, sizeof text - 1);
  if (file >= 0) ::close(file);
  text[length > 0 ? length : 0] = '\0';
  const char* state = ::strrchr(text, ')');
  return state != nullptr && state[1] == ' ' && state[2] == 'Z';
}

int threads_of_process() {
  int threads = 0;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  while (const dirent* entry = ::readdir(tasks)) threads += entry->d_name[0] != '.';
  ::closedir(tasks);
  return threads;
}

}  // namespace

bool start(const char* name, void (*body)(void*), void* argument) {
  std::unique_ptr<Task> task(new (std::nothrow) Task{name, body, argument});
  pthread_attr_t attributes;
  if (task == nullptr || pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStack);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, run, task.get()) == 0;
  if (started) static_cast<void>(task.release());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

void exit_if_left_alone() {
  if (first_thread_ended() && threads_of_process() == alive.load() + 1 && !ending.exchange(true)) ::exit(0);
}

}  // namespace tidepool::own_threads
