// Where libtidepool.so is, whether it can be preloaded, and the LD_PRELOAD list that names it.
#pragma once

#include <string>
#include <string_view>

namespace tidepool::cli {

struct Library {
  std::string path;     // absolute; the most likely place if it was not found
  std::string problem;  // why it cannot be preloaded; empty: it can
};

// TIDEPOOL_LIBRARY, else beside the executable as in a build tree, else as installed.
Library find_library();

// Why the file cannot be preloaded; empty: it can.
std::string preload_problem(const std::string& path);

// The list with the library in front and once only. Both separators of ld.so are understood, the
// user's own entries keep their order. Any other libtidepool.so goes: two would hook each other.
std::string with_preload(std::string_view list, const std::string& library);

}  // namespace tidepool::cli
