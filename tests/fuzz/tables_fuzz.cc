// Fuzzes tables by which plans are picked (plans/library.json, plans/rows/library.json) and ways of
// GEMMs that overlap: any bytes are refused with a diagnostic, or are a table; one that has a
// writer is read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plans/format/library_table.h"
#include "plans/format/row_table.h"
#include "runtime/choice/overlap/measured.h"

namespace {

using namespace mscclc;

void require(bool right) {
  if (!right) std::abort();
}

void read_measured_rows(std::string_view bytes) {
  Diagnostics diagnostics;
  const auto rows = overlap::read_measured(bytes, "fuzz.json", diagnostics);
  require(rows || diagnostics.has_errors());
  if (!rows) return;
  const auto again =
      overlap::read_measured(overlap::measured_text(*rows), "again.json", diagnostics);
  require(again && *again == *rows);
}

void read_library_table(std::string_view bytes) {
  Diagnostics diagnostics;
  const auto table = LibraryTable::parse(bytes, "fuzz.json", diagnostics);
  require(table || diagnostics.has_errors());
  if (!table) return;
  const std::string text = library_table_text(table->rows());
  const auto again = LibraryTable::parse(text, "again.json", diagnostics);
  require(again && library_table_text(again->rows()) == text);
}

void read_row_table(std::string_view bytes) {
  Diagnostics diagnostics;
  require(RowTable::parse(bytes, "fuzz.json", diagnostics) || diagnostics.has_errors());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_measured_rows(bytes);
  read_library_table(bytes);
  read_row_table(bytes);
  return 0;
}
