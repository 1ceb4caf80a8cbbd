#!/usr/bin/env bash
# What a new packet format costs: adds one to a copy of the tree, by the recipe of CONTRIBUTING.md,
# builds it, runs the tests that go over all formats and a program with it, and counts the files that
# it took. Fails if there are more than 8.
#
#   tests/toy_format.sh [--quick] [FOLDER]     FOLDER: for the copy, which is kept then; else one that is
#                                              removed
#
# By hand, or nightly: nearly everything is compiled again; with nvcc, a kernel too. With --quick, as ./test
# has it, what knows all formats is only compiled, and the tables are compared. Edits that are not committed
# count, files that git does not know do not. The format is LL64: lines of 64 bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=tests/toy_copy.sh
source tests/toy_copy.sh
enter_copy "$@"

# 1. The row of the table.
sed --in-place '/^FORMAT(LL128,/a FORMAT(LL64, 56, 64, line, 64, 64, "", "an 8-byte flag at the end of every 64-byte line")' ir/ops/formats.def
# 2. Its name in the schema of plans.
change plans/schema.json '"LL128", "sentinel"' '"LL128", "LL64", "sentinel"'
# 3. The reference page.
if ((quick)); then
  write_ops_page
  grep --quiet '`LL64`' docs/ops.md || die "docs/ops.md does not name LL64"
  # shellcheck disable=SC2046
  compile $(sources_with 'formats\.def|case PacketFormat::|packets\.h"' compiler executor ir passes plans tools) \
    executor/cuda/kernel_moves.cu
  count_places "A packet format" 8
  exit
fi
bazel build //tools:mscclc
bazel-bin/tools/mscclc ops --format=markdown >ops.md
mv ops.md docs/ops.md

bazel test //ir/ops:ops_test //plans/format:schema_test //executor/interpreter:packets_test \
  //executor:block_programs_test //executor/simulator:op_test
for bytes in 0 1 1000 100000; do
  bazel-bin/tools/mscclc run plans/allreduce_2shot_packets.mscl -D R=3 -D F=LL64 --bytes "$bytes" \
    --schedule-seed 1
done
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
if [[ -x $nvcc ]]; then
  cubin=$(mktemp)
  "$nvcc" -std=c++20 --expt-relaxed-constexpr -arch=sm_90 -cubin -I. -o "$cubin" executor/cuda/kernel_moves.cu
  grep --quiet --text 'PacketFormatE5' "$cubin" || die "no kernel for LL64"
  rm "$cubin"
else
  say 'no nvcc: the kernels were not compiled'
fi
count_places "A packet format" 8
