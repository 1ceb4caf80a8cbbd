#!/usr/bin/env bash
# The figures of a machine with 2 or 4 GPUs, in five minutes: its machine file for 2 ranks and for 4, each measured
# twice; what stamps cost, off and on; rows of 'mscclc tune' for 2 ranks.
#
#   machine_figures.sh [OPTION]… PROGRAMS OUT     OUT gets SUMMARY, the text to read, and files.tar.gz
#
#   --device threads   the host device, in place of the GPUs (with small sizes)
#   --seconds N        of it all (290): what has not begun by then, but the first step, is left out and named
#
# PROGRAMS is a folder with mscclc and mscclc-bench (built with --config=cuda), and, for the cost of stamps that are
# off, mscclc-bench-without-stamps: mscclc-bench built with --define=stamps=off, too. Run it in the repository's root.
# Multicast stays off.
set -uo pipefail

die() {
  printf 'machine_figures.sh: %s\n' "$*" >&2
  exit 2
}
device=cuda total=290
while (($# > 2)); do
  case $1 in
    --device) device=$2 ;;
    --seconds) total=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
(($# == 2)) || die "PROGRAMS and OUT are needed"
[[ $device == cuda || $device == threads ]] || die "--device is cuda or threads"
[[ $total =~ ^[1-9][0-9]*$ ]] || die "--seconds needs a number"
programs=$(realpath -e "$1") || die "there is no '$1'"
mscclc=$programs/mscclc bench=$programs/mscclc-bench
[[ -x $mscclc ]] || die "'$1' has no mscclc"
[[ -f plans/library.json ]] || die "run it in the repository's root"
mkdir -p "$2" || die "cannot make '$2'"
kept=$(realpath "$2")
summary=$kept/SUMMARY deadline=$total
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/files
mkdir "$out"
: >"$summary"
MSCCLC_LIBRARY=$(realpath plans)
export MSCCLC_LIBRARY NCCL_NVLS_ENABLE=0
# shellcheck source=tests/gpu/steps.bash
source tests/gpu/steps.bash

if [[ $device == cuda ]]; then
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU ' || true)
  ((gpus >= 2)) || die "there are no two GPUs"
  most=64M sizes=1K,64K,1M run=(--device cuda)
else
  gpus=2 most=4K sizes=1K run=(--device processes)
fi

# Calls back to back in a graph, in turn by the programs that are compared: times in us, best of three runs.
stamps() {
  local plans=(plans/allreduce_2shot_packets.mscl:R=2,F=LL128,B=64,T=256 plans/allreduce_push.mscl:R=2,B=128,T=1024)
  local turn who with ended=0
  for turn in 1 2 3; do
    for who in ordinary without_stamps stamps_on; do
      with=("$bench") ; [[ $who != without_stamps ]] || with=("$bench-without-stamps")
      [[ -x ${with[0]} ]] || continue
      [[ $who != stamps_on ]] || with+=(--clocks)
      timeout -k 5 20 "${with[@]}" -g 2 --collective allreduce --placement out-of-place --every-size --graph \
        --repeats 5 -b 1K -e 16M -f 16 --json "$work/stamps-$who-$turn" "${plans[@]}" >"$work/said" || ended=$?
      tail -n 1 "$work/said"
    done
  done
  for who in ordinary without_stamps stamps_on; do
    cat "$work/stamps-$who"-* 2>/dev/null | gzip >"$out/stamps_$who.jsonl.gz"
    cat "$work/stamps-$who"-* 2>/dev/null |
      sed -n 's/.*"size":\([0-9]*\),.*"who":"\([^"]*\)".*"out_of_place":{"time":\([0-9.]*\).*/\2 \1 \3/p' |
      awk -v who="$who" '{ key = $1 " " $2 " bytes"; if (!(key in t) || $3 < t[key]) t[key] = $3 }
        END { for (key in t) printf "%s: %s us, %s\n", key, t[key], who }'
  done | sort -k1,1 -k2,2n
  return "$ended"
}
# The same on any device, from launch to end of each call: without stamps, and with.
calls() {
  step run_without_stamps '0' "$mscclc" run plans/allreduce_2shot_packets.mscl -D R=2 --bytes 64K --iters 200 "${run[@]}"
  step run_with_stamps '0' "$mscclc" run plans/allreduce_2shot_packets.mscl -D R=2 --bytes 64K --iters 200 "${run[@]}" \
    --html "$out/measured.html"
}
calibrate() {  # ranks: exit code 3 says that the second measurement differs
  step "calibrate_$1" '0 3' "$mscclc" calibrate --device "$device" --ranks "$1" --repeats 3 --max-bytes "$most" \
    -o "$out/machine_$1.json"
}

printf '%s GPUs: %s\n' "$gpus" "$(nvidia-smi -L 2>/dev/null | sed -n 's/^GPU 0: \(.*\) (UUID.*/\1/p')" >>"$summary"
seconds=60
if [[ $device == cuda ]]; then step stamps '0' stamps; fi
calls
seconds=70
calibrate 2
if ((gpus >= 4)); then calibrate 4; fi
# A run that the time limit ends has kept what it measured.
seconds=90
step tune '0 124' "$mscclc" tune --device "$device" --ranks 2 --collective allreduce,allgather --bytes "$sizes" \
  --repeats 3 --trials 12 -o "$work/tuned"
gzip -c "$work/tuned/tune-R2.jsonl" >"$out/tune.jsonl.gz" 2>/dev/null
tar -C "$out" -czf "$kept/files.tar.gz" .
end_steps
