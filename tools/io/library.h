// Finds the library: the folder with library.json and the programs, or plans, that it names, or
// what is compiled in.
#pragma once

#include <optional>
#include <string>

#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "plans/format/library_table.h"

namespace mscclc {

struct Library {
  std::string folder;  ///< with a '/' at its end; "": it is compiled in
  LibraryTable table;

  /// What a program or plan is read by: its file, or the name of a program that is compiled in.
  std::string path_of(const LibraryChoice& choice) const;
  /// The text of one of its files, "library.json", as read_input() gives it.
  Result<std::string> read(const std::string& file) const;
};

/// The text of a program or plan, and the name that messages have for it.
struct NamedText {
  std::string name, text;
};
/// Reads a file; but a name without '/' and '.' is that of a program that is compiled in, if there
/// is such a one.
Result<NamedText> read_program(const std::string& path);

/// Reads the library in `folder`; "": in the one that MSCCLC_LIBRARY names, or plans/ beside this
/// process's executable, or share/mscclc/plans where that is installed, or plans/ in the working
/// directory, or else what is compiled in. Errors: those of the table, and no-library.
[[nodiscard]] std::optional<Library> open_library(const std::string& folder,
                                                  Diagnostics& diagnostics);

/// What sums of calls keep to: the order that an option names, or without one ("") what a job takes
/// from MSCCLC_ORDER. nullopt: reported. Errors: bad-variable.
[[nodiscard]] std::optional<SumOrder> order_of_calls(const std::string& option,
                                                     Diagnostics& diagnostics);

}  // namespace mscclc
