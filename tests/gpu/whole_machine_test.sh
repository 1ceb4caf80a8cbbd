#!/usr/bin/env bash
# tests/gpu/whole_machine.sh on machines that programs of this test play: what each part starts, with which GPUs,
# what it leaves out, and what it does when the time is up.
set -euo pipefail

fail() {
  printf 'whole_machine_test.sh: %s\n' "$*" >&2
  exit 1
}
programs=$TEST_TMPDIR/programs tools=$TEST_TMPDIR/tools started=$TEST_TMPDIR/started
export started
mkdir -p "$programs/nccl-tests" "$programs/kernels" "$tools" tests/mscclpp_plans
program() {  # path, its text comes from standard input
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
gpus() { program "$tools/nvidia-smi" <<<"for ((i = 0; i < $1; ++i)); do echo \"GPU \$i: A test (UUID: \$i)\"; done"; }
for name in gpu_check gpu_test ranks_test mscclc mscclc-bench; do
  # shellcheck disable=SC2016
  program "$programs/$name" <<<'echo "$(basename "$0") $*" >>"$started"'
done
# shellcheck disable=SC2016
program "$programs/nccl-tests/all_reduce_perf" <<<'echo "nccl-tests $*" >>"$started"
echo "# Out of bounds values : 0 OK"'
: >"$programs/libnccl.so.2"
# PyTorch is there; what it would run is not.
# shellcheck disable=SC2016
program "$tools/python3" <<<'echo "python3 $*" >>"$started"'
PATH=$tools:$PATH
unset CUDA_VISIBLE_DEVICES

check() {  # part option…
  : >"$started"
  tests/gpu/whole_machine.sh "$@" "$programs" "$TEST_TMPDIR/out" >"$TEST_TMPDIR/said" 2>&1
}
started() { grep -qE -- "$1" "$started" || fail "it has not started '$1': $(cat "$started" "$TEST_TMPDIR/said")"; }
not_started() { if grep -qE -- "$1" "$started"; then fail "it has started '$1': $(cat "$started")"; fi; }
said() { grep -qE -- "$1" "$TEST_TMPDIR/said" || fail "it does not say '$1': $(cat "$TEST_TMPDIR/said")"; }

gpus 8
check right || fail "$(cat "$TEST_TMPDIR/said")"
started '^gpu_check plans --most 16384 --ranks 8'
started '^gpu_check kernels --folder .*/kernels --ranks 8 --gpus 8$'
started '^python3 tests/gpu/pytorch/torch_check.py --ranks 8$'
started '^python3 tests/gpu/nccl/memory_table.py'
said '^right, 8 ranks on 8 GPUs: A test$'
said '^[0-9]+ steps passed, 0 failed: $'

check fast || fail "$(cat "$TEST_TMPDIR/said")"
started '^mscclc-bench -g 8 .*--contender nccl,nccl-symmetric,torch,handwritten .*-b 1K -e 1G'
started '^mscclc tune --ranks 5,6,7,8 '
started '^python3 tests/gpu/nccl/decode_loop.py .*405b'
[[ -s $TEST_TMPDIR/out/SUMMARY ]] || fail "no summary"

# Eight ranks on two GPUs share them: no library but ours runs so, and nothing is tuned.
gpus 2
check fast --ranks 8
started '^mscclc-bench -g 8 .*--ranks-per-gpu 4 --contender handwritten'
not_started '^mscclc tune'
not_started 'decode_loop'
said '^left out: decode tune$'
check right --ranks 8
started '^gpu_check hang --ranks 8 --threads --gpus 2'
not_started 'torch_check'
check fast
started '^mscclc tune --ranks 2 '

# A step that fails is named, and those after it run.
program "$programs/mscclc-bench" <<<'exit 3'
if check fast; then fail "a step fails, and the script does not"; fi
said '^2 steps passed, 4 failed: between back_to_back back_to_back_bf16 eager$'
# What has no time left is left out.
program "$programs/mscclc-bench" <<<'sleep 60'
if check fast --seconds 1; then fail "steps were stopped, and the script does not fail"; fi
said '^left out: back_to_back back_to_back_bf16 eager decode tune$'
for wrong in slow 'fast --ranks none' 'fast --ranks 3'; do
  # shellcheck disable=SC2086
  if check $wrong; then fail "'$wrong' is taken"; fi
done
gpus 0
if check right; then fail "a machine without GPUs is taken"; fi
said 'there is no GPU'
echo fine
