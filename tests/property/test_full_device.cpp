// An allocation fails only when the memory is really not there. On an idle device, a request whose size,
// rounded up to whole pages, is no more than the pages without a part of any block, those that the device
// still has and those that the policy holds, never fails, wherever they lie and whoever freed them last.
// Nothing is added for misalignment: every page is moved by itself, and a large block begins on one.
// Nor does a request fail that has a place in memory that is already mapped, in one run.
#include <random>

#include "tests/property/model.hpp"
#include "tests/property/seeds.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

constexpr int kSteps = 1500;
constexpr int kStepsPerAudit = 100;
constexpr std::uint64_t kStreams = 9;  // of eight threads, and none

class Trace {
 public:
  Trace(const std::string& name, std::uint64_t seed)
      : random_(seed),
        device_(round_up(256 * kMiB + below(3) * kGiB + below(kGiB), kPage)),
        fullest_(device_ / 100 * (80 + below(19))),
        largest_(Bytes{64 * kKiB} << below(12)),
        model_(name, {device_, device_ / 100 * below(100)}, device_) {}

  std::string run() {
    for (int step = 0; step < kSteps && fault().empty(); ++step) {
      if (model_.live() < fullest_ && below(20) != 0)
        request(any_size());
      else
        free_some();
      if (step % kStepsPerAudit == 0) model_.audit();
    }
    model_.finish();
    return fault();
  }

 private:
  std::string fault() const { return model_.fault().empty() ? fault_ : model_.fault(); }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  StreamKey any_stream() { return StreamKey{below(kStreams)}; }

  Bytes any_size() {
    switch (below(8)) {
      case 0: return 1 + below(64 * kKiB);
      case 1: return std::max(model_.free_pages(), Bytes{1});  // all that there is
      case 2: return 1 + below(model_.free_pages() + kPage);   // about all
      case 3: return std::max(model_.longest_run(kPage), Bytes{1});
      case 4: return (1 + below(8)) * largest_ / 8;  // sizes that come back
      default: return 1 + below(largest_);
    }
  }

  // What is asked for when the device is idle, so that a fence costs nothing, and one is always enough.
  void request(Bytes size) {
    const Bytes rounded = round_up(size, kGranule);
    const bool by_the_page = round_up(size, kPage) <= model_.free_pages();
    const bool in_a_run = rounded <= model_.longest_run(size >= 16 * kMiB ? kPage : kGranule);
    const Request request{size, any_stream()};
    auto block = model_.allocate(request);
    if (!block && block.failure().reason == Reason::needs_fence) {
      model_.open_fence();
      model_.close_fence(0);
      block = model_.allocate(request);
    }
    if (block) return;
    if (block.failure().reason == Reason::needs_fence) fault_ = "one fence on an idle device was not enough";
    if (by_the_page) fault_ = "a request failed that fits the free pages: " + std::to_string(size);
    if (in_a_run) fault_ = "a request failed that fits where it lies: " + std::to_string(size);
    free_some();
  }

  void free_some() {
    for (std::uint64_t count = 1 + below(4); count > 0; --count) {
      if (below(10) == 0)
        model_.free_idle(random_());
      else
        model_.free(random_(), any_stream());
    }
    if (below(50) == 0) model_.forget(any_stream());
    if (below(50) == 0) model_.trim(below(device_));
  }

  std::mt19937_64 random_;
  Bytes device_;
  Bytes fullest_;
  Bytes largest_;  // of the trace's usual sizes
  Model model_;
  std::string fault_;
};

}  // namespace

TEST_CASE("an allocation fails only when the memory is not there, by the page and up to 98 % full") {
  const std::string name = GENERATE(as<std::string>{}, "ondemand", "prealloc");
  for_seeds("policy " + name, 16, [&](std::uint64_t seed) { return Trace(name, seed).run(); });
}
