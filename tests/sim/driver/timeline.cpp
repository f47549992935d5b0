// The virtual clock and the queues; see timeline.hpp.
#include "timeline.hpp"

#include <ctime>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "attendants.hpp"
#include "context.hpp"
#include "rules.hpp"

namespace sim {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

std::int64_t host_time() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

const char* keep_name(const std::string& name) {
  static auto* const names = new std::unordered_set<std::string>;
  return names->insert(name).first->c_str();
}

Timeline& timeline() {
  static Timeline* const instance = new Timeline;
  return *instance;
}

Timeline::Timeline() : call_ns_(rules().call_ns) {}

bool Timeline::Earlier::operator()(const Operation* left, const Operation* right) const {
  return std::tie(left->end, left->lot, left->sequence) < std::tie(right->end, right->lot, right->sequence);
}

void Timeline::notice_call() {
  last_call_ = host_time();
  run_due();
}

void Timeline::tick_for_query() {
  clock_ += call_ns_;
  run_due();
}

void Timeline::run_due() {
  while (next_due_ <= clock_) {
    Operation& operation = **due_.begin();
    moment_ = operation.end;
    if (const auto& mark = operation.work.mark) {
      mark->done = true;
      mark->time = moment_;
    }
    if (operation.work.effect) operation.work.effect(*operation.lane->context);
    finish(operation);
    if (Context* context = std::exchange(broken_, nullptr)) abandon(*context);
  }
  moment_ = clock_;
}

void Timeline::advance(std::int64_t to) {
  clock_ = std::max(clock_, to);
  run_due();
}

void Timeline::pass(std::int64_t nanoseconds) { advance(clock_ + nanoseconds); }

std::shared_ptr<Lane> Timeline::open(Lane lane) {
  auto opened = std::make_shared<Lane>(std::move(lane));
  lanes_.emplace(opened->id, opened);
  return opened;
}

void Timeline::close(Lane& lane) {
  lane.closed = true;
  drop_if_over(lane);
}

void Timeline::drop_if_over(Lane& lane) {
  if (lane.closed && lane.queue.empty()) lanes_.erase(lane.id);
}

// Tickets of a lane follow each other, so the place of one is known.
void Timeline::need(Operation& operation, Lane& lane, Ticket ticket) {
  if (ticket <= lane.done) return;
  Operation* needed = lane.queue[ticket - lane.queue.front()->ticket].get();
  operation.needs.push_back(needed);
  needed->gates.push_back(&operation);
}

void Timeline::order_behind(Operation& operation, Lane& on, Lane& before) {
  if (before.done == before.issued) return;
  need(operation, before, before.issued);
  on.known.merge(before.known);
  on.known.raise(before.id, before.issued);
}

Ticket Timeline::queue(const std::shared_ptr<Lane>& lane, Work work, const Marks& after) {
  auto owned = std::make_unique<Operation>();
  Operation& operation = *owned;
  operation.work = std::move(work);
  operation.lane = lane.get();
  operation.ticket = ++lane->issued;
  operation.sequence = ++sequence_;
  operation.lot = rules().schedule ? mix(rules().schedule ^ sequence_) : 0;
  operation.earliest = clock_;
  // The legacy stream and the blocking streams of its context wait for each other.
  if (pending_ && lane->blocking)
    for (const auto& [id, other] : lanes_)
      if (other->context == lane->context && other->blocking && other != lane &&
          (lane->legacy || other->legacy))
        order_behind(operation, *lane, *other);
  for (const auto& mark : after) {
    need(operation, *mark->lane, mark->ticket);
    lane->known.merge(mark->known);
    lane->known.raise(mark->lane->id, mark->ticket);
  }
  if (lane->known.size() > 64)
    lane->known.forget_if([this](std::uint64_t id) { return !lanes_.contains(id); });
  lane->queue.push_back(std::move(owned));
  ++pending_;
  if (lane->queue.size() == 1 && operation.needs.empty()) begin(operation);
  if (pending_ == 1) last_call_ = host_time();
  attend_clock();
  return lane->issued;
}

std::shared_ptr<Mark> Timeline::mark(const std::shared_ptr<Lane>& lane, Work work, const Marks& after) {
  auto mark = std::make_shared<Mark>();
  work.mark = mark;
  mark->lane = lane;
  mark->ticket = queue(lane, std::move(work), after);
  mark->known = lane->known;
  return mark;
}

std::shared_ptr<Mark> Timeline::mark_context(Context& context) {
  Marks tails;
  for (const auto& [id, lane] : lanes_) {
    if (lane->context != &context || lane->done == lane->issued) continue;
    tails.push_back(std::make_shared<Mark>(Mark{lane, lane->issued, lane->known}));
  }
  return mark(context.markers, Work{}, tails);
}

// The operation's turn: everything it needs is over.
void Timeline::begin(Operation& operation) {
  if (operation.work.call) {
    operation.phase = Operation::Phase::calling;
    calls_.push_back(&operation);
    attend_calls();
    return;
  }
  std::int64_t cost = operation.work.cost;
  // Between a quarter and four times: enough to turn the order of any two neighbours round.
  if (rules().schedule)
    cost = cost / 4 + static_cast<std::int64_t>(operation.lot % 1024) * (cost * 15 / 4) / 1024;
  operation.phase = Operation::Phase::scheduled;
  operation.end = std::max(moment_, operation.earliest) + cost;
  due_.insert(&operation);
  next_due_ = (*due_.begin())->end;
}

void Timeline::finish(Operation& operation) {
  if (operation.phase == Operation::Phase::scheduled) due_.erase(&operation);
  next_due_ = due_.empty() ? never : (*due_.begin())->end;
  const std::shared_ptr<Lane> lane = lanes_.at(operation.lane->id);
  lane->done = operation.ticket;
  const std::unique_ptr<Operation> owned = std::move(lane->queue.front());
  lane->queue.pop_front();
  --pending_;
  for (Operation* gated : owned->gates) {
    std::erase(gated->needs, owned.get());
    if (gated->needs.empty() && gated->lane->queue.front().get() == gated) begin(*gated);
  }
  if (!lane->queue.empty() && lane->queue.front()->needs.empty() &&
      lane->queue.front()->phase == Operation::Phase::waiting)
    begin(*lane->queue.front());
  drop_if_over(*lane);
}

void Timeline::returned(Operation* operation) {
  run_due();
  finish(*operation);
  progress_.notify_all();
  // What it held up may be due later, and whoever waits for that need not call.
  attend_clock();
}

// Follows what the wanted operation waits for down to one whose end is known, so that time passes no
// further than it must.
void Timeline::wait(std::unique_lock<std::mutex>& lock, std::shared_ptr<Lane> lane, Ticket ticket) {
  while (lane->done < ticket) {
    const Operation* first = lane->queue.front().get();
    while (!first->needs.empty()) first = first->needs.front()->lane->queue.front().get();
    if (first->phase == Operation::Phase::scheduled)
      advance(first->end);
    else
      progress_.wait(lock);
  }
}

void Timeline::wait(std::unique_lock<std::mutex>& lock, Context& context) {
  std::vector<std::pair<std::shared_ptr<Lane>, Ticket>> tails;
  for (const auto& [id, lane] : lanes_)
    if (lane->context == &context && lane->done != lane->issued) tails.emplace_back(lane, lane->issued);
  for (const auto& [lane, ticket] : tails) wait(lock, lane, ticket);
}

void Timeline::wait_blocking(std::unique_lock<std::mutex>& lock, Context& context) {
  std::vector<std::pair<std::shared_ptr<Lane>, Ticket>> tails;
  for (const auto& [id, lane] : lanes_)
    if (lane->context == &context && lane->blocking && lane->done != lane->issued)
      tails.emplace_back(lane, lane->issued);
  for (const auto& [lane, ticket] : tails) wait(lock, lane, ticket);
}

bool Timeline::done(std::uint64_t lane, Ticket ticket) const {
  const auto at = lanes_.find(lane);
  return at == lanes_.end() || ticket <= at->second->done;
}

bool Timeline::ordered(std::uint64_t lane, Ticket ticket, const Lane& next) const {
  if (done(lane, ticket)) return true;
  const auto knows = [&](const Lane& one) {
    return (one.id == lane && ticket <= one.issued) || one.known.of(lane) >= ticket;
  };
  if (knows(next)) return true;
  if (!next.blocking) return false;
  for (const auto& [id, other] : lanes_)
    if (other->context == next.context && other->blocking && (next.legacy || other->legacy) && knows(*other))
      return true;
  return false;
}

bool Timeline::idle(const Context& context) const {
  if (!pending_) return true;
  for (const auto& [id, lane] : lanes_)
    if (lane->context == &context && lane->done != lane->issued) return false;
  return true;
}

void Timeline::abandon(Context& context) {
  for (const auto& [id, lane] : lanes_) {
    if (lane->context != &context) continue;
    for (const auto& operation : lane->queue) {
      operation->work.kind = Work::Kind::marker;
      operation->work.touches.clear();
      operation->work.cost = 0;
      operation->earliest = 0;
      if (!operation->work.mark) operation->work.effect = nullptr;
      if (operation->phase != Operation::Phase::scheduled || operation->end <= moment_) continue;
      due_.erase(operation.get());
      operation->end = moment_;
      due_.insert(operation.get());
    }
  }
  next_due_ = due_.empty() ? never : (*due_.begin())->end;
}

}  // namespace sim
