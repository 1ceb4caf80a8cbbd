#!/usr/bin/env bash
# What a new packet format costs: adds one to a copy of the tree, by the recipe of CONTRIBUTING.md,
# builds it, runs the tests that go over all formats and a program with it, and counts the files that
# it took. Fails if there are more than 8.
#
#   tests/toy_format.sh [FOLDER]     FOLDER: for the copy, which is kept then; else one that is removed
#
# Run by hand, or nightly: nearly everything is compiled again; with nvcc, a kernel too. Edits that
# are not committed count, files that git does not know do not. The format is LL64: lines of 64 bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/toy_copy.sh
source tests/toy_copy.sh

most_places=8
enter_copy "before the toy format" "${1:-}"

# 1. The row of the table.
sed --in-place '/^FORMAT(LL128,/a FORMAT(LL64, 56, 64, line, 64, 64, "", "an 8-byte flag at the end of every 64-byte line")' ir/ops/formats.def
# 2. Its name in the schema of plans.
sed --in-place 's/"LL128", "sentinel"/"LL128", "LL64", "sentinel"/' plans/schema.json
# 3. The reference page.
bazel build //tools:mscclc
bazel-bin/tools/mscclc ops --format=markdown >ops.md
mv ops.md docs/ops.md

changed=$(git diff --name-only)
[[ $changed == $'docs/ops.md\nir/ops/formats.def\nplans/schema.json' ]] || die "edits went elsewhere: $changed"

bazel test //ir/ops:ops_test //plans/format:schema_test //executor/interpreter:packets_test \
  //executor:block_programs_test //executor/simulator:op_test
for bytes in 0 1 1000 100000; do
  bazel-bin/tools/mscclc run plans/allreduce_2shot_packets.mscl -D R=3 -D F=LL64 --bytes "$bytes" \
    --schedule-seed 1
done
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
if [[ -x $nvcc ]]; then
  "$nvcc" -std=c++20 --expt-relaxed-constexpr -arch=sm_90 -cubin -I. -o kernel.cubin \
    executor/cuda/kernel_moves.cu
  grep --quiet --text 'PacketFormatE5' kernel.cubin || die "no kernel for LL64"
else
  printf 'no nvcc: the kernels were not compiled\n'
fi

places=$(git diff --name-only | wc -l)
printf 'a packet format costs %d places, which may be %d:\n' "$places" "$most_places"
git diff --name-only
((places <= most_places))
