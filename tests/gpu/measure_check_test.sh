#!/usr/bin/env bash
# tests/gpu/measure_check.sh on the host device: all its steps pass, and it notices one that does not.
#   measure_check_test.sh MSCCLC
set -euo pipefail
export MSCCLC_NCCL=$PWD/tests/fakes/nccl/22809/libnccl.so.2
out=$TEST_TMPDIR/out
tests/gpu/measure_check.sh --device threads "$1" "$out" || {
  echo "a step has failed"
  exit 1
}
for text in 'in turn with NCCL 2.28.9' 'going on after' 'figures differ by 10 %' 'clocks: ' 'gemm_reducescatter over 2 ranks' '15 steps passed, 0 failed'; do
  grep -q "$text" "$out/SUMMARY" || {
    echo "the summary does not say: $text"
    exit 1
  }
done
for file in doctor.json machine.json machine_again.json overlap.json tuned_library.json tune.jsonl.gz measured.html measured.json calls.json; do
  [[ -s $out/$file ]] || {
    echo "$file is missing"
    exit 1
  }
done
((($(find "$out" -type f | wc -l)) <= 30)) || {
  echo "too many files"
  exit 1
}
# A command that always fails: no step passes.
if tests/gpu/measure_check.sh --device threads "$(type -P false)" "$TEST_TMPDIR/none" >/dev/null; then
  echo "nothing is noticed"
  exit 1
fi
grep -q '^## calibrate: exit code 1 ' "$TEST_TMPDIR/none/SUMMARY"
echo fine
