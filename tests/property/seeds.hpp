// Seeds of random tests: a failure prints one, TIDEPOOL_SEED repeats it alone, TIDEPOOL_WALKS asks for more.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/unit/policies/checked_backing.hpp"

namespace tidepool::testing {

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Calls walk(seed), which returns what went wrong, for `walks` seeds.
template <typename Walk>
void for_seeds(const std::string& what, std::uint64_t walks, Walk walk) {
  const std::uint64_t first = from_environment("TIDEPOOL_SEED", 1);
  walks = std::getenv("TIDEPOOL_SEED") ? 1 : from_environment("TIDEPOOL_WALKS", walks);
  for (std::uint64_t seed = first; seed < first + walks; ++seed) {
    INFO("repeat with TIDEPOOL_SEED=" << seed << ", " << what);
    std::string fault;
    try {
      fault = walk(seed);
    } catch (const BrokenRule& rule) {
      fault = rule.what();
    }
    INFO(fault);
    REQUIRE(fault.empty());
  }
}

}  // namespace tidepool::testing
