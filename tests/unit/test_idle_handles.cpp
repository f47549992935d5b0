// What is kept of the application's own memory, for how long, and whom it is given to: with a driver that
// only takes releases.
#include <catch2/catch.hpp>
#include <vector>

#include "shim/driver/driver.hpp"
#include "shim/route/idle_handles.hpp"

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

constexpr Bytes kSize = 4 << 20;
constexpr Bytes kDevice = 16 * 4 * kSize;  // of which four may be idle

std::vector<CUmemGenericAllocationHandle> released;
CUresult answer = CUDA_SUCCESS;

CUresult take_release(CUmemGenericAllocationHandle handle) {
  if (answer == CUDA_SUCCESS) released.push_back(handle);
  return answer;
}

struct Books {
  Books() {
    released.clear();
    answer = CUDA_SUCCESS;
    driver.cuMemRelease.bind(reinterpret_cast<void*>(&take_release));
  }
  void keep(CUmemGenericAllocationHandle handle, Bytes size = kSize,
            IdleHandles::Clock::time_point now = {}) {
    REQUIRE(account.take(size));
    account.reserved.add(size);
    idle.keep(handle, {.size = size, .kind = idle.kind_of(properties, 0)}, now);
  }
  auto take(Bytes size = kSize) { return idle.take(properties, 0, size); }

  CUmemAllocationProp properties{};
  Account account;
  IdleHandles idle{account, kDevice};
};

using Handles = std::vector<CUmemGenericAllocationHandle>;

}  // namespace

TEST_CASE("the last to come idle is the first to be used, and only by its equal") {
  Books books;
  for (const auto handle : {1, 2, 3}) books.keep(static_cast<CUmemGenericAllocationHandle>(handle));
  CHECK(!books.take(2 * kSize));
  CHECK(!books.idle.take(books.properties, 1, kSize));
  CUmemAllocationProp compressed{};
  compressed.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
  CHECK(!books.idle.take(compressed, 0, kSize));
  CHECK(books.take() == 3);
  CHECK(!books.idle.holds(3));
  CHECK(books.idle.holds(2));
  CHECK(books.take() == 2);
  CHECK(books.idle.bytes() == kSize);
  CHECK(released.empty());
}

TEST_CASE(
    "more than a small part of the device is not kept, the oldest goes, and one that is too large at once") {
  Books books;
  for (const auto handle : {1, 2, 3, 4, 5}) books.keep(static_cast<CUmemGenericAllocationHandle>(handle));
  CHECK(released == Handles{1});
  books.keep(6, 5 * kSize);
  CHECK(released == Handles{1, 6});
  CHECK(books.idle.bytes() == 4 * kSize);
  CHECK(books.account.reserved.now() == 4 * kSize);
  CHECK(books.idle.give_back_all() == 4 * kSize);
  CHECK(released == Handles{1, 6, 2, 3, 4, 5});
  CHECK(books.account.reserved.now() == 0);
}

TEST_CASE("what has been idle for long goes when others come") {
  Books books;
  const IdleHandles::Clock::time_point start{};
  books.keep(1, kSize, start);
  books.keep(2, kSize, start + 9s);
  CHECK(released.empty());
  books.keep(3, kSize, start + 12s);
  CHECK(released == Handles{1});
}

TEST_CASE("memory that the driver does not take back stays idle, charged, and is offered again") {
  Books books;
  books.keep(1);
  answer = CUDA_ERROR_NOT_PERMITTED;
  CHECK(books.idle.give_back_all() == 0);
  books.keep(2, 5 * kSize);
  CHECK(books.idle.holds(1));
  CHECK(books.account.reserved.now() == 6 * kSize);
  answer = CUDA_SUCCESS;
  CHECK(books.idle.give_back_all() == 6 * kSize);
  CHECK(released == Handles{1, 2});
}

TEST_CASE("a tile pool is never used again, nor are more kinds remembered than a program can use") {
  Books books;
  books.properties.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
  CHECK(books.idle.kind_of(books.properties, 0) == Physical::kOnce);
  books.properties.allocFlags.usage = 0;
  const int first = books.idle.kind_of(books.properties, 0);
  CHECK(first != Physical::kOnce);
  for (unsigned long long flags = 1; flags < 100; ++flags) books.idle.kind_of(books.properties, flags);
  CHECK(books.idle.kind_of(books.properties, 100) == Physical::kOnce);
  CHECK(books.idle.kind_of(books.properties, 0) == first);
}
