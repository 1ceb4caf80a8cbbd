#include "tools/timeline/trace.h"

#include "ir/ops/ops.h"

namespace mscclc::timeline {

std::string_view op_name(const Program& program, const Slice& slice) {
  return info(program.ranks[slice.rank].ops[slice.source].kind).name;
}

std::string_view class_of(const Slice& slice) {
  using device::StepFamily;
  using device::StepKind;
  const device::StepInfo& step = device::info(slice.kind);
  switch (step.family) {
    case StepFamily::plain:
    case StepFamily::switched:
    case StepFamily::rows:
      return step.adds ? "sums" : "moves";
    case StepFamily::packets:
    case StepFamily::sent:
      return step.adds ? "sums" : "packets";
    case StepFamily::target: {
      const bool waits = slice.kind == StepKind::wait || slice.kind == StepKind::acquire;
      return waits ? "waits" : "signals";
    }
    case StepFamily::block:
      return slice.kind == StepKind::flush ? "waits" : "meets";
    case StepFamily::flags:
      return slice.kind == StepKind::await ? "waits" : "signals";
    case StepFamily::loop:
      break;
  }
  return "meets";
}

}  // namespace mscclc::timeline
