#!/usr/bin/env bash
# What measures a machine, on the machine itself: calibrates it twice, tunes a few sizes beside NCCL, and GEMMs,
# records a call's timeline and a job's calls, and examines it. Takes 5 minutes on two GPUs.
#
#   measure_check.sh [OPTION]… MSCCLC OUT     OUT: a folder for a dozen small files; SUMMARY is the text to read
#
#   --device threads   the host device, in place of the GPUs (with a processor's small sizes)
#   --ranks N          how many (2)
#   --seconds N        a step that takes longer is ended (150)
#
# MSCCLC needs its GPU part (bazel build --config=cuda_release //tools:mscclc); run it in the repository's root, for
# plans/. MSCCLC_NCCL names NVIDIA's libnccl.so.2, if the loader does not find it.
set -uo pipefail

die() {
  printf 'measure_check.sh: %s\n' "$*" >&2
  exit 2
}
device=cuda ranks=2 seconds=150
while (($# > 2)); do
  case $1 in
    --device) device=$2 ;;
    --ranks) ranks=$2 ;;
    --seconds) seconds=$2 ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
(($# == 2)) || die "MSCCLC and OUT are needed"
[[ $device == cuda || $device == threads ]] || die "--device is cuda or threads"
mscclc=$(realpath -e "$1") || die "there is no '$1'"
mkdir -p "$2" || die "cannot make '$2'"
out=$(realpath "$2")
[[ -f plans/library.json ]] || die "run it in the repository's root"
plans=$(realpath plans)
export MSCCLC_LIBRARY=$plans
# Tuned plans are many files, and not kept.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
summary=$out/SUMMARY
: >"$summary"

if [[ $device == cuda ]]; then
  team=(--device cuda --ranks "$ranks") run=(--device cuda)
  most=64M sizes=1K,4K,16K,64K,256K,1M,4M,16M small=1K,4K,16K,64K repeats=5 rows=1024,4096 layer=3584:8192 dtype=bf16
else
  team=(--device threads --ranks "$ranks") run=(--device processes)
  most=4K sizes=1K,16K small=1K repeats=1 rows=32,64 layer=24:48 dtype=f32
fi

deadline=0
# shellcheck source=tests/gpu/steps.bash
source tests/gpu/steps.bash

# Figures of two machine files side by side, of those that differ by a tenth or more.
figures() {
  sed -n -e 's/^  "\([a-z_]*\)": {$/\1/p' -e 's/^    "\([a-z_]*\)": \([0-9]*\),\{0,1\}$/ \1 \2/p' "$1" |
    awk '/^[^ ]/ { group = $1 } /^ / { print group "." $1, $2 }' | sort
}
compare_machines() {
  join <(figures "$1") <(figures "$2") |
    awk '{ least = $2 < $3 ? $2 : $3; apart = least > 0 ? 100 * ($2 > $3 ? $2 - $3 : $3 - $2) / least : ($2 != $3) * 100
           all++; if (apart >= 10) { far++; printf "%-24s %12s %12s  %d %%\n", $1, $2, $3, apart } }
         END { printf "%d of %d figures differ by 10 %% or more\n", far, all; exit all == 0 }'
}

cd "$work" || die "no folder for what is not kept"

step doctor '0 1' "$mscclc" doctor --json
mv "$out/doctor.txt" "$out/doctor.json"

# Two files, the second fitted from the first: what one says, the other has to.
step calibrate '0 3' "$mscclc" calibrate "${team[@]}" --repeats "$repeats" --max-bytes "$most" -o "$out/machine.json"
step calibrate_again '0 3' "$mscclc" calibrate "${team[@]}" --repeats "$repeats" --max-bytes "$most" \
  --base "$out/machine.json" -o "$out/machine_again.json"
step machines '0' compare_machines "$out/machine.json" "$out/machine_again.json"

tune=("$mscclc" tune "${team[@]}" --repeats "$repeats" --machine "$out/machine.json")
step tune '0' "${tune[@]}" --collective allreduce,allgather,reducescatter,alltoall --bytes "$sizes" -o tuned
lines=$(wc -l <"tuned/tune-R$ranks.jsonl")
# It goes on from its file, and measures nothing again.
step tune_resumed '0' "${tune[@]}" --collective allreduce,allgather,reducescatter,alltoall --bytes "$sizes" -o tuned
step tune_measured_nothing '0' test "$lines" = "$(wc -l <"tuned/tune-R$ranks.jsonl")"
step tune_between '0' "${tune[@]}" --collective allreduce --bytes "$small" --between -o between
step tuned_folder_serves '0' "$mscclc" select --library tuned --collective allreduce --ranks "$ranks" --bytes 16K
step tune_gemms '0' "$mscclc" tune "${team[@]}" --repeats "$repeats" -o gemms \
  --collective allgather_gemm,gemm_reducescatter --m "$rows" --layer "$layer" --dtype "$dtype"
cp tuned/library.json "$out/tuned_library.json"
[[ ! -f gemms/overlap.json ]] || cp gemms/overlap.json "$out/overlap.json"
gzip -c "tuned/tune-R$ranks.jsonl" >"$out/tune.jsonl.gz"
gzip -c "between/tune-R$ranks.jsonl" >"$out/tune_between.jsonl.gz"

# The same calls with stamps and without; then the files that they are for.
plan=(allreduce_2shot_packets.mscl -D "R=$ranks" --bytes 64K --iters 200)
step run_without_stamps '0' "$mscclc" run "$plans/${plan[0]}" "${plan[@]:1}" "${run[@]}"
step run_with_stamps '0' "$mscclc" run "$plans/${plan[0]}" "${plan[@]:1}" "${run[@]}" \
  --html "$out/measured.html" --trace "$out/measured.json" --machine "$out/machine.json"
step timeline_has_steps '0' grep -c '"ph":"X"' "$out/measured.json"

export MSCCLC_TRACE=$work/calls-%r
step traced_run '0' "$mscclc" run "$plans/${plan[0]}" "${plan[@]:1}" "${run[@]}"
unset MSCCLC_TRACE
step report '0' "$mscclc" report "$work"/calls-*.json --trace "$out/calls.json"

end_steps
