// What a call may answer, and what must be true after it.
#include "tests/property/model.hpp"

#include <algorithm>

namespace tidepool::testing {
namespace {

bool same(const Block& a, const Block& b) {
  return a.address == b.address && a.size == b.size && a.label.requested == b.label.requested &&
         a.label.owner == b.label.owner && a.label.number == b.label.number && a.label.tag == b.label.tag;
}

}  // namespace

Model::Model(const std::string& policy, const PolicyConfig& config, Bytes capacity)
    : backing_(capacity), policy_(make_policy(policy, config, backing_)) {}

Result<Block> Model::allocate(const Request& request) {
  const auto answer = policy_->allocate(request);
  if (!answer) {
    if (answer.failure().reason == Reason::needs_fence && !request.fence_possible)
      blame("needs_fence although no fence is possible");
    return answer;
  }
  const Block& block = answer.value();
  const auto [begin, size, label] = block;
  if (size < request.size) blame("a block is shorter than its request");
  if (begin.value % (request.size >= 16 * kMiB ? kPage : kGranule) != 0) blame("a block is not aligned");
  if (!backing_.usable({begin, size})) blame("a block lies on released memory");
  if (!backing_.inside_one_region({begin, size})) blame("a block spans two reservations");
  if (label.requested != request.size || label.owner != request.owner || label.tag != request.tag)
    blame("a label is not what was given");
  if (!numbers_.insert(label.number).second) blame("two blocks had one number");
  const auto next = live_.lower_bound(begin);
  if (next != live_.end() && next->first < begin + size) blame("a block overlaps a live one above");
  if (next != live_.begin() && std::prev(next)->first + std::prev(next)->second.size > begin)
    blame("a block overlaps a live one below");
  claim(begin, size, request.stream);
  live_[begin] = block;
  sum_ += size;
  return answer;
}

// The fence rule: an earlier owner of any byte has passed a fence or was on the same stream.
void Model::claim(Address begin, Bytes size, StreamKey stream) {
  auto old = freed_.lower_bound(begin);
  while (old != freed_.begin() && std::prev(old)->first + std::prev(old)->second.size > begin) --old;
  while (old != freed_.end() && old->first < begin + size) {
    const auto [from, was] = *old;
    if (was.at > fenced_ && (was.stream == kNoStream || was.stream != stream))
      blame("a block was handed out that waits for a fence");
    old = freed_.erase(old);
    // What sticks out on either side keeps its history.
    if (from < begin) freed_[from] = {begin - from, was.stream, was.at};
    if (from + was.size > begin + size)
      old = freed_.insert({begin + size, {from + was.size - (begin + size), was.stream, was.at}}).first;
  }
}

Model::Live::iterator Model::pick(std::uint64_t any) {
  const Bytes span = std::prev(live_.end())->first - live_.begin()->first;
  return live_.lower_bound(live_.begin()->first + any % (span + 1));
}

void Model::free(std::uint64_t any, StreamKey stream) {
  if (live_.empty()) return;
  const auto at = pick(any);
  const Block block = at->second;
  find(block.address + any % block.size);
  check_freed(policy_->free(block.address, stream), block);
  if (policy_->free(block.address, stream)) blame("a block could be freed twice");
  live_.erase(at);
  freed_[block.address] = {block.size, stream, ++clock_};
}

void Model::free_idle(std::uint64_t any) {
  if (live_.empty()) return;
  const auto at = pick(any);
  const Block block = at->second;
  check_freed(policy_->free_idle(block.address), block);
  live_.erase(at);
}

void Model::check_freed(const Result<Block>& freed, const Block& block) {
  if (!freed)
    blame("a live block could not be freed");
  else if (!same(freed.value(), block))
    blame("a freed block is not what was given");
  sum_ -= block.size;
}

void Model::find(Address address) {
  const auto above = live_.upper_bound(address);
  const Block* expected = above == live_.begin() ? nullptr : &std::prev(above)->second;
  if (expected != nullptr && address >= expected->address + expected->size) expected = nullptr;
  const auto found = policy_->find(address);
  if (found.has_value() != (expected != nullptr))
    blame("find is wrong about what is live");
  else if (found && !same(*found, *expected))
    blame("find does not know a live block");
}

void Model::open_fence() { open_.push_back({policy_->open_fence(), clock_}); }

void Model::close_fence(std::uint64_t any) {
  if (open_.empty()) return;
  const auto fence = open_.begin() + static_cast<std::ptrdiff_t>(any % open_.size());
  policy_->close_fence(fence->first);
  fenced_ = std::max(fenced_, fence->second);
  open_.erase(fence);
}

void Model::forget(StreamKey stream) {
  policy_->forget_stream(stream);
  for (auto& [begin, was] : freed_)
    if (was.stream == stream) was.stream = kNoStream;
}

void Model::trim(Bytes keep) {
  const Bytes before = backing_.held();
  const std::int64_t refusing = backing_.refuse_call;
  const Bytes gone = policy_->trim(keep);
  if (before - backing_.held() != gone) blame("trim says another amount than it handed back");
  if (gone > 0 && backing_.held() + kPage <= keep) blame("trim handed back more than it was asked to");
  if (backing_.held() > keep && refusing < 0 && policy_->snapshot().releasable != 0)
    blame("trim kept memory that it could hand back");
}

void Model::audit() {
  if (auto fault = policy_->audit()) blame(*fault);
  const Snapshot now = policy_->snapshot();
  if (now.live != sum_) blame("live is not what the model says");
  if (now.reserved != backing_.held()) blame("reserved is not what the backing holds");
  if (now.live + now.cached + now.in_limbo != now.reserved) blame("the snapshot does not add up");
  std::size_t seen = 0;
  policy_->each_live([&](const Block& block) {
    const auto known = live_.find(block.address);
    if (known == live_.end() || !same(known->second, block)) blame("each_live shows what is not live");
    ++seen;
  });
  if (seen != live_.size()) blame("each_live does not show every block once");
}

void Model::finish() {
  backing_.refuse_call = -1;
  while (!live_.empty()) free(0, kNoStream);
  open_fence();
  close_fence(open_.size() - 1);
  audit();
  policy_->trim(0);
  audit();
  if (backing_.held() != 0) blame("memory was held with nothing live");
}

Bytes Model::free_pages() const {
  Bytes free = backing_.capacity - backing_.held();
  auto block = live_.begin();
  backing_.each_page([&](Address page) {
    while (block != live_.end() && block->first + block->second.size <= page) ++block;
    if (block == live_.end() || block->first >= page + kPage) free += kPage;
  });
  return free & ~(kPage - 1);
}

Bytes Model::longest_run(Bytes alignment) const {
  Bytes longest = 0;
  Address begin, end;  // of the free memory at hand
  const auto ends = [&] {
    const Address first{round_up(begin.value, alignment)};
    if (first < end) longest = std::max(longest, end - first);
  };
  auto block = live_.begin();
  backing_.each_page([&](Address page) {
    if (page != end || !backing_.inside_one_region({{page.value - 1}, 2})) {
      ends();
      begin = page;
    }
    end = page + kPage;
    while (block != live_.end() && block->first + block->second.size <= page) ++block;
    for (auto inside = block; inside != live_.end() && inside->first < page + kPage; ++inside) {
      end = inside->first;
      ends();
      begin = inside->first + inside->second.size;
      end = page + kPage;
    }
  });
  ends();
  return longest;
}

}  // namespace tidepool::testing
