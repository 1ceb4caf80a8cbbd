// The programs that commands take by name, as `mscclc library --list` shows them.
#pragma once

#include <string>
#include <vector>

namespace mscclc {

struct ListedProgram {
  std::string name;
  /// What a call asks for: a collective; or those of rows whose calls may get the program.
  std::vector<std::string> collectives;
  bool of_rows = false;
  std::string summary;  ///< the first sentence of its comment, up to a colon
};

/// All that are compiled in: the library's, then those of rows, in the order of their names.
std::vector<ListedProgram> list_programs();
/// A line each, under the collectives that they are for.
std::string list_text(const std::vector<ListedProgram>& programs);
/// One JSON object each, on a line of its own.
std::string list_json(const std::vector<ListedProgram>& programs);

}  // namespace mscclc
