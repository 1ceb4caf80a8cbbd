#include "compiler/rows/library.h"

#include "compiler/rows/read_rows.h"
#include "ir/support/precondition.h"

namespace mscclc::rows {

std::string_view library_text() {
  return
#include "compiler/rows/functions.inc"
      ;
}

std::vector<Function> library() {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("rows of the library", std::string(library_text()));
  auto functions = read_rows(sources, file, diagnostics);
  precondition(functions.has_value());
  return *std::move(functions);
}

Function library_function(std::string_view name) {
  for (Function& function : library()) {
    if (function.name == name) return std::move(function);
  }
  precondition(false);
  return {};
}

}  // namespace mscclc::rows
