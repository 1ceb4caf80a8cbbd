#!/usr/bin/env bash
# NVIDIA's nccl-tests with mscclc's libnccl.so.2 in front of NCCL: builds them from sources in a folder,
# against the machine's header, and runs every program with -c 1. By hand, on a machine with GPUs:
#
#   tests/gpu/nccl_tests.sh SOURCES LIBRARY [GPUS]     SOURCES: a checkout of nccl-tests
#
# CUDA_HOME, NCCL_HOME: where they are, if not where nccl-tests looks. OUT: the folder for logs.
# A line for each run; the last one says how many were right. Exits with 1 if any was not.
set -uo pipefail
sources=${1:?the folder of nccl-tests} library=$(realpath "${2:?libnccl.so.2 of mscclc}")
gpus=${3:-$(nvidia-smi -L | wc -l)}
out=${OUT:-$PWD/nccl_tests.out}
mkdir -p "$out"
out=$(realpath "$out")
export NCCL_NVLS_ENABLE=0

homes=()
[[ -n ${CUDA_HOME:-} ]] && homes+=("CUDA_HOME=$CUDA_HOME")
[[ -n ${NCCL_HOME:-} ]] && homes+=("NCCL_HOME=$NCCL_HOME")
if ! make -C "$sources" -j "$(nproc)" BUILDDIR="$out/build" "${homes[@]}" > "$out/make.log" 2>&1; then
  tail -n 20 "$out/make.log"
  echo "nccl-tests cannot be built"
  exit 1
fi

right=0 wrong=0
# A program says how many values were out of bounds, and exits with 0 in any case that it survives.
run() { # NAME PROGRAM OPTION...
  local name=$1 program=$2 code=0
  shift 2
  NCCL_DEBUG=VERSION LD_PRELOAD=$library timeout -k 5 "${LIMIT:-300}" "$program" -c 1 "$@" \
    > "$out/$name.log" 2>&1 || code=$?
  if [[ $code == 0 ]] && grep -Eq '# Out of bounds values *: *0 OK' "$out/$name.log"; then
    right=$((right + 1))
    echo "right: $name"
  else
    wrong=$((wrong + 1))
    echo "WRONG: $name: exit code $code; $out/$name.log"
  fi
}

shopt -s nullglob
for program in "$out"/build/*_perf; do
  name=$(basename "$program")
  # All types, and all reductions where there are any: a GPU for each thread, or all for one.
  run "$name-threads" "$program" -t "$gpus" -g 1 -b 8 -e 32M -f 8 -n 3 -w 1 -d all -o all
  run "$name-one-thread" "$program" -t 1 -g "$gpus" -b 8 -e 32M -f 8 -n 3 -w 1 -d all -o sum
  # CUDA graphs; odd sizes; one large message.
  run "$name-graph" "$program" -t "$gpus" -g 1 -b 1K -e 16M -f 16 -n 5 -w 1 -G 3
  run "$name-odd" "$program" -t "$gpus" -g 1 -b 4 -e 4100 -i 68 -n 2 -w 1 -d half
  run "$name-large" "$program" -t "$gpus" -g 1 -b 1G -e 1G -n 2 -w 1
done
echo "$right right, $wrong wrong"
((right > 0 && wrong == 0))
