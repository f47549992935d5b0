// An allocator for the nodes of the driver's trees: what was given back is taken again first, without the
// C library's allocator, which would be a third of the cost of a cuMemAlloc. Under the driver's lock;
// never returned.
#pragma once
#include <cstddef>
#include <memory>

namespace sim {

template <typename T>
struct NodeStore {
  using value_type = T;
  NodeStore() = default;
  template <typename Other>
  NodeStore(const NodeStore<Other>&) {}

  T* allocate(std::size_t count) {
    if (count != 1 || !first()) return std::allocator<T>().allocate(count);
    Free* const taken = first();
    first() = taken->next;
    return reinterpret_cast<T*>(taken);
  }
  void deallocate(T* node, std::size_t count) {
    if (count != 1) return std::allocator<T>().deallocate(node, count);
    first() = new (node) Free{first()};
  }
  template <typename Other>
  bool operator==(const NodeStore<Other>&) const {
    return true;
  }

 private:
  struct Free {
    Free* next;
  };
  static_assert(sizeof(T) >= sizeof(Free));
  static Free*& first() {
    constinit static Free* head = nullptr;
    return head;
  }
};

}  // namespace sim
