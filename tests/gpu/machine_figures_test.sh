#!/usr/bin/env bash
# tests/gpu/machine_figures.sh on the host device, and on machines that programs of this test play.
#   machine_figures_test.sh MSCCLC
set -euo pipefail
fail() {
  printf 'machine_figures_test.sh: %s\n' "$*" >&2
  exit 1
}
programs=$TEST_TMPDIR/programs tools=$TEST_TMPDIR/tools out=$TEST_TMPDIR/out
mkdir -p "$programs" "$tools"
ln -s "$(realpath "$1")" "$programs/mscclc"
tests/gpu/machine_figures.sh --device threads "$programs" "$out" || fail "a step has failed"
for text in 'allreduce' '4 steps passed, 0 failed'; do
  grep -q "$text" "$out/SUMMARY" || fail "the summary does not say: $text"
done
grep -q machine_2.json <<<"$(tar -tzf "$out/files.tar.gz")" || fail "there is no machine file"
(($(find "$out" -type f | wc -l) == 2)) || fail "there are other files"

# Four GPUs, and a benchmark without stamps that is faster.
program() {
  { echo '#!/usr/bin/env bash'; cat; } >"$1"
  chmod +x "$1"
}
program "$tools/nvidia-smi" <<<'for i in 0 1 2 3; do echo "GPU $i: A test (UUID: $i)"; done'
rm "$programs/mscclc"
program "$programs/mscclc" <<<'echo "mscclc $*"; [[ $1 != tune ]] || exit 124'
for name in mscclc-bench:5.5 mscclc-bench-without-stamps:5.25; do
  # shellcheck disable=SC2016
  program "$programs/${name%:*}" <<<'while [[ $1 != --json ]]; do shift; done
echo "{\"size\":1024,\"count\":256,\"who\":\"p\",\"role\":\"plan\",\"out_of_place\":{\"time\":'"${name#*:}"',\"p50\":2.0}}" >"$2"'
done
PATH=$tools:$PATH tests/gpu/machine_figures.sh "$programs" "$out" >/dev/null || fail "$(cat "$out/SUMMARY")"
for text in 'p 1024 bytes: 5.5 us, ordinary' 'p 1024 bytes: 5.25 us, without_stamps' 'mscclc calibrate .*--ranks 4' \
  '^4 GPUs: A test$' '6 steps passed, 0 failed'; do
  grep -q "$text" "$out/SUMMARY" || fail "the summary does not say: $text: $(cat "$out/SUMMARY")"
done
echo fine
