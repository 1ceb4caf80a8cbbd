#!/usr/bin/env bash
# All that a machine with N GPUs is asked, in two parts of ten minutes each: whether everything is right on it, and
# how fast it is beside other libraries, with rows for the table of plans.
#
#   whole_machine.sh right|fast [OPTION]… PROGRAMS OUT
#
#   --ranks N     (as many as there are GPUs); more than there are GPUs share them, and what cannot is left out
#   --seconds N   of the part (590): what has not begun by then, but the first step, is left out and named
#   --tune LIST   numbers of ranks for which rows are looked for (from 5 to N; N, if that is less)
#
# PROGRAMS is a folder with gpu_check, gpu_test, ranks_test, mscclc, mscclc-bench (built with --config=cuda) and
# mscclc's libnccl.so.2; with nccl-tests (a folder of *_perf) these run, too; with kernels (what 'mscclc library
# --kernels' wrote for N ranks) every compiled kernel is compared with the interpreter, bit by bit. What needs PyTorch
# is left out where python3 has none. MSCCLC_NCCL names NVIDIA's libnccl.so.2, if the loader does not find it. OUT
# gets a file a step; SUMMARY is the text to read. Run it in the repository's root. Multicast stays off.
set -uo pipefail

die() {
  printf 'whole_machine.sh: %s\n' "$*" >&2
  exit 2
}
[[ ${1-} == right || ${1-} == fast ]] || die "say which part: right or fast"
part=$1 ranks='' total=590 tuned=''
shift
while (($# > 2)); do
  case $1 in
    --ranks) ranks=$2 ;;
    --seconds) total=$2 ;;
    --tune) tuned=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
(($# == 2)) || die "PROGRAMS and OUT are needed"
programs=$(realpath -e "$1") || die "there is no '$1'"
for name in gpu_check gpu_test ranks_test mscclc mscclc-bench libnccl.so.2; do
  [[ -e $programs/$name ]] || die "'$1' has no $name"
done
[[ -f plans/library.json ]] || die "run it in the repository's root"
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
((gpus >= 1)) || die "there is no GPU"
: "${ranks:=$gpus}"
[[ $ranks =~ ^[1-9][0-9]?$ && $total =~ ^[1-9][0-9]*$ ]] || die "--ranks and --seconds need numbers"
((ranks >= 2)) || die "there must be two ranks at least: --ranks"
if ((ranks > gpus && ranks % gpus != 0)); then die "$ranks ranks do not fill $gpus GPUs evenly"; fi
: "${tuned:=$(((ranks > 5)) && seq -s, 5 "$ranks" || echo "$ranks")}"

mkdir -p "$2" || die "cannot make '$2'"
out=$(realpath "$2")
summary=$out/SUMMARY seconds=$total deadline=$total
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$summary"
MSCCLC_LIBRARY=$(realpath plans)
export MSCCLC_LIBRARY NCCL_NVLS_ENABLE=0
# shellcheck source=tests/gpu/steps.bash
source tests/gpu/steps.bash

# A GPU for each rank, and PyTorch.
torch_step() {  # name command…
  if ((ranks <= gpus)) && python3 -c 'import torch' 2>/dev/null; then
    step "$1" '0' "${@:2}"
  else
    left_out+=("$1")
  fi
}
front=(env "LD_PRELOAD=$programs/libnccl.so.2")

right() {
  step gpu_check '0' tools/gpu_check.sh --short --ranks "$ranks" --binary "$programs/gpu_check" \
    --gpu-test "$programs/gpu_test" --ranks-test "$programs/ranks_test" "$work/gpu_check"
  if [[ -d $programs/kernels ]]; then
    step kernels '0' "$programs/gpu_check" kernels --folder "$programs/kernels" --ranks "$ranks" --gpus "$gpus"
  else
    left_out+=(kernels)
  fi
  torch_step pytorch "${front[@]}" python3 tests/gpu/pytorch/torch_check.py --ranks "$ranks"
  torch_step nccl_cases "${front[@]}" python3 tests/gpu/nccl/nccl_cases.py --ranks "$ranks"
  torch_step kernels_come python3 tests/gpu/nccl/kernels_come.py --library "$programs/libnccl.so.2" --ranks "$ranks" \
    --seconds 60
  torch_step memory python3 tests/gpu/nccl/memory_table.py --library "$programs/libnccl.so.2" --ranks "$ranks"
  if [[ -d $programs/nccl-tests ]] && ((ranks <= gpus)); then
    step nccl_tests '0' env "OUT=$work/nccl_tests" tests/gpu/nccl/nccl_tests.sh "$programs/nccl-tests" \
      "$programs/libnccl.so.2" "$ranks"
  else
    left_out+=(nccl_tests)
  fi
}

bench=("$programs/mscclc-bench" -g "$ranks" --every-size --best --placement out-of-place -c 1)
if ((ranks > gpus)); then bench+=(--ranks-per-gpu $((ranks / gpus)) --contender handwritten); else
  bench+=(--contender nccl,nccl-symmetric,torch,handwritten)
fi
table() {  # name option…
  step "$1" '0' "${bench[@]}" --json "$out/$1.jsonl" "${@:2}"
}

fast() {
  table between -b 1K -e 4M -f 4 --graph --between 2 --repeats 5
  table back_to_back -b 1K -e 1G -f 4 --graph --repeats 5
  table back_to_back_bf16 -b 1K -e 1G -f 16 --graph --repeats 5 -d bf16
  table eager -b 1K -e 1G -f 16 --repeats 5
  torch_step decode python3 tests/gpu/nccl/decode_loop.py --library "$programs/libnccl.so.2" --ranks "$ranks" \
    --models 8b,70b,405b --batches 1,64
  if ((ranks <= gpus)); then
    step tune '0' "$programs/mscclc" tune --ranks "$tuned" --bytes 1K,4K,16K,64K,256K,1M,4M,16M,64M --repeats 3 \
      --trials 16 -o "$work/tuned"
    cp "$work/tuned/library.json" "$out/library.json" 2>/dev/null
    cat "$work"/tuned/tune-R*.jsonl 2>/dev/null | gzip >"$out/tune.jsonl.gz"
  else
    left_out+=(tune)
  fi
}

printf '%s, %s ranks on %s GPUs: %s\n' "$part" "$ranks" "$gpus" \
  "$(nvidia-smi -L | sed -n 's/^GPU 0: \(.*\) (UUID.*/\1/p')" >>"$summary"
"$part"
end_steps
