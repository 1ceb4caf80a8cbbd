// Finds the library: the folder with library.json and the programs, or plans, that it names.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "plans/library_table.h"

namespace mscclc {

struct Library {
  std::string folder;  ///< with a '/' at its end
  LibraryTable table;

  /// The file of a program or plan.
  std::string path_of(const LibraryChoice& choice) const {
    return folder + (choice.plan.empty() ? choice.program + ".mscl" : choice.plan);
  }
};

/// Reads the library in `folder`; "": in the one that MSCCLC_LIBRARY names, or plans/ beside this
/// process's executable, or share/mscclc/plans where that is installed, or plans/ in the working
/// directory. Errors: those of the table, and
/// no-library.
[[nodiscard]] std::optional<Library> open_library(const std::string& folder,
                                                  Diagnostics& diagnostics);

}  // namespace mscclc
