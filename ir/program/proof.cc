#include "ir/program/proof.h"

namespace mscclc {

const uint32_t kProverVersion = 15;

}  // namespace mscclc
