#!/usr/bin/env bash
# A program that brings its plans ready made runs without compiler, InfiniBand and CUDA: it adds up, and
# neither its symbols, nor what it loads, nor what it depends on has any of them.
#   ready_plans_test.sh PROGRAM TARGETS MSCCLC
# TARGETS: what PROGRAM depends on. MSCCLC compiles the plan, and has all of them: it shows that the search
# finds what it looks for.
set -euo pipefail
program=$1 targets=$2 mscclc=$3
plan=$TEST_TMPDIR/allreduce.json
unset "${!MSCCLC_@}"

fail() {
  echo "$1" >&2
  exit 1
}

# Functions of ours, and of the libraries of others.
symbols='mscclc::(ast|verbs|cuda)::|\b(ibv|mlx5dv)_|\bcu(Init|Launch|Mem|Ctx|da)[A-Z]'
has_symbols() { nm -C "$1" | grep -E "$symbols"; }
wrong_targets='^//(compiler|executor/cuda|runtime/choice/library|runtime/devices/cuda|runtime/doors|runtime/network/verbs)[/:]|^//third_party:ibverbs|local_cuda'

"$mscclc" compile plans/allreduce_1shot.mscl -D R=2 --target host -o "$plan"
[[ $("$program" "$plan") == "added up" ]] || fail "the program does not add up"

for kind in mscclc::ast:: mscclc::verbs:: mscclc::cuda::; do
  has_symbols "$mscclc" >"$TEST_TMPDIR/found" || true
  grep -qF "$kind" "$TEST_TMPDIR/found" || fail "$kind: the search finds nothing in a program that has it"
done

if has_symbols "$program" | head -n 20; then fail "the program has the symbols above"; fi
if ldd "$program" | grep -E 'libibverbs|libmlx5|libcuda|libnccl'; then fail "the program loads the libraries above"; fi
grep -q '^//runtime/core/communicator:communicator$' "$targets" || fail "$targets: not what it depends on"
if grep -E "$wrong_targets" "$targets"; then fail "the program depends on the targets above"; fi
