// Documents as tests: their commands print what stands there.
//
//   `mine.mscl`:               a line like this, then a block: the file of that name
//   ```
//   $ mscclc verify mine.mscl  a block that begins with '$ ': commands, each with what it prints
//   mine.mscl: proved: …       (standard output, then standard error); a line '…' stands for any
//   …                          lines
//   ```
//
// Commands of one document run in one folder, which has the repository's plans/. A file that the
// repository has, too, must be the same except for comments at its head. Times and rates may
// differ, and with them the width of columns: numbers with a point, and those columns of a table of
// results.
#pragma once

#include <filesystem>

namespace mscclc::testing {

struct DocumentResult {
  int passed = 0, failed = 0;  ///< commands and files
};

/// Runs a document's commands, in new folders in `scratch`, and says what differs. `update`:
/// rewrites what commands print instead.
DocumentResult check_document(const std::filesystem::path& path,
                              const std::filesystem::path& scratch, bool update);

}  // namespace mscclc::testing
