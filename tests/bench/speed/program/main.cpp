// A user's program on the GPU, one scene of it: `speed_program SCENE` prints that scene's figures. It links
// no driver and knows nothing of tidepool.
#include <cstdio>
#include <string_view>

#include "scenes.hpp"

namespace {

struct Scene {
  std::string_view name;
  void (*play)();
};

constexpr Scene kScenes[] = {
    {"stream-pair", speed::stream_pair},
    {"null-stream-pair", speed::null_stream_pair},
    {"per-thread-pair", speed::per_thread_pair},
    {"synchronous-pair", speed::synchronous_pair},
    {"busy-pair", speed::busy_pair},
    {"pointer-questions", speed::pointer_questions},
    {"random-mix", speed::random_mix},
    {"growth", speed::growth},
    {"threads-apart", speed::threads_apart},
    {"threads-together", speed::threads_together},
    {"handover", speed::handover},
    {"handover-long", speed::handover_long},
    {"torch-pair", speed::torch_pair},
    {"torch-mix", speed::torch_mix},
    {"launch", speed::launch},
    {"few-pairs", speed::few_pairs},
    {"many-pairs", speed::many_pairs},
    {"few-questions", speed::few_questions},
    {"many-questions", speed::many_questions},
};

}  // namespace

int main(int count, char** arguments) {
  for (const Scene& scene : kScenes) {
    if (count != 2 || scene.name != arguments[1]) continue;
    scene.play();
    return 0;
  }
  std::fprintf(stderr, "usage: speed_program SCENE; scenes:");
  for (const Scene& scene : kScenes) std::fprintf(stderr, " %s", scene.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}
