// Bytes become calls: libFuzzer looks for an order of calls that breaks a rule. Everything is audited after
// each call. fuzz_main.cpp runs the same without clang.
//
// The first byte picks the policy, then each call is a byte and the bytes it needs; bytes that are missing
// are 0. A fault is printed and ends the process, as libFuzzer wants it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/property/model.hpp"

using namespace tidepool;
using namespace tidepool::testing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr Bytes kDevice = 96 * kMiB;

class Calls {
 public:
  Calls(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}
  bool more() const { return data_ < end_; }
  std::uint64_t byte() { return more() ? *data_++ : 0; }
  std::uint64_t word() { return byte() << 8 | byte(); }

  // Of every order of magnitude, exact ones and odd ones.
  Bytes size() {
    const std::uint64_t shape = byte();
    const Bytes unit = Bytes{1} << (shape & 31) % 27;
    return unit * (1 + (shape >> 5)) + (shape % 3 == 0 ? byte() : 0);
  }
  StreamKey stream() { return StreamKey{byte() % 4}; }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* end_;
};

void call(Model& model, Calls& calls) {
  const std::uint64_t which = calls.byte();
  switch (which % 16) {
    default: {
      const Request request{calls.size(), calls.stream(), which < 128, which,
                            static_cast<std::uint32_t>(which)};
      static_cast<void>(model.allocate(request));
      return;
    }
    case 6:
    case 7:
    case 8:
    case 9:
    case 10: return model.free(calls.word() << 9, calls.stream());
    case 11: return model.free_idle(calls.word() << 9);
    case 12: return which < 128 ? model.open_fence() : model.close_fence(calls.byte());
    case 13: return model.open_fence(), model.close_fence(calls.byte());
    case 14: return which < 128 ? model.forget(calls.stream()) : model.trim(calls.byte() * kMiB);
    case 15:
      if (which < 128) return model.find(Address{(Bytes{0x7000} << 32) + (calls.word() << 13)});
      model.backing().refuse_call = static_cast<std::int64_t>(calls.byte() % 32);
      return;
  }
}

[[noreturn]] void fail(const char* fault) {
  std::fprintf(stderr, "fuzz: %s\n", fault);
  std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Calls calls(data, size);
  try {
    Model model(calls.byte() % 2 == 0 ? "ondemand" : "prealloc", {kDevice, kDevice / 3}, kDevice);
    while (calls.more() && model.fault().empty()) {
      call(model, calls);
      model.audit();
    }
    model.finish();
    if (!model.fault().empty()) fail(model.fault().c_str());
  } catch (const BrokenRule& rule) {
    fail(rule.what());
  }
  return 0;
}
