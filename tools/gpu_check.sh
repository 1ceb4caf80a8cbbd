#!/usr/bin/env bash
# Tries the runtime on the GPUs of this machine; the last line says how many steps passed and failed.
#
#   tools/gpu_check.sh [OPTION]… LOGS    logs of all steps go into the folder LOGS
#
#   --binary FILE   a gpu_check that was built elsewhere; without it bazel and nvcc build one
#   --only REGEX    steps whose name matches; --list shows the names
#   --list          shows the steps and runs none
#   --short         soak and cycles with a tenth of the calls
#
# Run in the repository's root, or where copies of plans/ and tests/peer_plans/ are. A binary for
# machines without bazel needs nothing else there but the driver:
#
#   bazel build --config=cuda --linkopt=-l:libstdc++.a --linkopt=-static-libgcc \
#     --linkopt=-Wl,--as-needed //tests/gpu:gpu_check
set -euo pipefail

say() { printf '%s\n' "$*"; }
die() {
  printf 'gpu_check.sh: %s\n' "$*" >&2
  exit 2
}

binary='' only='.' logs='' list=0 short=0
while (($# > 0)); do
  case $1 in
    --binary | --only)
      (($# > 1)) || die "$1 needs a value"
      if [[ $1 == --binary ]]; then binary=$2; else only=$2; fi
      shift
      ;;
    --list) list=1 ;;
    --short) short=1 ;;
    -h | --help)
      sed -n '2,16s/^# \{0,1\}//p' "$0"
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

passed=0
failed=0

# A step in a process group of its own, so that no rank outlives it.
step() {  # name seconds command…
  local name=$1 seconds=$2 code=0
  shift 2
  [[ $name =~ $only ]] || return 0
  if ((list)); then
    say "$name"
    return 0
  fi
  SECONDS=0
  timeout -k 10 "$seconds" "$@" >"$logs/$name.log" 2>&1 || code=$?
  if ((code == 0)); then
    passed=$((passed + 1))
    say "passed  $name (${SECONDS}s): $(tail -n 1 "$logs/$name.log")"
  else
    failed=$((failed + 1))
    if ((code == 124 || code == 137)); then echo "stopped after $seconds s" >>"$logs/$name.log"; fi
    say "FAILED  $name (${SECONDS}s, exit code $code), the end of its log:"
    tail -n 25 "$logs/$name.log" | sed 's/^/        /'
  fi
}

# Errors in kernels alone: the runtime probes what the driver can do, and is refused at times. Ranks
# are processes, as the tool may hold launches of one process back until others have ended.
memcheck() {  # log gpu_check's arguments…
  local report=$1
  shift
  compute-sanitizer --tool memcheck --target-processes all --report-api-errors no \
    --error-exitcode 9 --log-file "$report.%p" "$binary" "$@" || return
  cat "$report".*
  if grep -h 'ERROR SUMMARY' "$report".* | grep -qv ' 0 errors'; then return 9; fi
  say "no errors in $(grep -lF 'ERROR SUMMARY: 0 errors' "$report".* | wc -l) processes"
}
export -f memcheck say
export binary

gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
if ((!list)); then
  [[ -n $logs ]] || die "say where the logs go: gpu_check.sh LOGS"
  if [[ ! -d plans || ! -d tests/peer_plans ]]; then
    die "plans/ and tests/peer_plans/ are not here; run it in the repository's root, or copy them"
  fi
  ((gpus >= 2)) || die "there are $gpus GPUs; two are needed"
  mkdir -p "$logs"
  nvidia-smi -L >"$logs/gpus.txt"
  say "$gpus GPUs: $(sed -n 's/^GPU 0: \(.*\) (UUID.*/\1/p' "$logs/gpus.txt")"
  if [[ -z $binary ]]; then
    say "building gpu_check ($logs/build.log)"
    bazel build --config=cuda //tests/gpu:gpu_check >"$logs/build.log" 2>&1 ||
      die "it does not build; see $logs/build.log"
    binary=bazel-bin/tests/gpu/gpu_check
  fi
  [[ -x $binary ]] || die "'$binary' is no program"
  binary=$(realpath "$binary")
fi

counts=(2 4)
if ((!list && gpus < 4)); then
  counts=(2)
  say "4 ranks are left out"
fi
calls=1000000 cycles=10000
if ((short)); then calls=100000 cycles=1000; fi

for n in "${counts[@]}"; do
  for way in processes threads; do
    arguments=(--ranks "$n")
    if [[ $way == threads ]]; then arguments+=(--threads); fi
    step "plans-$n-$way-eager" 600 "$binary" plans "${arguments[@]}"
    step "plans-$n-$way-graph" 600 "$binary" plans --graph "${arguments[@]}"
    step "bits-$n-$way" 600 "$binary" bits "${arguments[@]}"
    step "graph-$n-$way" 600 "$binary" graph "${arguments[@]}"
    step "hang-$n-$way" 300 "$binary" hang "${arguments[@]}"
    step "soak-$n-$way" 900 "$binary" soak --calls "$calls" --seconds 600 "${arguments[@]}"
    step "cycles-$n-$way" 600 "$binary" cycles --count "$cycles" --seconds 500 "${arguments[@]}"
  done
done

# A plan of each family, on small messages: every access is checked, which takes its time.
if ((list)) || command -v compute-sanitizer >/dev/null; then
  for plan in allreduce_1shot allreduce_2shot allreduce_allpairs allreduce_ring alltoall_direct \
    allgather_packets sendrecv_port; do
    step "memcheck-$plan" 600 bash -c 'memcheck "$@"' _ "${logs:-.}/memcheck-$plan.report" \
      plans --ranks 2 --most 4096 --patience 300 --filter "$plan R=2"
  done
else
  say "memcheck is left out: there is no compute-sanitizer"
fi

if ((list)); then exit 0; fi
say "$passed passed, $failed failed"
((failed == 0 && passed > 0))
