// The referee's books by themselves: when it speaks, when not, and what it remembers.
#include <catch2/catch.hpp>

#include "tests/sim/referee/burials.hpp"

using namespace referee;

namespace {

const IsOver kNothingIsOver = [](const Ticket&) { return false; };
const IsOver kAllIsOver = [](const Ticket&) { return true; };

Handed synchronous(std::uint64_t size) { return {size, 1, "alloc", false}; }
Handed ordered(std::uint64_t size) { return {size, 0, "alloc_async", true}; }

}  // namespace

TEST_CASE("memory handed out twice is noticed, by whatever part they share") {
  for (const auto& [base, size] : {std::pair{1000ul, 1ul}, {1099ul, 50ul}, {900ul, 101ul}, {900ul, 900ul}}) {
    Burials books;
    CHECK(books.hand_out(1000, synchronous(100), kAllIsOver).empty());
    CHECK(books.hand_out(base, synchronous(size), kAllIsOver).size() == 1);
  }
}

TEST_CASE("neighbours are no overlap") {
  Burials books;
  CHECK(books.hand_out(1000, synchronous(100), kAllIsOver).empty());
  CHECK(books.hand_out(1100, synchronous(100), kAllIsOver).empty());
  CHECK(books.hand_out(900, synchronous(100), kAllIsOver).empty());
}

TEST_CASE("memory given out before its last use is over is noticed, in whole or in part, and once") {
  Burials books;
  books.hand_out(1000, synchronous(100), kAllIsOver);
  REQUIRE(books.bury(1000, "free", {{7, 3}}, false));
  CHECK(books.hand_out(1010, synchronous(10), kNothingIsOver).size() == 1);
  CHECK(books.hand_out(1050, synchronous(10), kAllIsOver).empty());
  // What lay left, between and right of the two is still in its grave.
  CHECK(books.hand_out(1000, synchronous(10), kNothingIsOver).size() == 1);
  CHECK(books.hand_out(1020, synchronous(30), kNothingIsOver).size() == 1);
  CHECK(books.hand_out(1060, synchronous(40), kNothingIsOver).size() == 1);
  CHECK(books.checked() == 5);
}

TEST_CASE("only what the ticket names is asked for") {
  Burials books;
  books.hand_out(1000, ordered(100), kAllIsOver);
  books.bury(1000, "free_async", {{7, 3}}, true);
  CHECK(books
            .hand_out(1000, ordered(100),
                      [](const Ticket& ticket) { return ticket.stream == 7 && ticket.number == 3; })
            .empty());
}

TEST_CASE("stream-ordered memory that is freed without a stream is out of use") {
  Burials books;
  books.hand_out(1000, ordered(100), kAllIsOver);
  books.bury(1000, "free", {{7, 3}}, false);
  CHECK(books.hand_out(1000, synchronous(100), kNothingIsOver).empty());
}

TEST_CASE("a free that failed leaves the block in use") {
  Burials books;
  books.hand_out(1000, synchronous(100), kAllIsOver);
  const auto block = books.bury(1000, "free", {}, false);
  REQUIRE(block);
  books.undo_burial(1000, *block);
  CHECK(books.hand_out(1000, synchronous(100), kAllIsOver).size() == 1);
}

TEST_CASE("a context takes its own blocks with it, and no others") {
  Burials books;
  books.hand_out(1000, synchronous(100), kAllIsOver);
  books.hand_out(2000, ordered(100), kAllIsOver);
  books.end_context(1, "destroy", {{7, 3}});
  CHECK(books.hand_out(1000, synchronous(100), kNothingIsOver).size() == 1);
  CHECK(books.hand_out(2000, synchronous(100), kAllIsOver).size() == 1);
  CHECK(!books.bury(3000, "free", {}, false));
}
