// A policy on a checked device, beside a model that remembers every block and every free: each call is
// carried out and compared with what the model allows. For random walks, fuzzing and full devices.
//
// The model believes nothing that the policy says of itself: memory is what the backing holds, and a block
// is in use from the call that gave it to the call that freed it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "policies/catalogue.hpp"
#include "tests/unit/policies/checked_backing.hpp"

namespace tidepool::testing {

class Model {
 public:
  Model(const std::string& policy, const PolicyConfig& config, Bytes capacity);

  // Calls of the policy. `any` picks a block or a fence, whatever its value.
  Result<Block> allocate(const Request& request);
  void free(std::uint64_t any, StreamKey stream);
  void free_idle(std::uint64_t any);
  void find(Address address);
  void open_fence();
  void close_fence(std::uint64_t any);
  void forget(StreamKey stream);
  void trim(Bytes keep);

  // Compares the books with the model. O(blocks).
  void audit();
  // Frees everything and hands all memory back.
  void finish();

  // The first thing that went wrong; empty if nothing did.
  const std::string& fault() const { return fault_; }

  CheckedBacking& backing() { return backing_; }
  std::size_t blocks() const { return live_.size(); }
  Bytes live() const { return sum_; }
  // Bytes of pages that hold no part of a block: what is mapped, and what the device still has.
  Bytes free_pages() const;
  // The longest way from a place that is aligned for `shape` to the next block or to the end of what is
  // mapped there.
  Bytes longest_run(Bytes alignment) const;

 private:
  // Memory once freed: until it is fenced, only work of `stream` may have it.
  struct Freed {
    Bytes size;
    StreamKey stream;
    int at;  // the model's own clock
  };
  using Live = std::map<Address, Block>;

  Live::iterator pick(std::uint64_t any);
  void claim(Address begin, Bytes size, StreamKey stream);
  void check_freed(const Result<Block>& freed, const Block& block);
  void blame(const std::string& fault) {
    if (fault_.empty()) fault_ = fault;
  }

  CheckedBacking backing_;
  std::unique_ptr<Policy> policy_;
  Live live_;
  std::map<Address, Freed> freed_;
  std::vector<std::pair<Fence, int>> open_;
  std::unordered_set<std::uint64_t> numbers_;
  Bytes sum_ = 0;
  int clock_ = 0;
  int fenced_ = 0;  // frees up to this one are fenced
  std::string fault_;
};

}  // namespace tidepool::testing
