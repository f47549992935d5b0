// Threads that open, look up and close at once, while the driver is found for the first time, with forks in
// between: nothing may hang, crash or call a stale address. Uses what libraries are named on its command
// line; all counts are of successes, so the output does not depend on the order.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 300;
std::atomic<bool> go{false};
std::atomic<int> failures{0};

void expect(bool holds) {
  if (!holds) failures.fetch_add(1);
}

void look_up() {
  for (int i = 0; i < kRounds; ++i) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    expect(driver != nullptr && dlsym(driver, "cuInit") != nullptr &&
           dlsym(driver, "cuMemAlloc_v2") != nullptr);
    expect(dlsym(RTLD_DEFAULT, "strlen") != nullptr && dlsym(driver, "no such name") == nullptr);
    dlclose(driver);
  }
}

void open_deeply(const char* library) {
  for (int i = 0; i < kRounds; ++i) {
    void* client = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    expect(client != nullptr && dlsym(client, "run_client") != nullptr);
    if (client != nullptr) dlclose(client);
  }
}

// A child has one thread, and whatever locks of ours the others held. It may not open anything: glibc's own
// list may be half changed in it (its assertion says so, without a shim too).
void fork_and_look_up() {
  for (int i = 0; i < kRounds / 10; ++i) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const pid_t child = fork();
    if (child == 0)
      _exit(dlsym(driver, "cuInit") != nullptr && dlsym(driver, "cuMemFree_v2") != nullptr ? 0 : 1);
    int status = 1;
    expect(waitpid(child, &status, 0) == child && status == 0);
    dlclose(driver);
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::thread> threads;
  const auto start = [&](auto work) {
    threads.emplace_back([work] {
      while (!go) std::this_thread::yield();
      work();
    });
  };
  for (int i = 0; i < kThreads; ++i) start(look_up);
  for (int i = 1; i < count; ++i) start([library = arguments[i]] { open_deeply(library); });
  go = true;
  fork_and_look_up();
  for (std::thread& thread : threads) thread.join();
  std::printf("failures: %d\n", failures.load());
  return failures == 0 ? 0 : 1;
}
