// Random calls against the model: whatever order they come in, no block is handed out that earlier work may
// still touch, and no invariant breaks, also where the backing refuses. (Devices that are nearly full:
// test_full_device.cpp.)
#include <random>

#include "tests/property/model.hpp"
#include "tests/property/seeds.hpp"

using namespace tidepool;
using namespace tidepool::testing;

namespace {

constexpr Bytes kDevice = 512 * kMiB;
constexpr int kSteps = 3000;
constexpr int kStepsPerAudit = 50;

class Walk {
 public:
  Walk(const std::string& name, std::uint64_t seed)
      : random_(seed), model_(name, {kDevice, kDevice / 4}, kDevice) {}

  // Nothing if all held, else what broke.
  std::string run() {
    for (int step = 0; step < kSteps && model_.fault().empty(); ++step) {
      act();
      if (step % kStepsPerAudit == 0) model_.audit();
    }
    model_.finish();
    return model_.fault();
  }

 private:
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  StreamKey any_stream() { return StreamKey{static_cast<std::uint64_t>(below(4))}; }  // 0: none

  Bytes any_size() {
    static const Bytes repeated[] = {512, 4096, 65536, kMiB, 3 * kMiB, 16 * kMiB, 24 * kMiB};
    switch (below(4)) {
      case 0: return 1 + random_() % (8 * kKiB);
      case 1: return 1 + random_() % (4 * kMiB);
      case 2: return 1 + random_() % (below(8) == 0 ? 128 * kMiB : 20 * kMiB);
      default: return repeated[below(7)];
    }
  }

  void act() {
    const int dice = below(1000);
    if (dice < 480) return allocate();
    if (dice < 900) return model_.free(random_(), any_stream());
    if (dice < 950) return model_.free_idle(random_());
    if (dice < 965) return model_.open_fence();
    if (dice < 980) return model_.close_fence(random_());
    if (dice < 985) return model_.forget(any_stream());
    if (dice < 990) return model_.trim(random_() % kDevice);
    if (dice < 995) model_.backing().refuse_call = below(3);
  }

  void allocate() {
    const Request request{any_size(), any_stream(), below(4) != 0, random_(),
                          static_cast<std::uint32_t>(random_())};
    const auto block = model_.allocate(request);
    if (!block && block.failure().reason == Reason::needs_fence && below(2) == 0) {
      model_.open_fence();
      model_.close_fence(random_());
    }
  }

  std::mt19937_64 random_;
  Model model_;
};

}  // namespace

TEST_CASE("no order of calls breaks a rule") {
  const std::string name = GENERATE(as<std::string>{}, "ondemand", "prealloc");
  for_seeds("policy " + name, 60, [&](std::uint64_t seed) { return Walk(name, seed).run(); });
}
