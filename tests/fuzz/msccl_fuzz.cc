// Fuzzes the reader of MSCCL's XML: any bytes are refused with a diagnostic, or are a schedule
// whose steps can be put in order, and whose program has the canonical form and is proved or
// refused.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "compiler/compile.h"
#include "compiler/msccl/read_xml.h"
#include "compiler/msccl/write_program.h"

namespace {

using namespace mscclc;

/// Large numbers make large programs, which are slow and show nothing more.
bool is_small(const msccl::Schedule& s) {
  return s.gpus.size() <= 8 && s.chunks <= 64 && s.inputs <= 64 && s.outputs <= 64 &&
         std::ranges::all_of(s.gpus, [](const msccl::Gpu& gpu) { return gpu.scratch <= 64; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file =
      sources.add("fuzz.xml", std::string(reinterpret_cast<const char*>(data), size));
  const auto schedule = msccl::read_xml(sources, file, diagnostics);
  const auto order = schedule ? msccl::find_order(*schedule, diagnostics) : std::nullopt;
  if (!order) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  if (!is_small(*schedule)) return 0;
  const std::string text = msccl::write_program(*schedule, *order, {.gpus_per_node = 2});
  const FileId program = sources.add("fuzz.mscl", text);
  if (!format_program(sources, program, diagnostics)) std::abort();
  (void)compile(sources, program, {}, {}, diagnostics);
  return 0;
}
