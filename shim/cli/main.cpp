// The `tidepool` command.
#include <exception>

#include "shim/cli/command_line.hpp"
#include "shim/cli/commands.hpp"

int main(int count, char** words) {
  try {
    return tidepool::cli::run_command_line({words + 1, words + count});
  } catch (const std::exception& error) {
    tidepool::cli::say(error.what());
    return 1;
  }
}
