#!/usr/bin/env bash
# tools/gpu_check.sh on a machine with one GPU, which programs of this test play: what it starts, and
# what its last line says.
set -euo pipefail

fail() {
  printf 'gpu_check_test.sh: %s\n' "$*" >&2
  exit 1
}
has() { grep -qxF -- "$2" "$1" || fail "no line '$2' in $1: $(cat "$1")"; }

root=$PWD programs=$TEST_TMPDIR/programs started=$TEST_TMPDIR/started
export started
mkdir -p "$programs" "$TEST_TMPDIR/here/plans" "$TEST_TMPDIR/here/tests/mscclpp_plans"
program() {  # name, its text comes from standard input
  { echo '#!/usr/bin/env bash'; cat; } >"$programs/$1"
  chmod +x "$programs/$1"
}
program nvidia-smi <<<'echo "GPU 0: A test (UUID: 1)"'
program gpu_check <<<'echo "${CUDA_MPS_PIPE_DIRECTORY:+under MPS: }$*" >>"$started"; echo " 0 right"'
program broken <<<'echo "$*"; exit 1'
# It answers while its folder says that a daemon runs.
program nvidia-cuda-mps-control <<'END'
if [[ ${1-} == -d ]]; then touch "$CUDA_MPS_PIPE_DIRECTORY/runs"; exit; fi
read -r order
[[ -e ${CUDA_MPS_PIPE_DIRECTORY-}/runs ]] || exit 1
echo "$order" >>"$started"
END
PATH=$programs:$PATH
unset CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY MSCCLC_MULTICAST
cd "$TEST_TMPDIR/here"

check() {  # binary option…
  local binary=$1
  shift
  : >"$started"
  "$root/tools/gpu_check.sh" --short --binary "$programs/$binary" "$@" "$TEST_TMPDIR/logs" \
    >"$TEST_TMPDIR/said"
}

check gpu_check
has "$started" 'under MPS: plans --most 16384 --ranks 2 --gpus 1 --seconds 15'
has "$started" 'plans --graph --most 16384 --ranks 2 --threads --gpus 1 --seconds 15'
has "$started" 'soak --calls 100000 --ranks 2 --threads --gpus 1 --seconds 15'
has "$started" 'adds --gpus 1'
[[ $(grep -c overlap "$started") == 0 ]] || fail "overlap needs a GPU for each rank"
[[ $(grep -c 'under MPS: soak' "$started") == 0 ]] || fail "soak does not fit beside a process"
[[ $(grep -c quit "$started") == 1 ]] || fail "the daemon has not been ended once"
[[ $(grep -n quit "$started" | cut -d: -f1) -lt $(grep -n -m 1 threads "$started" | cut -d: -f1) ]] ||
  fail "threads run under MPS"
tail -n 1 "$TEST_TMPDIR/said" |
  grep -q '^19 passed, 0 failed, skipped: a GPU for each rank; adds; multicast' ||
  fail "the last line is: $(tail -n 1 "$TEST_TMPDIR/said")"

program nvidia-cuda-mps-control <<<'exit 1'
check gpu_check --only '^(hang|plans)'
[[ $(grep -c 'under MPS' "$started") == 0 ]] || fail "a daemon that does not start is looked for"
[[ $(wc -l <"$started") == 3 ]] || fail "the daemon does not start: $(cat "$started")"

rm "$programs/nvidia-cuda-mps-control"
check gpu_check --only '^(hang|plans)'
[[ $(wc -l <"$started") == 3 ]] || fail "without MPS: $(cat "$started")"
grep -q '^3 passed, 0 failed, .*processes (there is no MPS)' <<<"$(tail -n 1 "$TEST_TMPDIR/said")" ||
  fail "the last line is: $(tail -n 1 "$TEST_TMPDIR/said")"

if check broken --only '^hang'; then fail "a step fails, and the script does not"; fi
grep -q '^0 passed, 1 failed' <<<"$(tail -n 1 "$TEST_TMPDIR/said")" || fail "$(cat "$TEST_TMPDIR/said")"

program nvidia-smi <<<'for i in 0 1 2 3; do echo "GPU $i: A test (UUID: $i)"; done'
CUDA_VISIBLE_DEVICES=2,3 check gpu_check --only '^(hang|adds)'
[[ $(grep -c 'ranks 4' "$started") == 0 ]] || fail "more ranks than GPUs that the caller chose"
has "$started" 'adds --gpus 2'
check gpu_check --only '^hang'
[[ $(grep -c 'ranks 4' "$started") == 2 ]] || fail "four GPUs: $(cat "$started")"
[[ $(grep -c 'ranks 8' "$started") == 0 ]] || fail "more ranks than GPUs that were not asked for"

# Eight ranks of two GPUs share them, and two do not.
CUDA_VISIBLE_DEVICES=0,1 check gpu_check --only '^(hang|overlap|functions)' --ranks 2,8
has "$started" 'functions --ranks 2 --seconds 15'
[[ $(grep -c 'functions.*ranks 8' "$started") == 0 ]] || fail "more blocks than a share of a GPU has room for"
has "$started" 'hang --ranks 8 --threads --gpus 2 --seconds 15'
has "$started" 'overlap --ranks 2 --seconds 15'
[[ $(grep -c 'overlap.*ranks 8' "$started") == 0 ]] || fail "overlap needs a GPU for each rank"
grep -q 'skipped: a GPU for each rank; processes (there is no MPS)' <<<"$(tail -n 1 "$TEST_TMPDIR/said")" ||
  fail "the last line is: $(tail -n 1 "$TEST_TMPDIR/said")"
program nvidia-smi <<<'for i in 0 1 2 3 4 5 6 7; do echo "GPU $i: A test (UUID: $i)"; done'
check gpu_check --only '^hang'
[[ $(grep -c 'ranks 8' "$started") == 2 ]] || fail "eight GPUs: $(cat "$started")"
if check gpu_check --ranks two; then fail "a number of ranks that is none is taken"; fi
