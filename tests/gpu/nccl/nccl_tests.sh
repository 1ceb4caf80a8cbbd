#!/usr/bin/env bash
# NVIDIA's nccl-tests with mscclc's libnccl.so.2 in front of NCCL: runs every program with -c 1, which
# compares all results with what must come out, in place and not. By hand, on a machine with GPUs:
#
#   tests/gpu/nccl/nccl_tests.sh FOLDER LIBRARY [GPUS]
#
# FOLDER: nccl-tests' programs (*_perf); or its sources, which are built first, against the machine's
# header, where CUDA_HOME and NCCL_HOME say, if not where nccl-tests looks.
# OUT: the folder for logs. SECONDS_LEFT: no run begins after so many seconds. LIMIT: of one run.
# A line for each run; the last one says how many were right. Exits with 1 if any was not, or was left
# out.
set -uo pipefail
folder=${1:?the folder of nccl-tests} library=$(realpath "${2:?libnccl.so.2 of mscclc}")
gpus=${3:-$(nvidia-smi -L | wc -l)}
out=${OUT:-$PWD/nccl_tests.out}
mkdir -p "$out"
out=$(realpath "$out")
export NCCL_NVLS_ENABLE=0

shopt -s nullglob
programs=("$folder"/*_perf)
if ((${#programs[@]} == 0)); then
  homes=()
  [[ -n ${CUDA_HOME:-} ]] && homes+=("CUDA_HOME=$CUDA_HOME")
  [[ -n ${NCCL_HOME:-} ]] && homes+=("NCCL_HOME=$NCCL_HOME")
  if ! make -C "$folder" -j "$(nproc)" BUILDDIR="$out/build" "${homes[@]}" > "$out/make.log" 2>&1; then
    tail -n 20 "$out/make.log"
    echo "nccl-tests cannot be built"
    exit 1
  fi
  programs=("$out"/build/*_perf)
fi

right=0 wrong=0 left_out=0
# A program says how many values were out of bounds, and exits with 0 in any case that it survives.
run() { # NAME PROGRAM OPTION...
  local name=$1 program=$2 code=0
  shift 2
  if [[ -n ${SECONDS_LEFT:-} ]] && ((SECONDS > SECONDS_LEFT)); then
    left_out=$((left_out + 1))
    echo "left out: $name"
    return
  fi
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
# Every program, with the options that all of them get.
run_all() { # NAME OPTION...
  local name=$1 program
  shift
  for program in "${programs[@]}"; do run "$(basename "$program")-$name" "$program" "$@"; done
}

# All types, and all reductions where there are any: a GPU for each thread, or all for one.
run_all threads -t "$gpus" -g 1 -b 8 -e 32M -f 8 -n 3 -w 1 -d all -o all
run_all one-thread -t 1 -g "$gpus" -b 8 -e 32M -f 8 -n 3 -w 1 -d all -o sum
# CUDA graphs; odd sizes; one large message; registered buffers, and windows.
run_all graph -t "$gpus" -g 1 -b 1K -e 16M -f 16 -n 5 -w 1 -G 3
run_all odd -t "$gpus" -g 1 -b 4 -e 4100 -i 68 -n 2 -w 1 -d half
run_all large -t "$gpus" -g 1 -b 1G -e 1G -n 2 -w 1
run_all registered -t "$gpus" -g 1 -b 1K -e 16M -f 16 -n 2 -w 1 -R 1
run_all windows -t "$gpus" -g 1 -b 1K -e 16M -f 16 -n 2 -w 1 -R 2
echo "$right right, $wrong wrong, $left_out left out"
((right > 0 && wrong == 0 && left_out == 0))
