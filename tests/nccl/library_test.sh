#!/bin/bash
# libnccl.so.2 as programs load it: what it exports, and that it is what they get, by every way.
# Arguments: the library, the list of its exports, a fake, consumer, by_name, the audit library, a
# shim, and the functions that PyTorch calls.
set -u
ours=$(realpath "$1") map=$2 fake=$(realpath "$3") consumer=$4 by_name=$5 audit=$(realpath "$6")
shim=$(realpath "$7") torch=$8
export MSCCLC_DEVICE=host MSCCLC_TIMEOUT=500 MSCCLC_FLIGHT_FILE=none
unset MSCCLC_NCCL
failed=0
expect() {  # TEXT COMMAND...
  local text=$1
  shift
  "$@" && return
  echo "FAILED: $text"
  failed=1
}

# [case-2] Its name, and what it exports: that and nothing else.
name_is_ours() { grep -q 'SONAME.*\[libnccl.so.2\]' <<<"$(readelf -d "$ours")"; }
expect "the name" name_is_ours
exports_are_ours() {
  diff <(nm -D --defined-only "$ours" | awk '$2 ~ /[A-Z]/ {print $3}' | sort) \
    <(sed -n '/global:/,/local:/s/^ *\([a-z_A-Z0-9]*\);$/\1/p' "$map" | sort)
}
expect "the exports" exports_are_ours
# So do all backends of PyTorch find what they call.
torch_finds_all() {
  ! grep -v '^#' "$torch" | grep -vxFf <(nm -D --defined-only "$ours" | awk '{print $3}')
}
expect "what PyTorch calls" torch_finds_all
# [case-1] The one name is weak, the other is not, as NCCL has them.
weak_and_strong() {
  [ "$(nm -D "$ours" | grep -c ' W nccl')" = "$(nm -D "$ours" | grep -c ' T pnccl')" ]
}
expect "weak and strong names" weak_and_strong
# It needs nothing to be loaded but the C library: no CUDA, no NCCL, no libstdc++ of some age.
needs_little() {
  ! readelf -d "$ours" | grep NEEDED | grep -Ev '\[(libc|libm|libdl|libpthread|ld-linux[^.]*)\.so'
}
expect "what it needs" needs_little

# [case-4] [case-13] A program that was linked with another NCCL, with ours loaded before it; ranks
# are processes, and plans do its calls.
expect "LD_PRELOAD" env LD_PRELOAD="$ours" "$consumer" 3
# [case-9] However its processes end.
for how in leave abort fork; do
  expect "$how" env LD_PRELOAD="$ours" timeout 600 "$consumer" 2 $how
done

# [case-98] A shim loaded before it sees the program's calls, and none that we or the fallback make.
shim_sees() {
  MSCCLC_NCCL="$fake" LD_PRELOAD="$shim $ours" "$consumer" 2 2>&1 | sort >"$TEST_TMPDIR/seen"
  diff "$TEST_TMPDIR/seen" - <<'END'
shim: AllReduce 1 CommDestroy 1 CommInitRank 1
shim: AllReduce 1 CommDestroy 1 CommInitRank 1 GetUniqueId 1
END
}
expect "a shim" shim_sees
# [case-5] [case-3] Loaded early, and its version is the fallback's.
expect "by name" env MSCCLC_NCCL="$fake" "$by_name" "$ours" 22809
# By the audit library, which lies beside it: a program that loads NCCL, by name or by a path, gets
# ours; and the path that then stands for ours still leads to the real one where we fall back.
expect "the audit library, linked" env LD_AUDIT="$audit" "$consumer" 2
for asked in "$fake" "${fake/22809/21805}"; do
  expect "the audit library, by path" env LD_AUDIT="$audit" MSCCLC_NCCL="$fake" \
    timeout 600 "$by_name" "$asked" 22809
done
needs_c_only() { ! readelf -d "$audit" | grep NEEDED | grep -Ev '\[libc\.so'; }
expect "what the audit library needs" needs_c_only
# [case-7] Without a fallback there is a version, too.
expect "alone" env MSCCLC_NCCL=/nowhere/libnccl.so.2 "$by_name" "$ours" 22809
# [case-6] The library itself, or a copy of it, is no fallback.
cp "$ours" "$TEST_TMPDIR/libnccl_copy.so"
for file in "$ours" "$TEST_TMPDIR/libnccl_copy.so"; do
  expect "itself as the fallback" env MSCCLC_NCCL="$file" "$by_name" "$ours" 22809
done
# Its debug lines have NCCL's shape.
lines() { NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL LD_PRELOAD="$ours" "$consumer" 2; }
has_line() { grep -Eq "^[^:]+:[0-9]+:[0-9]+ \[0\] NCCL INFO $1" <<<"$(lines)"; }
expect "a line of the communicator" has_line "communicator '' of 2 ranks, rank 1 on host: plans"
expect "a line of the call" has_line "AllReduce: count 1 datatype 2 op 0 .* plan '"
# Whole numbers are exact, however a plan adds up.
expect "its contract" has_line "AllReduce: count 1 datatype 2 op 0 .* its sums keep 'exact'"
expect "its contract, not proved" env MSCCLC_PROOF=skip bash -c "$(declare -f lines has_line)
  ours='$ours' consumer='$consumer'; has_line \"AllReduce: count 1 datatype 2 .* its sums keep 'exact'\""
# A profiler's library that cannot be loaded; NVTX itself says nothing.
names_no_profiler() {
  NVTX_INJECTION64_PATH=/nowhere/p.so lines |
    grep -q "NCCL INFO NVTX_INJECTION64_PATH: no profiler is loaded: /nowhere/p.so"
}
expect "a profiler that cannot be loaded" names_no_profiler
# Each process says which variables nothing reads.
reports_unknown() {
  [ "$(MSCCLC_TIMOUT=5 LD_PRELOAD="$ours" "$consumer" 2 2>&1 | grep -c "nothing reads .*'MSCCLC_TIMOUT'")" = 2 ]
}
expect "a variable that nothing reads" reports_unknown
exit $failed
