// Runs the fuzzed function without libFuzzer: on the files named, such as its corpus or what it found, or
// on random bytes.
//
// Usage: fuzz_policy [FILE…]   TIDEPOOL_SEED=N one input of random bytes, TIDEPOOL_WALKS=N so many
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::uint64_t kInputs = 300;
std::uint64_t running = 0;

void name_seed(int) {
  std::fprintf(stderr, "fuzz: repeat with TIDEPOOL_SEED=%ju\n", static_cast<std::uintmax_t>(running));
}

void run_file(const char* name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fuzz_policy: cannot read %s\n", name);
    std::exit(2);
  }
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void run_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(64 + random() % 1500);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  running = seed;
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int count, char** names) {
  for (int i = 1; i < count; ++i) run_file(names[i]);
  if (count > 1) return 0;
  std::signal(SIGABRT, name_seed);  // a fault aborts
  const char* seed = std::getenv("TIDEPOOL_SEED");
  const char* walks = std::getenv("TIDEPOOL_WALKS");
  const std::uint64_t first = seed ? std::strtoull(seed, nullptr, 10) : 1;
  const std::uint64_t inputs = seed ? 1 : walks ? std::strtoull(walks, nullptr, 10) : kInputs;
  for (std::uint64_t i = 0; i < inputs; ++i) run_random(first + i);
  std::printf("%ju inputs\n", static_cast<std::uintmax_t>(inputs));
}
