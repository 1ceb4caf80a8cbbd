#!/usr/bin/env bash
# Runs the library's plans in the executor of MSCCL++ on the GPUs of this machine, and checks every
# element; the last line says how many plans were right, refused and wrong.
#
#   tools/mscclpp_check.sh [OPTION]… BUILD_OF_MSCCLPP LOGS
#
#   BUILD_OF_MSCCLPP  the folder in which cmake has built MSCCL++ (lib/libmscclpp.so), below its source
#   LOGS              takes the plans, and the log of each
#
#   --ranks N         GPUs (default: 2)
#   --mscclc FILE     the compiler (default: bazel-bin/tools/mscclc, then mscclc in PATH)
#   --checker FILE    a mscclpp_check that was built elsewhere; without it g++ builds one
#   --only REGEX      programs whose name matches
#   --seconds N       of a plan at most (default: 120)
#   PLAN.json …       after LOGS: these plans instead of the library's
#
# Every plan runs in chunks of three sizes, in and out of place, with buffers that are allocations of
# their own and buffers inside larger ones; plans with packets run in LL16 and LL8 each. Programs that
# --target mscclpp refuses count as refused, with the reason. Programs with a switch are left out
# unless MSCCLPP_CHECK_SWITCH=1: they create multicast objects, which can hang a system that is not set
# up for them. Needs g++, nlohmann/json.hpp and the CUDA headers; no nvcc.
set -euo pipefail

say() { printf '%s\n' "$*"; }
die() {
  printf 'mscclpp_check.sh: %s\n' "$*" >&2
  exit 2
}

ranks=2 mscclc='' checker='' only='.' seconds=120
declare -a places=()
while (($# > 0)); do
  case $1 in
    --ranks | --mscclc | --checker | --only | --seconds)
      (($# > 1)) || die "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    -h | --help)
      sed -n '2,24s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    -*) die "unknown option '$1'; --help lists them" ;;
    *) places+=("$1") ;;
  esac
  shift
done
((${#places[@]} >= 2)) || die "say where MSCCL++ was built, and where the logs go; --help says more"
[[ $ranks =~ ^[1-9][0-9]*$ && $seconds =~ ^[1-9][0-9]*$ ]] || die "--ranks and --seconds take numbers"
build=$(realpath "${places[0]}") logs=${places[1]}
plans=("${places[@]:2}")
here=$(dirname "$(realpath "$0")")
[[ -e $build/lib/libmscclpp.so ]] || die "there is no lib/libmscclpp.so in '$build'"
mkdir -p "$logs"
export LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if [[ ${MSCCLPP_CHECK_SWITCH:-0} != 1 ]]; then export MSCCLPP_FORCE_DISABLE_NVLS=true; fi

build_checker() {
  local cuda=${CUDA_HOME:-/usr/local/cuda}
  [[ -e $cuda/include/cuda_runtime.h ]] || die "there is no CUDA in '$cuda'; CUDA_HOME says where"
  say "building the checker ($logs/build.log)"
  g++ -std=c++20 -O2 -rdynamic -I"$build/../include" -I"$build/include" \
    -I"$build/_deps/json-src/include" -isystem "$cuda/include" "$here/mscclpp_check/mscclpp_check.cc" \
    -o "$logs/mscclpp_check" -L"$build/lib" -lmscclpp -L"$cuda/lib64" -L"$cuda/lib64/stubs" -lcudart \
    -lcuda -lpthread >"$logs/build.log" 2>&1 || die "it does not build; see $logs/build.log"
  checker=$logs/mscclpp_check
}
if [[ -z $checker ]]; then build_checker; fi
[[ -x $checker ]] || die "'$checker' is no program"

# Compiles a program; the reason stands in NAME.log where it is refused.
compile_one() {  # name
  local file=$here/../plans/$1.mscl
  local -a defines=(-D "R=$ranks")
  if grep -q '^param.*\bworld\b' "$file"; then defines=(-D "world=$ranks" -D gpus=1); fi
  if grep -q '^param .* F = ' "$file"; then defines+=(-D F=LL16); fi
  # Its executor has a packet sum's plain source at an end, the order of the ranks in the middle.
  if grep -q '^param .*own_first' "$file"; then defines+=(-D own_first=true); fi
  "$mscclc" compile "$file" "${defines[@]}" --target mscclpp -o "$logs/$1.json" >"$logs/$1.log" 2>&1
}

right=0 refused=0 wrong=0
run_one() {  # name plan
  local code=0
  timeout -k 10 "$seconds" "$checker" "$2" >"$logs/$1.log" 2>"$logs/$1.err" || code=$?
  if ((code == 0)); then
    right=$((right + 1))
    say "right    $1: $(tail -n 1 "$logs/$1.log")"
  else
    wrong=$((wrong + 1))
    say "WRONG    $1 (exit code $code):
$(tail -qn 8 "$logs/$1.log" "$logs/$1.err" | sed 's/^/         /')"
  fi
}

if ((${#plans[@]} == 0)); then
  if [[ -z $mscclc ]]; then
    mscclc=$here/../bazel-bin/tools/mscclc
    [[ -x $mscclc ]] || mscclc=$(command -v mscclc) || die "there is no mscclc; --mscclc says where"
  fi
  for file in "$here"/../plans/*.mscl; do
    name=$(basename "$file" .mscl)
    [[ $name =~ $only ]] || continue
    if [[ $name == *switch* && ${MSCCLPP_CHECK_SWITCH:-0} != 1 ]]; then
      say "left out $name: MSCCLPP_CHECK_SWITCH=1 runs it"
    elif compile_one "$name"; then
      run_one "$name" "$logs/$name.json"
    else
      refused=$((refused + 1))
      say "refused  $name: $(grep -m 1 -o 'error: .*' "$logs/$name.log" || tail -n 1 "$logs/$name.log")"
    fi
  done
else
  for plan in "${plans[@]}"; do run_one "$(basename "$plan" .json)" "$plan"; done
fi
say "$right right, $refused refused, $wrong wrong"
((wrong == 0))
