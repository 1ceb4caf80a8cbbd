#include <algorithm>

#include "executor/compiled/emit.h"
#include "executor/compiled/shape.h"
#include "tests/compiled/on_host/plans.h"

namespace mscclc {

std::string kernel_digest(size_t plan) { return "plan" + std::to_string(plan); }

std::vector<Dtype> kernel_dtypes(const KernelPlan& plan) {
  std::vector<Dtype> out;
  std::ranges::copy_if(plan.dtypes, std::back_inserter(out), has_kernels);
  return out;
}

std::set<std::string> kernel_names(const KernelPlan& plan, const std::string& digest) {
  std::set<std::string> names;
  if (!why_no_kernels(plan).empty()) return names;
  Diagnostics ignored;
  for (uint32_t r = 0; r < plan.program->ranks.size(); ++r) {
    const auto shape = CompiledShape::of(*plan.program, r, ignored);
    if (shape->blocks() == 0) continue;
    const bool typed = shape->adds() || shape->has_rows();
    for (const Dtype dtype : typed ? kernel_dtypes(plan) : std::vector{Dtype::f32}) {
      names.insert(digest + "_" + shape->key() + "_" + shape->arithmetic(dtype));
    }
  }
  return names;
}

std::string why_no_kernels(const KernelPlan& plan) {
  for (uint32_t r = 0; r < plan.program->ranks.size(); ++r) {
    Diagnostics diagnostics;
    if (!CompiledShape::of(*plan.program, r, diagnostics)) return diagnostics.all().back().message;
  }
  return "";
}

}  // namespace mscclc
