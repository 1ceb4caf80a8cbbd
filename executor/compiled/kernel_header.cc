#include <string_view>

#include "executor/compiled/emit.h"

namespace mscclc {

std::string_view kernel_header() {
  static constexpr char kText[] =
#include "executor/compiled/kernel_header.inc"
      ;
  return {kText, sizeof kText - 1};
}

std::string_view standard_header() {
  static constexpr char kText[] =
#include "executor/compiled/standard.inc"
      ;
  return {kText, sizeof kText - 1};
}

std::span<const char* const> standard_names() {
  static constexpr const char* kNames[] = {"array",       "bit",           "cstddef", "cstdint",
                                           "cstring",     "optional",      "span",    "string_view",
                                           "type_traits", "cuda_runtime.h"};
  return kNames;
}

}  // namespace mscclc
