// Fuzzes tables of what was measured of GEMMs that overlap: any bytes are refused with a
// diagnostic, or are rows that are written and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/choice/overlap/measured.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mscclc;
  Diagnostics diagnostics;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto rows = overlap::read_measured(bytes, "fuzz.json", diagnostics);
  if (!rows) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  const auto again =
      overlap::read_measured(overlap::measured_text(*rows), "again.json", diagnostics);
  if (!again || *again != *rows) std::abort();
  return 0;
}
