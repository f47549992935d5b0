// The cost model's sums; see cost.hpp for what it is for and cost.def for the figures.
#include "cost.hpp"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "call.hpp"

namespace sim {
namespace {

enum Profile { none, a100, h200 };
const char* const profile_names[] = {"none", "a100", "h200"};

struct Price {
  std::uint64_t call = 0, per_mib = 0;
};

constexpr int count = static_cast<int>(Name::count_);
Price prices[count];
constinit std::atomic<std::uint64_t> spent[count] = {};

Profile read_profile() {
  const char* text = std::getenv("SIM_COST");
  if (!text || !*text) return none;
  for (const Profile profile : {none, a100, h200})
    if (!std::strcmp(text, profile_names[profile])) return profile;
  std::fprintf(stderr, "simulated GPU: SIM_COST=%s is not h200, a100 or none\n", text);
  std::abort();
}

void set_prices(Profile wanted) {
#define COST(profile, entry, ns, ns_per_mib) \
  if (wanted == (profile)) prices[static_cast<int>(Name::entry)] = {ns, ns_per_mib};
#include "cost.def"
  for (int i = 0; i < count; ++i) {
    const std::string name = name_of(static_cast<Name>(i));
    const auto suffix = name.rfind("_pts");
    if (suffix == std::string::npos) continue;
    for (int base = 0; base < count; ++base)
      if (name.compare(0, suffix, name_of(static_cast<Name>(base))) == 0) prices[i] = prices[base];
  }
}

Profile profile() {
  static const Profile chosen = [] {
    const Profile read = read_profile();
    set_prices(read);
    return read;
  }();
  return chosen;
}

}  // namespace

bool costs_asked() { return profile() != none; }

void add_cost(int entry, std::size_t bytes) {
  const Price& price = prices[entry];
  const std::uint64_t ns = price.call + bytes * price.per_mib / (1 << 20);
  if (ns) spent[entry].fetch_add(ns, std::memory_order_relaxed);
}

void forget_costs() {
  for (auto& sum : spent) sum = 0;
}

nlohmann::ordered_json modelled_costs() {
  nlohmann::ordered_json entries = nlohmann::ordered_json::object();
  std::uint64_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (!spent[i]) continue;
    entries[name_of(static_cast<Name>(i))] = spent[i].load();
    total += spent[i];
  }
  return {{"profile", profile_names[profile()]}, {"total_ns", total}, {"entries", entries}};
}

}  // namespace sim
