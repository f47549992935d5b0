// The hook table as types and arrays: an id per symbol, its row, its signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shim/driver/cuda.hpp"

namespace tidepool {

enum class Hook : std::uint16_t {
#define HOOK(symbol, family, version) symbol,
#include "shim/hook/hooks.def"
};

struct HookRow {
  const char* symbol;
  int version;
  bool passed_first;  // launches: counted once for both sides, see pass_first
};

inline constexpr HookRow kHooks[] = {
#define HOOK(symbol, family, version) {#symbol, version, std::string_view(#family) == "launch"},
#include "shim/hook/hooks.def"
};
inline constexpr std::size_t kHookCount = sizeof(kHooks) / sizeof(kHooks[0]);

constexpr std::size_t index_of(Hook hook) { return static_cast<std::size_t>(hook); }

template <Hook hook>
struct SignatureOf;
#define HOOK(symbol, family, version) \
  template <>                         \
  struct SignatureOf<Hook::symbol> {  \
    using type = decltype(::symbol);  \
  };
#include "shim/hook/hooks.def"

}  // namespace tidepool
