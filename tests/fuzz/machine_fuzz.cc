// Fuzzes the reader of machine files: any bytes are refused with a diagnostic, or are a machine
// whose text gives the same machine again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "plans/format/machines/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mscclc;
  Diagnostics diagnostics;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto machine = read_machine(bytes, "fuzz.json", diagnostics);
  if (!machine) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  const std::string text = machine_text(*machine);
  const auto again = read_machine(text, "again.json", diagnostics);
  if (!again || machine_text(*again) != text) std::abort();
  return 0;
}
