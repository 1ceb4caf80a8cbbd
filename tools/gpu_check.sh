#!/usr/bin/env bash
# Tries the runtime on the GPUs of this machine; the last line says how many steps passed and failed,
# and what this machine, or its settings, did not let them try.
#
#   tools/gpu_check.sh [OPTION]… LOGS    logs of all steps go into the folder LOGS
#
#   --only REGEX      steps whose name matches; --list shows the names
#   --list            shows the steps and runs none
#   --short           soak and cycles with a tenth of the calls, small messages, 15 s a step
#   --soak-calls N    calls of each soak (default: 1000000)
#   --cycles N        graphs and memory handles of each cycles (default: 10000)
#   --most BYTES      the largest message of plans (default: 1 MiB)
#   --seconds N       a step begins nothing new after about so long
#   --ranks LIST      numbers of ranks, separated by commas (default: 2, 4 and 8, as many as there are
#                     GPUs); more than there are GPUs share them
#   --one-gpu         ranks share a GPU, also where there are more
#   --binary FILE     a gpu_check that was built elsewhere; without it bazel and nvcc build one,
#                     and the tests that gpu_test and ranks_test are
#   --gpu-test FILE   the same for runtime/devices/cuda:gpu_test
#   --ranks-test FILE the same for executor/cuda/testing:ranks_test
#
# With four GPUs steps of two ranks run two at a time. Ranks that share GPUs run as threads, and as
# processes under a daemon of NVIDIA's MPS, the one that runs or one for as long as this takes.
# What needs a GPU for each rank is left out then. Run in the repository's root, or where copies
# of plans/ and tests/mscclpp_plans/ are. A binary for machines without bazel needs nothing else there
# but the driver:
#
#   bazel build --config=cuda --linkopt=-l:libstdc++.a --linkopt=-static-libgcc \
#     --linkopt=-Wl,--as-needed //tests/gpu:gpu_check
set -euo pipefail

say() { printf '%s\n' "$*"; }
die() {
  printf 'gpu_check.sh: %s\n' "$*" >&2
  exit 2
}

binary='' gpu_test='' ranks_test='' only='.' logs='' list=0 short=0 one_gpu=0 ranks=''
calls='' cycles='' most='' seconds=''
while (($# > 0)); do
  case $1 in
    --binary | --gpu-test | --ranks-test | --only | --ranks | --soak-calls | --cycles | --most | --seconds)
      (($# > 1)) || die "$1 needs a value"
      case $1 in
        --binary) binary=$2 ;;
        --gpu-test) gpu_test=$2 ;;
        --ranks-test) ranks_test=$2 ;;
        --only) only=$2 ;;
        --ranks)
          [[ $2 =~ ^[1-9][0-9]?(,[1-9][0-9]?)*$ ]] || die "--ranks needs numbers like 2,8, not '$2'"
          ranks=$2
          ;;
        *)
          [[ $2 =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number, not '$2'"
          case $1 in
            --soak-calls) calls=$2 ;;
            --cycles) cycles=$2 ;;
            --most) most=$2 ;;
            --seconds) seconds=$2 ;;
          esac
          ;;
      esac
      shift
      ;;
    --list) list=1 ;;
    --short) short=1 ;;
    --one-gpu) one_gpu=1 ;;
    -h | --help)
      sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    -*) die "unknown option '$1'; --help lists them" ;;
    *)
      [[ -z $logs ]] || die "one folder for logs, not '$logs' and '$1'"
      logs=$1
      ;;
  esac
  shift
done
if ((short)); then
  : "${calls:=100000}" "${cycles:=1000}" "${most:=16384}" "${seconds:=15}"
fi
: "${calls:=1000000}" "${cycles:=10000}" "${most:=1048576}"

# One step, in a process group of its own, so that no rank outlives it. What has come of it is the
# first line of LOGS/NAME.result.
run_step() {  # name seconds command…
  local name=$1 limit=$2 code=0 begin=$SECONDS took
  shift 2
  timeout -k 10 "$limit" "$@" >"$logs/$name.log" 2>&1 || code=$?
  took=$((SECONDS - begin))
  if ((code == 0)); then
    echo passed >"$logs/$name.result"
    say "passed  $name (${took}s): $(tail -n 1 "$logs/$name.log")"
  elif ((code == cannot)); then
    echo left out >"$logs/$name.result"
    say "left out  $name: $(tail -n 1 "$logs/$name.log")"
  else
    echo failed >"$logs/$name.result"
    if ((code == 124 || code == 137)); then echo "stopped after $limit s" >>"$logs/$name.log"; fi
    say "FAILED  $name (${took}s, exit code $code), the end of its log:
$(tail -n 25 "$logs/$name.log" | sed 's/^/        /')"
  fi
}

# Steps wait in queues until run_queues: those of one queue run one after the other.
declare -a queue0=() queue1=() ran=()
lanes=1 next=0
step() {  # name seconds command…
  local name=$1
  [[ $name =~ $only ]] || return 0
  if ((list)); then
    say "$name"
    return 0
  fi
  ran+=("$logs/$name.result")
  rm -f "$logs/$name.result"
  local -n queue=queue$next
  queue+=("$(printf '%q ' run_step "$@")")
  next=$(((next + 1) % lanes))
}

run_queue() {  # command…
  local one
  for one in "$@"; do eval "$one"; done
}

run_queues() {
  local lane=''
  if ((${#queue1[@]} > 0)); then
    CUDA_VISIBLE_DEVICES=2,3 run_queue "${queue1[@]}" &
    lane=$!
    CUDA_VISIBLE_DEVICES=0,1 run_queue "${queue0[@]}"
    wait "$lane"
  else
    run_queue "${queue0[@]}"
  fi
  queue0=() queue1=() next=0
}

# The kernels' accesses, by ranks_test: all ranks of a plan are one launch of one process. (Ranks that
# are forks are not looked into, and launches of several threads may be held back until others have
# ended.) Errors in kernels alone: the runtime probes what the driver can do, and is refused at times.
cannot=77  # exit code: it cannot be done on this machine
found=9    # exit code: errors in kernels
memcheck() {  # test case, a comma in its name is preceded by a backslash
  local code=0 said
  said=$(compute-sanitizer --tool memcheck --report-api-errors no --error-exitcode "$found" \
    "$ranks_test" "$1" 2>&1) || code=$?
  say "$said"
  if grep -qi 'device not supported' <<<"$said"; then
    say "compute-sanitizer does not support this machine"
    return "$cannot"
  fi
  grep -q 'ERROR SUMMARY: [0-9]' <<<"$said" || return 1
  if ! grep -q 'ERROR SUMMARY: 0 errors' <<<"$said"; then return "$found"; fi
  ((code == 0)) || return "$code"
  if ! grep -q '^All tests passed' <<<"$said"; then
    say "no test was run"
    return 1
  fi
  say "$(grep '^All tests passed' <<<"$said"), no errors in kernels"
}

# A case with errors that must be found: else the other cases say nothing.
memcheck_planted() {
  local code=0
  memcheck '[.planted]' || code=$?
  if ((code == cannot)); then return "$cannot"; fi
  if ((code != found)); then
    say "compute-sanitizer has not seen the planted errors"
    return 1
  fi
  say "the planted errors are found"
}

# Where no network device reaches a GPU nothing is tried.
adds() {  # command…
  local said
  said=$("$@") || { say "$said"; return 1; }
  say "$said"
  if grep -q ' 0 right' <<<"$said"; then return "$cannot"; fi
}
export -f memcheck memcheck_planted adds say
export ranks_test cannot found

# Processes that share a GPU take turns on it, and one that waits for another holds it up, unless a
# daemon of MPS makes them one. Ends the daemon that this began.
mps=''
begin_mps() {
  command -v nvidia-cuda-mps-control >/dev/null || return 1
  if mps_control get_server_list >/dev/null 2>&1; then return 0; fi
  mps=$(mktemp -d /tmp/gpu_check.XXXXXX)
  export CUDA_MPS_PIPE_DIRECTORY=$mps CUDA_MPS_LOG_DIRECTORY=$mps
  trap end_mps EXIT
  nvidia-cuda-mps-control -d >"$logs/mps.log" 2>&1 && return
  end_mps  # what runs without it must not look for it
  return 1
}
mps_control() { nvidia-cuda-mps-control <<<"$1"; }
end_mps() {
  [[ -n $mps ]] || return 0
  mps_control quit >/dev/null 2>&1 || true
  cat "$mps"/*.log >>"$logs/mps.log" 2>/dev/null || true
  rm -rf "$mps"
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  mps=''
}

# A test of one GPU or more, that was named or bazel can build.
build_test() {  # label
  bazel build --config=cuda "$1" >>"$logs/build.log" 2>&1 ||
    die "$1 does not build; see $logs/build.log"
  realpath "bazel-bin/$(sed 's,^//,,; s,:,/,' <<<"$1")"
}

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
# Programs see those that the caller has chosen, if it has.
if [[ -n ${CUDA_VISIBLE_DEVICES-} ]]; then
  chosen=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
  if ((chosen < gpus)); then gpus=$chosen; fi
fi
if ((!list)); then
  [[ -n $logs ]] || die "say where the logs go: gpu_check.sh LOGS"
  if [[ ! -d plans || ! -d tests/mscclpp_plans ]]; then
    die "plans/ and tests/mscclpp_plans/ are not here; run it in the repository's root, or copy them"
  fi
  ((gpus >= 1)) || die "there is no GPU"
  mkdir -p "$logs"
  nvidia-smi -L >"$logs/gpus.txt"
  say "$gpus GPUs: $(sed -n 's/^GPU 0: \(.*\) (UUID.*/\1/p' "$logs/gpus.txt")"
  if [[ -z $binary ]]; then
    say "building gpu_check and tests ($logs/build.log)"
    : >"$logs/build.log"
    binary=$(build_test //tests/gpu:gpu_check)
    : "${gpu_test:=$(build_test //runtime/devices/cuda:gpu_test)}"
    : "${ranks_test:=$(build_test //executor/cuda/testing:ranks_test)}"
  fi
  for program in "$binary" ${gpu_test:+"$gpu_test"} ${ranks_test:+"$ranks_test"}; do
    [[ -x $program ]] || die "'$program' is no program"
  done
  binary=$(realpath "$binary")
  if [[ -n $ranks_test ]]; then ranks_test=$(realpath "$ranks_test"); fi
fi

if ((one_gpu)); then
  gpus=1
  export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}
  CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*}
fi
counts=(2) missing=()
if [[ -n $ranks ]]; then
  IFS=, read -ra counts <<<"$ranks"
else
  for n in 4 8; do
    if ((list || gpus >= n)); then counts+=("$n"); else say "$n ranks are left out"; fi
  done
fi

if ((list)) || [[ -n $ranks_test ]]; then step ranks_test 300 "$ranks_test"; fi
if ((list)) || [[ -n $gpu_test ]]; then step gpu_test 300 "$gpu_test"; fi
run_queues

# Longest first, so that two queues end at about the same time.
parts() {  # ranks processes|threads
  local n=$1 way=$2 arguments=(--ranks "$1") limit=600 soak=(--seconds 600) cycle=(--seconds 500)
  if [[ $way == threads ]]; then arguments+=(--threads); fi
  if ((shared)); then arguments+=(--gpus "$gpus"); fi
  if [[ -n $seconds ]]; then
    arguments+=(--seconds "$seconds")
    limit=$((seconds + 60)) soak=() cycle=()
  fi
  # Thread blocks of all plans at once do not fit beside those of another process, which MPS does not
  # know; those of threads get a share of the GPU. Calls that fill a GPU fit into no share.
  if ((!shared)) || [[ $way == threads ]]; then
    step "soak-$n-$way" 900 "$binary" soak --calls "$calls" "${soak[@]}" "${arguments[@]}"
  fi
  step "cycles-$n-$way" 600 "$binary" cycles --count "$cycles" "${cycle[@]}" "${arguments[@]}"
  step "plans-$n-$way-eager" "$limit" "$binary" plans --most "$most" "${arguments[@]}"
  step "plans-$n-$way-graph" "$limit" "$binary" plans --graph --most "$most" "${arguments[@]}"
  step "bits-$n-$way" "$limit" "$binary" bits "${arguments[@]}"
  step "bits-$n-$way-graph" "$limit" "$binary" bits --graph "${arguments[@]}"
  step "rows-$n-$way" "$limit" "$binary" rows "${arguments[@]}"
  step "flags-$n-$way" "$limit" "$binary" flags "${arguments[@]}"
  step "graph-$n-$way" "$limit" "$binary" graph "${arguments[@]}"
  if ((!shared)); then
    step "functions-$n-$way" 600 "$binary" functions "${cycle[@]}" "${arguments[@]}"
    step "overlap-$n-$way" 180 "$binary" overlap "${arguments[@]}"
    step "overlap-$n-$way-one-queue" 180 env CUDA_DEVICE_MAX_CONNECTIONS=1 \
      "$binary" overlap "${arguments[@]}"
  fi
  step "hang-$n-$way" 120 "$binary" hang "${arguments[@]}"
}

# Every access is checked, which takes its time.
memchecks() {
  step memcheck-planted 120 bash -c memcheck_planted
  step memcheck-accumulation 300 bash -c "memcheck 'every accumulation type on the GPU'"
  if ((short)); then return; fi
  step memcheck-ops 900 bash -c "memcheck 'every op\\, type and reduction on the GPU'"
  step memcheck-collectives 900 bash -c "memcheck 'whole collectives\\, in place and not\\, on the GPU'"
}

for n in "${counts[@]}"; do
  lanes=1 shared=0
  if ((!list && n > gpus)); then
    shared=1
    if [[ ${missing[0]-} != "a GPU for each rank" ]]; then missing=('a GPU for each rank' "${missing[@]}"); fi
  fi
  if ((n == 2 && gpus >= 4)) && [[ -z ${CUDA_VISIBLE_DEVICES-} ]]; then lanes=2; fi
  if ((shared)); then
    if begin_mps; then
      parts "$n" processes
      run_queues
      end_mps
    else
      missing+=('processes (there is no MPS)')
    fi
    parts "$n" threads
  else
    for way in processes threads; do parts "$n" "$way"; done
  fi
  if ((n == counts[0])); then
    step adds 120 bash -c "adds '$binary' adds --gpus $gpus"
    if ((list)) || { [[ -n $ranks_test ]] && command -v compute-sanitizer >/dev/null; }; then
      memchecks
    else
      say "memcheck is left out: there is no compute-sanitizer, or no ranks_test"
    fi
  fi
  run_queues
done

if ((list)); then exit 0; fi
passed=0 failed=0 skipped=("${missing[@]}")
for result in "${ran[@]}"; do
  case $(cat "$result" 2>/dev/null) in
    passed) passed=$((passed + 1)) ;;
    'left out') skipped+=("$(basename "$result" .result)") ;;
    *) failed=$((failed + 1)) ;;
  esac
  while IFS= read -r what; do skipped+=("$what"); done < \
    <(sed -n 's/^skipped: //p' "${result%.result}.log" 2>/dev/null | sort -u)
done
# Without it plans with switch channels ran, but their data came from every rank one by one.
if [[ ${MSCCLC_MULTICAST:-0} != 1 ]]; then skipped+=('multicast (MSCCLC_MULTICAST is not 1)'); fi
line="$passed passed, $failed failed"
separator=', skipped: '
for what in "${skipped[@]}"; do
  line+=$separator$what
  separator='; '
done
say "$line"
((failed == 0 && passed > 0))
