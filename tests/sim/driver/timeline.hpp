// The device's time: streams as queues, a virtual clock, and the order in which queued work happens.
//
// Nothing runs when it is queued. An operation ends at a moment of the virtual clock, and its reads
// and writes happen then, by whichever call of the driver moves the clock past that moment. The clock
// moves a little with every call, jumps where a call waits, and follows the host's time while the
// program calls nobody (attendants.hpp). Everything here is under the driver's lock.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "known.hpp"
#include "work.hpp"

namespace sim {

struct Context;
struct Lane;
struct Operation;

// A moment of one stream that others can wait for: an event's record, a stream-ordered free.
struct Mark {
  std::shared_ptr<Lane> lane;
  Ticket ticket = 0;
  Known known;  // what was ordered before it
  bool done = false;
  std::int64_t time = 0;  // when it was done
};
using Marks = std::vector<std::shared_ptr<Mark>>;

// The queue of a stream. It outlives its stream: cuStreamDestroy returns with work pending.
struct Lane {
  std::uint64_t id = 0;  // as cuStreamGetId says it: never used twice
  Context* context = nullptr;
  bool blocking = false;  // takes part in the legacy stream's implicit synchronisation
  bool legacy = false;
  bool hidden = false;  // of the simulator's own, no stream of the program
  bool closed = false;
  Ticket issued = 0, done = 0;
  Known known{};  // what is ordered before whatever is queued next
  std::deque<std::unique_ptr<Operation>> queue{};
};

class Timeline {
 public:
  Timeline();

  // By every call of the driver, once it has the lock.
  void tick() {
    clock_ += call_ns_;
    if (pending_) notice_call();
  }
  // A question takes longer, so that who polls gets there.
  void tick_for_query();

  std::shared_ptr<Lane> open(Lane lane);
  void close(Lane& lane);

  // Puts work behind all that the lane has, and behind the marks.
  Ticket queue(const std::shared_ptr<Lane>& lane, Work work, const Marks& after = {});
  std::shared_ptr<Mark> mark(const std::shared_ptr<Lane>& lane, Work work, const Marks& after = {});
  // A mark behind everything that the context has been given.
  std::shared_ptr<Mark> mark_context(Context& context);

  // Waits: moves the clock to where it is done. The lock is let go only while a host function runs.
  void wait(std::unique_lock<std::mutex>& lock, std::shared_ptr<Lane> lane, Ticket ticket);
  void wait(std::unique_lock<std::mutex>& lock, Context& context);
  void wait_blocking(std::unique_lock<std::mutex>& lock, Context& context);

  bool done(std::uint64_t lane, Ticket ticket) const;
  // Whether the ticket is over before anything that is queued on next from here on can begin.
  bool ordered(std::uint64_t lane, Ticket ticket, const Lane& next) const;
  bool idle(const Context& context) const;

  // What is queued in this context does nothing any more, and ends now.
  void abandon(Context& context);
  // The same, from within an operation's effect.
  void abandon_after_this(Context& context) { broken_ = &context; }

  std::uint64_t pending() const { return pending_; }
  // Of the last operation queued, on whichever stream.
  std::uint64_t sequence() const { return sequence_; }
  std::int64_t clock() const { return clock_; }
  // Within an operation's effect: the moment it ends.
  std::int64_t moment() const { return moment_; }
  const std::map<std::uint64_t, std::shared_ptr<Lane>>& lanes() const { return lanes_; }

  // For the attendants.
  void pass(std::int64_t nanoseconds);
  std::int64_t until_next() const { return next_due_ - clock_; }
  bool anything_due() const { return !due_.empty(); }
  std::int64_t last_call() const { return last_call_; }
  std::deque<Operation*>& calls() { return calls_; }
  void returned(Operation* operation);

 private:
  struct Earlier {
    bool operator()(const Operation* left, const Operation* right) const;
  };
  void notice_call();
  void run_due();
  void advance(std::int64_t to);
  void begin(Operation& operation);
  void finish(Operation& operation);
  void need(Operation& operation, Lane& lane, Ticket ticket);
  void order_behind(Operation& operation, Lane& on, Lane& before);
  void drop_if_over(Lane& lane);

  std::int64_t clock_ = 0;
  std::int64_t call_ns_ = 0;
  std::uint64_t pending_ = 0;
  std::int64_t next_due_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t moment_ = 0;
  std::int64_t last_call_ = 0;  // in the host's time
  std::uint64_t sequence_ = 0;
  Context* broken_ = nullptr;
  std::map<std::uint64_t, std::shared_ptr<Lane>> lanes_;
  std::set<Operation*, Earlier> due_;
  std::deque<Operation*> calls_;  // host functions whose turn has come
  std::condition_variable progress_;
};

Timeline& timeline();

}  // namespace sim
