// ConcurrentTable alone: a random walk against a map, and readers that must never miss what is there while
// one thread inserts, erases and grows.
#include <catch2/catch.hpp>
#include <deque>
#include <random>
#include <thread>
#include <unordered_map>

#include "policies/concurrent_table.hpp"
#include "policies/units.hpp"
#include "tests/unit/policies/failing_new.hpp"

using namespace tidepool;

namespace {

struct Object {
  explicit Object(std::uint64_t key) : key_(key) {}
  std::uint64_t key() const { return key_; }
  std::uint64_t key_;
};
using Table = ConcurrentTable<Object>;

// As device addresses are, and as stream handles are.
std::uint64_t address(std::uint64_t n) { return (std::uint64_t{0x7000} << 32) + n * kGranule; }

void add(Table& table, Object& object) {
  table.prepare(1);
  table.insert(&object);
}

}  // namespace

TEST_CASE("an empty table finds nothing") {
  const Table table;
  CHECK(table.find(1) == nullptr);
  CHECK(table.size() == 0);
}

TEST_CASE("random objects come and go, and every look-up is the map's") {
  std::mt19937_64 random(1);
  Table table;
  std::deque<Object> objects;
  std::unordered_map<std::uint64_t, Object*> model;
  for (std::uint64_t step = 0; step < 60'000; ++step) {
    // Few keys, so that chains are long, are holed and wrap around; more and more of them, so that it grows.
    const std::uint64_t key = address(random() % (50 + step / 20));
    const auto known = model.find(key);
    REQUIRE(table.find(key) == (known == model.end() ? nullptr : known->second));
    if (known == model.end()) {
      add(table, objects.emplace_back(key));
      model[key] = &objects.back();
    } else {
      table.erase(known->second);
      model.erase(known);
    }
    REQUIRE(table.size() == model.size());
  }
  for (const auto& [key, object] : model) REQUIRE(table.find(key) == object);
}

TEST_CASE("an erased key is gone and its neighbours in the chain are still found, at full load") {
  Table table;
  std::deque<Object> objects;
  for (std::uint64_t n = 0; n < 192; ++n) add(table, objects.emplace_back(address(n)));  // 3/4 of 256
  for (std::uint64_t gone = 0; gone < 192; ++gone) {
    table.erase(&objects[gone]);
    for (std::uint64_t n = 0; n < 192; ++n)
      REQUIRE(table.find(address(n)) == (n <= gone ? nullptr : &objects[n]));
  }
}

TEST_CASE("without host memory prepare changes nothing") {
  Table table;
  std::deque<Object> objects;
  for (std::uint64_t n = 0; n < 192; ++n) add(table, objects.emplace_back(address(n)));
  for (int n = 0; n < 3; ++n) {
    CHECK(testing::throws_without_memory(n, [&] { table.prepare(10); }));
    for (std::uint64_t i = 0; i < 192; ++i) REQUIRE(table.find(address(i)) == &objects[i]);
  }
  add(table, objects.emplace_back(address(192)));
  CHECK(table.find(address(192)) == &objects.back());
}

TEST_CASE("readers find what stays, and nothing that never was, while a thread changes the table") {
  constexpr std::uint64_t kStaying = 64;
  constexpr std::uint64_t kComing = 3000;
  Table table;
  std::deque<Object> staying, coming;
  for (std::uint64_t n = 0; n < kStaying; ++n) add(table, staying.emplace_back(address(n * 7)));
  for (std::uint64_t n = 0; n < kComing; ++n) coming.emplace_back(address(1000 + n));

  std::atomic<bool> stop{false};
  std::atomic<int> faults{0};
  std::atomic<int> reading{0};
  std::vector<std::thread> readers;
  for (unsigned seed = 0; seed < 3; ++seed)
    readers.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      ++reading;
      while (!stop.load(std::memory_order_relaxed)) {
        const std::uint64_t n = random() % kStaying;
        if (table.find(address(n * 7)) != &staying[n]) ++faults;
        if (table.find(address(1'000'000 + n)) != nullptr) ++faults;
        const std::uint64_t c = random() % kComing;
        if (Object* found = table.find(address(1000 + c)); found != nullptr && found != &coming[c]) ++faults;
      }
    });
  while (reading < 3) std::this_thread::yield();

  std::mt19937_64 random(99);
  std::vector<bool> inside(kComing);
  for (std::uint64_t step = 0; step < 60'000; ++step) {
    const std::uint64_t n = random() % (10 + step * kComing / 60'000) % kComing;  // grows several times
    if (inside[n])
      table.erase(&coming[n]);
    else
      add(table, coming[n]);
    inside[n] = !inside[n];
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(faults == 0);
}
