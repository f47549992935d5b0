// Which piece an address lies in: for each page of one reservation the first piece that begins there,
// and a bit that says whether one does. Changed with every piece in constant time.
//
// Threads: none; the owner's lock covers it. Errors: std::bad_alloc from the constructor.
#pragma once

#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

#include "policies/piece.hpp"

namespace tidepool {

class PageMap {
 public:
  explicit PageMap(Range reserved)
      : reserved_(reserved),
        first_(zeroed<Piece*>(pages())),
        marks_(zeroed<std::uint64_t>(pages() / 64 + 1)) {}

  bool contains(Address address) const { return reserved_.begin <= address && address < reserved_.end(); }
  Range range() const { return reserved_; }

  void add(Piece* piece) {
    const std::size_t page = page_of(piece->address());
    Piece*& first = first_.get()[page];
    if (first == nullptr || piece->key() < first->key()) first = piece;
    marks_.get()[page / 64] |= std::uint64_t{1} << page % 64;
  }
  // Requires: the piece still knows its neighbours.
  void remove(Piece* piece) {
    const std::size_t page = page_of(piece->address());
    Piece*& first = first_.get()[page];
    if (first != piece) return;
    Piece* next = piece->next;
    first = next != nullptr && contains(next->address()) && page_of(next->address()) == page ? next : nullptr;
    if (first == nullptr) marks_.get()[page / 64] &= ~(std::uint64_t{1} << page % 64);
  }

  // The piece that holds `address`, whatever its state; null where nothing is mapped.
  Piece* find(Address address) const {
    std::size_t page = page_of(address);
    Piece* piece = first_.get()[page];
    if (piece == nullptr || piece->address() > address) piece = last_before(page);
    while (piece != nullptr && piece->end() <= address) piece = piece->next;
    return piece != nullptr && piece->address() <= address ? piece : nullptr;
  }

  // Every piece, in address order.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::size_t word = 0; word <= pages() / 64; ++word)
      for (std::uint64_t bits = marks_.get()[word]; bits != 0; bits &= bits - 1) {
        const std::size_t page = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        for (Piece* piece = first_.get()[page]; piece != nullptr && page_of(piece->address()) == page;
             piece = piece->next)
          visit(*piece);
      }
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  template <typename Value>
  using Array = std::unique_ptr<Value, Free>;
  // Sixteen devices' worth of pages, of which few are ever touched: calloc leaves those to the kernel.
  template <typename Value>
  static Array<Value> zeroed(std::size_t count) {
    Array<Value> memory(static_cast<Value*>(std::calloc(count, sizeof(Value))));
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
  }

  std::size_t pages() const { return reserved_.size / kPage; }
  std::size_t page_of(Address address) const { return (address - reserved_.begin) / kPage; }

  Piece* last_before(std::size_t page) const {
    std::size_t word = page / 64;
    std::uint64_t bits = marks_.get()[word] & ((std::uint64_t{1} << page % 64) - 1);
    while (bits == 0) {
      if (word == 0) return nullptr;
      bits = marks_.get()[--word];
    }
    return first_.get()[word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits))];
  }

  Range reserved_;
  Array<Piece*> first_;
  Array<std::uint64_t> marks_;
};

}  // namespace tidepool
