// The books: accounts and their limit, owners of addresses, the application's own virtual memory.
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "shim/ledger/account.hpp"
#include "shim/ledger/ledger.hpp"
#include "shim/ledger/mappings.hpp"

using namespace tidepool;

TEST_CASE("an account never gives more than its limit, whoever asks at once") {
  Account account;
  account.set_limit(1000);
  std::atomic<int> granted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100; ++round)
        if (account.take(7)) ++granted;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(granted == 1000 / 7);
  account.give_back(7);
  CHECK(account.take(7));
  CHECK(!account.take(7));
}

TEST_CASE("a request that overflows is refused by a limit, not wrapped") {
  Account account;
  account.set_limit(kUnlimited - 1);
  REQUIRE(account.take(10));
  CHECK(!account.take(kUnlimited));
  CHECK(!account.take(kUnlimited - 5));
}

TEST_CASE("a gauge keeps its highest mark") {
  Gauge gauge;
  gauge.add(5);
  gauge.add(7);
  gauge.subtract(10);
  gauge.add(1);
  CHECK(gauge.now() == 3);
  CHECK(gauge.peak() == 12);
}

TEST_CASE("a removed record is gone, and a context takes only its own synchronous blocks") {
  Ledger ledger;
  ledger.add({512}, {.requested = 1, .context = 7});
  ledger.add({1024}, {.requested = 2, .kind = Kind::stream_ordered, .context = 7});
  ledger.add({1536}, {.requested = 3, .context = 8});
  CHECK(ledger.find({512})->requested == 1);
  CHECK(!ledger.find({513}));
  const auto removed = ledger.remove_context(7);
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].first == Address{512});
  CHECK(ledger.find({1024}));
  CHECK(ledger.remove({1536})->requested == 3);
  CHECK(!ledger.remove({1536}));
}

TEST_CASE("physical memory ends with the last of its handle and its mappings, in any order") {
  constexpr std::uint64_t kHandle = 9;
  for (const bool release_first : {true, false}) {
    Mappings mappings;
    mappings.created(kHandle, {.device = 1, .size = 4096});
    mappings.mapped({0x10000}, 4096, kHandle);
    mappings.mapped({0x20000}, 4096, kHandle);
    if (release_first) {
      CHECK(!mappings.end_use(*mappings.take_handle(kHandle)));
    }
    const auto both = mappings.take_mappings({{0x10000}, 0x20000});
    REQUIRE(both.size() == 2);
    CHECK(!mappings.end_use(both[0].id));
    std::optional<Mappings::Ended> ended = mappings.end_use(both[1].id);
    if (!release_first) {
      CHECK(!ended);
      ended = mappings.end_use(*mappings.take_handle(kHandle));
    }
    REQUIRE(ended);
    CHECK(ended->physical.size == 4096);
    CHECK(ended->physical.device == 1);
  }
}

TEST_CASE("a retained handle keeps memory alive, an imported one is not charged") {
  Mappings mappings;
  mappings.created(1, {.size = 4096});
  mappings.mapped({0x10000}, 4096, 1);
  mappings.retained(1, {0x10000 + 100});  // the driver may give the same value again
  CHECK(!mappings.end_use(*mappings.take_handle(1)));
  CHECK(!mappings.end_use(mappings.take_mappings({{0x10000}, 4096})[0].id));
  CHECK(mappings.end_use(*mappings.take_handle(1)));
  CHECK(!mappings.take_handle(77));
  mappings.mapped({0x30000}, 4096, 77);
  CHECK(mappings.take_mappings({{0x30000}, 4096}).empty());
}

TEST_CASE("what a failed driver call was to end is put back") {
  Mappings mappings;
  mappings.created(1, {.size = 4096});
  mappings.mapped({0x10000}, 4096, 1);
  mappings.put_back(mappings.take_mappings({{0x10000}, 4096}));
  mappings.put_back(1, *mappings.take_handle(1));
  CHECK(!mappings.end_use(*mappings.take_handle(1)));
  CHECK(mappings.end_use(mappings.take_mappings({{0x10000}, 4096})[0].id));
}

TEST_CASE("the release of memory is withheld where it was mapped once, whole, and shown to nobody") {
  constexpr std::uint64_t kHandle = 5;
  enum class Life {
    plain,
    of_no_kind,
    never_mapped,
    mapped_twice,
    mapped_in_part,
    handle_shared,
    range_shared
  };
  for (const Life life : {Life::plain, Life::of_no_kind, Life::never_mapped, Life::mapped_twice,
                          Life::mapped_in_part, Life::handle_shared, Life::range_shared}) {
    Mappings mappings;
    mappings.created(kHandle, {.size = 4096, .kind = life == Life::of_no_kind ? Physical::kOnce : 3});
    const Bytes mapped = life == Life::mapped_in_part ? 2048 : 4096;
    if (life != Life::never_mapped) mappings.mapped({0x10000}, mapped, kHandle);
    if (life == Life::mapped_twice) mappings.mapped({0x20000}, 4096, kHandle);
    if (life == Life::handle_shared) mappings.share(kHandle);
    if (life == Life::range_shared) CHECK(mappings.share({{0x10000 + 8}, 1}).empty());
    const Mappings::Id id = *mappings.take_handle(kHandle);
    INFO(static_cast<int>(life));
    CHECK(mappings.withhold(kHandle, id) == (life == Life::plain));
    CHECK(mappings.is_withheld(kHandle) == (life == Life::plain));
  }
}

TEST_CASE(
    "a withheld release is given back when the mapping is shown to others, and else with the last use") {
  constexpr std::uint64_t kHandle = 5;
  for (const bool shared : {false, true}) {
    Mappings mappings;
    mappings.created(kHandle, {.size = 4096, .kind = 0});
    mappings.mapped({0x10000}, 4096, kHandle);
    const Mappings::Id id = *mappings.take_handle(kHandle);
    REQUIRE(mappings.withhold(kHandle, id));
    CHECK(!mappings.end_use(id));
    CHECK(mappings.share({{0x11000}, 4096}).empty());
    if (shared) {
      CHECK(mappings.share({{0x10000}, 1}) == std::vector<std::uint64_t>{kHandle});
      CHECK(!mappings.is_withheld(kHandle));
    }
    const auto ended = mappings.end_use(mappings.take_mappings({{0x10000}, 4096})[0].id);
    REQUIRE(ended);
    CHECK(ended->withheld.has_value() == !shared);
    CHECK(!mappings.is_withheld(kHandle));
  }
}
