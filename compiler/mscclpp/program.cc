// Names of what programs consist of.
#include "compiler/mscclpp/program.h"

namespace mscclc::mscclpp {

std::string_view text_of(Name name) {
  static constexpr std::string_view kNames[] = {
#define MSCCLPP_OP(name, reads, writes) #name,
#include "compiler/mscclpp/op_names.def"
#undef MSCCLPP_OP
  };
  return kNames[static_cast<size_t>(name)];
}

std::string_view text_of(Kind kind) {
  static constexpr std::string_view kNames[kKinds] = {"none", "memory", "port", "switch"};
  return kNames[static_cast<size_t>(kind)];
}

char letter_of(int32_t buffer) { return "ios"[buffer - kInput]; }

}  // namespace mscclc::mscclpp
