#include "python/mscclc/torch/adapter/process_state.h"

namespace mscclc::torch_adapter {

ProcessState& ProcessState::get() {
  static auto* made = new ProcessState;
  return *made;
}

}  // namespace mscclc::torch_adapter
