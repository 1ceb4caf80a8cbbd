#include "ir/program/proof.h"

namespace mscclc {

const uint32_t kProverVersion = 14;

}  // namespace mscclc
