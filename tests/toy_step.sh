#!/usr/bin/env bash
# What a new kind of step costs that all machines run: adds one to a copy of the tree, by the recipe of
# CONTRIBUTING.md, compiles all that knows kinds of step, and counts the files that it took. Fails if there
# are more than 5.
#
#   tests/toy_step.sh [--quick] [FOLDER]     FOLDER: for the copy, which is kept then; else one that is
#                                            removed
#
# Without --quick, by hand: runs every op and plan of the tests on all engines as well. Edits that are not
# committed count, files that git does not know do not. The kind is `fetch`, a copy, which `get` is then.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/toy_copy.sh
source tests/toy_copy.sh
enter_copy "$@"

# 1. The row of the table.
insert executor/interpreter/step_kinds.def '^STEP(reduce,' <<'EOF'
STEP(fetch,                    plain,    false)
EOF
# 2. What it does, on the simulator, the host device, and in the kernel that runs all plans.
insert executor/interpreter/handlers_copy.h '^}  // namespace' <<'EOF'
template <class M, class P>
MSCCLC_RUN inline void run_fetch(M& m, const P& p, const typename P::Op& op) {
  move_all_plain(m, p, op);
}

EOF
# 3. In the fast kernels.
change executor/cuda/device/fast.cuh 'kinds_of(StepFamily::plain) == 2' 'kinds_of(StepFamily::plain) == 3'
insert executor/cuda/device/fast.cuh 'case StepKind::reduce:' <<'EOF'
      case StepKind::fetch:
        return copy_rows(step);
EOF
# 4. In compiled kernels.
change executor/cuda/device/compiled_block.cuh 'kinds_of(StepFamily::plain) == 2' 'kinds_of(StepFamily::plain) == 3'
insert executor/cuda/device/compiled_block.cuh 'else if constexpr (kind == StepKind::reduce) {' <<'EOF'
    } else if constexpr (kind == StepKind::fetch) {
      copy_rows<Operands>(e);
EOF
# 5. An op that becomes such a step.
sed --in-place '/^OP(get, /s/"copy", /"fetch",/' ir/ops/ops.def
[[ $(git diff --stat -- ir/ops/ops.def) ]] || die "ir/ops/ops.def: no row of get"
count_places "A kind of step" 5

# A kernel that was compiled for a plan with such a step.
cat >toy_kernel.cu <<'EOF'
#include "executor/cuda/device/compiled.cuh"

using namespace mscclc;
using namespace mscclc::cuda;

void run(CompiledBlock<NoSums, PacketFormat::none, CompiledTraits{}>& block) {
  block.run<device::StepKind::fetch, CompiledOperands<1, 1, 1, device::own_place(1), device::own_place(2)>>(0);
}
EOF
# shellcheck disable=SC2046
compile $(sources_with 'StepKind|StepFamily' executor runtime tools) executor/cuda/kernel_f32.cu \
  executor/cuda/kernel_any.cu toy_kernel.cu
if ((quick)); then exit; fi
bazel test //executor:all //executor/simulator:op_test //executor/compiled/... //tests/engines:ops_test \
  //tests/compiled/on_host/...
