#!/usr/bin/env bash
# Times many forms of the library's packet programs up to 1 MiB, to pick the rows of
# plans/library.json by: which format, how many blocks and threads. The rows go by what a call costs
# between other kernels, so each table of Markdown that mscclc-bench prints names the program that
# is fastest there.
#
#   tools/bench/sweep.sh BENCH GPUS LOGS [COLLECTIVE]…
#
# BENCH is a mscclc-bench, GPUS how many ranks there are, LOGS a folder for its output and results
# (COLLECTIVE.txt, COLLECTIVE.jsonl). Run in the repository's root, or where a copy of plans/ is.
# Without collectives: allreduce allgather reducescatter alltoall broadcast. A collective takes one
# to two minutes. SWEEP_OPTIONS has more options for mscclc-bench ('--eager', '-d bf16').
set -euo pipefail

if (($# < 3)); then
  sed -n '2,13s/^# \{0,1\}//p' "$0"
  exit 2
fi
bench=$1 gpus=$2 logs=$3
shift 3
collectives=("$@")
((${#collectives[@]} > 0)) || collectives=(allreduce allgather reducescatter alltoall broadcast)
mkdir -p "$logs"

# Prints PROGRAM:F=…,B=…,T=… for all formats, blocks and threads.
forms() {
  local program=$1 formats=$2 blocks=$3 threads=$4 f b t
  for f in $formats; do
    for b in $blocks; do
      for t in $threads; do printf '%s\n' "plans/$program.mscl:F=$f,B=$b,T=$t"; done
    done
  done
}

# Prints what is tried for a collective from one size to another.
candidates() {
  local collective=$1 window=$2 program
  case $collective in
    allreduce) program=allreduce_1shot_ordered ;;
    *) program=${collective}_packets ;;
  esac
  case $window in
    small) forms "$program" 'LL8 LL16 LL128' '1 2 4 8 16 32' '64 128 256' ;;
    middle)
      forms "$program" 'LL16 LL128 sentinel' '32 48 64 96' '128 256'
      [[ $collective != allreduce ]] || forms allreduce_2shot_packets 'LL128 sentinel' '32 48 64' '128 256'
      [[ $collective != broadcast ]] || forms broadcast_scatter_packets 'LL128' '33 65' '128 256'
      ;;
    large)
      [[ $collective != allreduce ]] || program=allreduce_2shot_packets
      forms "$program" 'LL128 sentinel' '64 96 128 132' '128 192 256 512'
      [[ $collective != broadcast ]] || forms broadcast_scatter_packets 'LL128' '65 97 129' '256 512'
      ;;
  esac
}

# One window of sizes; what it prints and its results are added to the collective's.
sweep() {
  local collective=$1 window=$2 least=$3 most=$4 part=$logs/part.jsonl
  local -a plans
  mapfile -t plans < <(candidates "$collective" "$window")
  # shellcheck disable=SC2086  # several options
  "$bench" -g "$gpus" -b "$least" -e "$most" -f 2 --graph --every-size --best --between 2 \
    --placement out-of-place --repeats 5 -c 1 --collective "$collective" --json "$part" \
    ${SWEEP_OPTIONS:-} "${plans[@]}" >>"$logs/$collective.txt"
  cat "$part" >>"$logs/$collective.jsonl"
  rm "$part"
}

for collective in "${collectives[@]}"; do
  : >"$logs/$collective.txt" >"$logs/$collective.jsonl"
  sweep "$collective" small 1K 16K
  sweep "$collective" middle 32K 256K
  sweep "$collective" large 512K 1M
  printf '%s\n' "$collective:"
  grep -h '^| [0-9]' "$logs/$collective.txt"
done
