// Writing to descriptors that belong to the program as much as to us.
#pragma once

#include <string_view>

namespace tidepool {

// Writes all of `text`. False with errno set if it cannot; a reader that is gone, or a file-size limit,
// is an error here and never a signal: the program would die of a line that it did not write.
bool write_quietly(int descriptor, std::string_view text);

}  // namespace tidepool
