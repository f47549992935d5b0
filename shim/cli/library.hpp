// Where libtidepool.so and its audit companion are, whether the loader can take them, and the list that
// names them for it (LD_PRELOAD, LD_AUDIT).
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

// The audit companion, beside the library.
Library find_companion(const Library& library);

// Why the loader of this glibc version cannot take an auditor along; empty: it can.
std::string audit_problem(std::string_view glibc_version);

// Why the file cannot be preloaded; empty: it can.
std::string preload_problem(const std::string& path);

// The list with the library in front and once only. Both separators of ld.so are understood, the
// user's own entries keep their order. Any other libtidepool.so goes: two would hook each other.
std::string with_preload(std::string_view list, const std::string& library);

}  // namespace tidepool::cli
