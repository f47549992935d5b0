// What the referee knows: which addresses are handed out, and when the device may last have used those
// that are free. Knows nothing of CUDA; the device's progress is asked through Progress.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace referee {

// The n-th operation of a stream of the device.
struct Ticket {
  std::uint64_t stream;
  std::uint64_t number;
};
using Tickets = std::vector<Ticket>;

// Whether the operation is over for whoever is given the memory now.
using IsOver = std::function<bool(const Ticket&)>;

struct Handed {
  std::uint64_t size = 0;
  std::uint64_t context = 0;  // dies with it; 0: with none
  std::string by;             // the entry that gave it
  bool stream_ordered = false;
};

class Burials {
 public:
  // The address was handed out. A sentence for every rule that this breaks.
  std::vector<std::string> hand_out(std::uint64_t base, const Handed& block, const IsOver& over);

  // The block was freed, and the device may use it until these are over. Stream-ordered memory that is
  // freed without a stream must be out of use already (cuda.h, cuMemFree: no implicit synchronisation).
  // Nothing: not a block we know.
  std::optional<Handed> bury(std::uint64_t base, const std::string& by, Tickets until, bool on_a_stream);
  // The free failed after all.
  void undo_burial(std::uint64_t base, const Handed& block);

  // The same for all blocks that die with their context.
  void end_context(std::uint64_t context, const std::string& by, const Tickets& until);

  std::uint64_t checked() const { return checked_; }  // reused pieces that were examined

 private:
  struct Grave {
    std::uint64_t size = 0;
    std::shared_ptr<const Tickets> until;
    std::shared_ptr<const std::string> story;
  };
  using Graves = std::map<std::uint64_t, Grave>;

  void open_grave(Graves::iterator grave, std::uint64_t base, std::uint64_t size);

  std::map<std::uint64_t, Handed> live_;
  Graves graves_;
  std::uint64_t checked_ = 0;
};

}  // namespace referee
