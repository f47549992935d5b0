// A value or the reason why there is none. The engine throws nothing: it runs below C programs.
#pragma once

#include <utility>
#include <variant>

namespace tidepool {

enum class Reason {
  out_of_memory,  // the device has no more
  limit,          // the device may have more, this process may not
  needs_fence,    // memory is there once the device has finished earlier work: fence, then ask again
  unknown_block,  // not an address this policy handed out
  invalid,        // a size of 0, or one that overflows
  host_memory,    // the process itself is out of memory
  driver,         // the driver refused for another reason; `code` is its answer
};

struct Failure {
  Reason reason = Reason::invalid;
  int code = 0;  // the driver's own result where it gave one, passed on unchanged
};

template <typename Value>
class [[nodiscard]] Result {
 public:
  Result(Value value) : content_(std::move(value)) {}
  Result(Failure failure) : content_(failure) {}

  bool ok() const { return std::holds_alternative<Value>(content_); }
  explicit operator bool() const { return ok(); }
  const Value& value() const { return *std::get_if<Value>(&content_); }        // Requires: ok()
  const Failure& failure() const { return *std::get_if<Failure>(&content_); }  // Requires: !ok()

 private:
  std::variant<Value, Failure> content_;
};

struct Done {};
using Status = Result<Done>;

}  // namespace tidepool
