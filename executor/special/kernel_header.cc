#include <string_view>

#include "executor/special/emit.h"

namespace mscclc {

std::string_view kernel_header() {
  static constexpr char kText[] =
#include "executor/special/kernel_header.inc"
      ;
  return {kText, sizeof kText - 1};
}

}  // namespace mscclc
