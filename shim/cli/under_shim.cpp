// What `run` and `doctor` share: settings and environment of a command under the shim.
#include "shim/cli/under_shim.hpp"

#include <algorithm>
#include <cstdlib>

#include "shim/cli/library.hpp"

namespace tidepool::cli {

Settings settings_of_command(const Variables& given) {
  return parse_settings([&](const char* name) -> const char* {
    const auto found =
        std::find_if(given.begin(), given.end(), [&](const auto& entry) { return entry.first == name; });
    return found != given.end() ? found->second.c_str() : std::getenv(name);
  });
}

void put_in_front(const char* variable, const std::string& path, Variables& environment) {
  const char* inherited = std::getenv(variable);
  environment.emplace_back(variable, with_preload(inherited == nullptr ? "" : inherited, path));
}

}  // namespace tidepool::cli
