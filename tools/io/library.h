// Finds the library: the folder with library.json and the programs, or plans, that it names, or
// what is compiled in.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  bool compiled_in = false;  ///< and so is what it imports
};
/// Reads a file; but a name without '/' and '.' is that of a program that is compiled in, if there
/// is such a one: of the library, or of collectives of rows (plans/rows).
Result<NamedText> read_program(const std::string& path);
/// The text of a program with parameters, read ahead of its compilation. `file` is as
/// read_program() takes it, or with parameters after ':'. nullopt: it has none, cannot be read, or
/// only once, as standard input.
std::optional<std::string> look_into_program(const std::string& file);
/// The parameter that a program's rows have as many columns as, "N"; "": it has none. `file` is as
/// read_program() takes it, or with parameters after ':'.
std::string columns_parameter(const std::string& file);
/// Reads what a program imports.
std::function<std::optional<std::string>(const std::string& path)> reader_of_imports(
    const NamedText& program);

/// A program that read_program() has by name.
struct NamedProgram {
  std::string_view name, text;
  bool of_rows = false;  ///< row_table.h says which calls get it, not library.json
};
/// All of them: the library's, then those of rows, in the order of their names.
std::vector<NamedProgram> named_programs();

/// "unknown collective 'allredcue'; did you mean 'allreduce'?", or else all that there are: those
/// of `more`, too, which are collectives of rows.
std::string unknown_collective(const std::string& word, const std::vector<std::string>& more = {});

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
