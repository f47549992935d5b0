// From a key to its object, found without a lock by any thread while one thread changes the table. For
// live addresses and for streams: read on every call, changed seldom.
//
// `Object` has key(), never 0, and outlives the table. Open addressing; a removal moves later entries
// back, so a reader that found nothing looks at the version and, where it moved, once more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tidepool {

template <typename Object>
class ConcurrentTable {
 public:
  // Null: no such object. Any thread.
  Object* find(std::uint64_t key) const {
    for (;;) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if (const Slots* slots = slots_.load(std::memory_order_acquire)) {
        for (std::size_t at = slots->home(key);; at = slots->after(at)) {
          Object* object = slots->at(at);
          if (object == nullptr) break;
          if (object->key() == key) return object;
        }
      }
      if ((before & 1) == 0 && version_.load(std::memory_order_acquire) == before) return nullptr;
    }
  }

  // The rest: one thread at a time.

  // Makes sure that `more` objects can be inserted. Errors: std::bad_alloc.
  void prepare(std::size_t more) {
    const Slots* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr || (count_ + more) * 4 > slots->size() * 3) grow(more);
  }
  // Requires: prepare(), and that the key is not there.
  void insert(Object* object) {
    place(*slots_.load(std::memory_order_relaxed), object);
    ++count_;
  }
  // Requires: it is there, with the key it was inserted with.
  void erase(Object* object) {
    Slots& slots = *slots_.load(std::memory_order_relaxed);
    std::size_t hole = slots.home(object->key());
    while (slots.at(hole) != object) hole = slots.after(hole);
    const Change change(version_);
    for (std::size_t at = slots.after(hole);; at = slots.after(at)) {
      Object* later = slots.at(at);
      if (later == nullptr) break;
      if (slots.distance(slots.home(later->key()), at) < slots.distance(hole, at)) continue;
      slots.set(hole, later);
      hole = at;
    }
    slots.set(hole, nullptr);
    --count_;
  }

  std::size_t size() const { return count_; }

 private:
  class Slots {
   public:
    explicit Slots(int bits) : shift_(64 - bits), slots_(std::size_t{1} << bits) {}
    std::size_t size() const { return slots_.size(); }
    // The lowest 9 bits of an address are 0; the golden ratio spreads the rest over the highest bits.
    std::size_t home(std::uint64_t key) const { return (key >> 4) * 0x9E3779B97F4A7C15u >> shift_; }
    std::size_t after(std::size_t at) const { return (at + 1) & (size() - 1); }
    std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & (size() - 1); }
    Object* at(std::size_t at) const { return slots_[at].load(std::memory_order_acquire); }
    void set(std::size_t at, Object* object) { slots_[at].store(object, std::memory_order_release); }

   private:
    const int shift_;
    std::vector<std::atomic<Object*>> slots_;
  };

  // Readers that saw the table while it changed look again.
  class Change {
   public:
    explicit Change(std::atomic<std::uint32_t>& version) : version_(version) {
      version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    ~Change() { version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

   private:
    std::atomic<std::uint32_t>& version_;
  };

  static void place(Slots& slots, Object* object) {
    std::size_t at = slots.home(object->key());
    while (slots.at(at) != nullptr) at = slots.after(at);
    slots.set(at, object);
  }

  void grow(std::size_t more) {
    int bits = 8;
    while ((count_ + more) * 2 > (std::size_t{1} << bits)) ++bits;
    auto grown = std::make_unique<Slots>(bits);
    // Readers may still be in an older one; all of them together are no larger than the newest.
    all_.push_back(std::move(grown));
    Slots& fresh = *all_.back();
    if (const Slots* old = slots_.load(std::memory_order_relaxed))
      for (std::size_t at = 0; at < old->size(); ++at)
        if (Object* object = old->at(at)) place(fresh, object);
    const Change change(version_);
    slots_.store(&fresh, std::memory_order_release);
  }

  std::atomic<Slots*> slots_{nullptr};
  std::atomic<std::uint32_t> version_{0};
  std::size_t count_ = 0;
  std::vector<std::unique_ptr<Slots>> all_;
};

}  // namespace tidepool
