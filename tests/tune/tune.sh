#!/usr/bin/env bash
# mscclc tune on the host device: a folder of plans that jobs take, and a run that goes on.
#   tune.sh MSCCLC MSCCLC_LINKED_AT_RUN_TIME NCCL
set -euo pipefail
mscclc=$(realpath "$1")
dynamic=$(realpath "$2") nccl=$(realpath "$3")
MSCCLC_LIBRARY=$(realpath plans)
export MSCCLC_LIBRARY
# shellcheck source=tests/tune/checks.bash
source "$(dirname "$0")/checks.bash"
# Few trials of what is small, and no more than one plan but the library's.
tune=("$mscclc" tune --device threads --repeats 1 --trials 3 --bytes '1K,16K')

expect_code 0 "${tune[@]}" --collective allreduce -o tuned
grep -q '^allreduce over 2 ranks, f32$' out || fail "no table"
grep -q '^ *16 KiB .*allreduce' out || fail "no row of a size"
grep -q 'calls one by one; NCCL was not timed: there is none on the host device' out || fail "nothing about NCCL"
grep -Eq "^of [0-9]+ pairs of plans .* '4xH200' predicts the faster of [0-9]+$" out || fail "nothing about the model"
plan=$("$mscclc" select --library tuned --collective allreduce --ranks 2 --bytes 16K)
[[ -s $plan ]] || fail "no plan for 16 KiB: '$plan'"
"$mscclc" select --library tuned --collective allreduce --ranks 2 --bytes 1G >/dev/null ||
  fail "no plan for what was not measured"
# Whether so many plans may be called in any order is more than the prover decides.
"$mscclc" registry check tuned >out 2>&1 || grep -q 'not decided' out || fail "the folder is no registry"
grep -q '^gaps: 0,' out || fail "the folder has gaps"
"$mscclc" run "$plan" --bytes 16K >/dev/null || fail "a plan is wrong"

# The same again measures nothing.
cp tuned/tune-R2.jsonl before
expect_code 0 "${tune[@]}" --collective allreduce -o tuned
cmp before tuned/tune-R2.jsonl || fail "what was measured is measured again"
grep -q 'going on after' err || fail "it does not say that it goes on"

# A run that was killed while it wrote a line goes on from the line before.
mkdir cut
head -c -5 before >cut/tune-R2.jsonl
expect_code 0 "${tune[@]}" --collective allreduce -o cut
[[ $(wc -l <cut/tune-R2.jsonl) -ge $(wc -l <before) ]] || fail "the last trial is missing"

# Under a contract about sums, what the folder picks keeps it.
expect_code 0 "${tune[@]}" --collective allreduce --order exact -o exact
"$mscclc" select --library exact --collective allreduce --ranks 2 --bytes 1K --order exact >/dev/null ||
  fail "no exact plan"

# For a machine that is not there: the same by prediction, twice the same, and it says so.
expect_code 0 "$mscclc" tune --predict --machine 8xH200 --ranks 5 --trials 3 --bytes '1K,1M' --collective allgather -o predicted
grep -q "^5 ranks: calls predicted for '8xH200'; nothing was measured$" out || fail "it does not say that it predicts"
if grep -q 'predicts the faster' out; then fail "the model is compared with itself"; fi
"$mscclc" select --library predicted --collective allgather --ranks 5 --bytes 1M >/dev/null || fail "no predicted plan"
cp predicted/tune-R5.jsonl before-predicted
expect_code 0 "$mscclc" tune --predict --machine 8xH200 --ranks 5 --trials 3 --bytes '1K,1M' --collective allgather -o predicted
cmp before-predicted predicted/tune-R5.jsonl || fail "a prediction differs from the last one"
expect_code 2 "$mscclc" tune --predict --device threads -o predicted
grep -q -- '--device' err || fail "what measures is taken beside --predict"
expect_code 2 "$mscclc" tune --predict --machine 4xH200 --ranks 5 --bytes 1K --collective allgather -o predicted
grep -q 'is of another run' err || fail "predictions of another machine are taken"

# Nor are those of a machine whose file has changed, or of a library whose programs have.
predict=("$mscclc" tune --predict --ranks 5 --trials 3 --bytes 1K --collective allgather)
cp "$MSCCLC_LIBRARY/machines/8xH200.json" own.json
expect_code 0 "${predict[@]}" --machine own.json -o own
sed -i -E 's/("latency_ns": *)[0-9]+/\19999/' own.json
if cmp -s own.json "$MSCCLC_LIBRARY/machines/8xH200.json"; then fail "no figure of the machine is changed"; fi
expect_code 2 "${predict[@]}" --machine own.json -o own
grep -q 'is of another run .*with figures .*, here .*with figures' err || fail "predictions of other figures are taken"
mkdir changed
cp "$MSCCLC_LIBRARY"/*.mscl "$MSCCLC_LIBRARY/library.json" changed
chmod +w changed/*
echo '# changed' >>changed/allgather_direct.mscl
expect_code 2 "${predict[@]}" --machine 8xH200 --library changed -o predicted
grep -q 'is of another run .*programs .*, here .*programs' err || fail "times of other programs are taken"

# Not over the library that is read.
mkdir copy
cp "$MSCCLC_LIBRARY"/* copy 2>/dev/null || true # but its folders
expect_code 2 "$mscclc" tune --predict --machine 8xH200 --ranks 5 --trials 3 --bytes 1K --collective allgather --library copy -o copy
grep -q 'would replace the library that is read' err || fail "the library may be replaced"
cmp copy/library.json "$MSCCLC_LIBRARY/library.json" || fail "the library is replaced"
[[ ! -e copy/tune-R5.jsonl ]] || fail "it is tuned before the library is looked at"

# In turn with NCCL, which a program that is linked statically cannot load.
MSCCLC_NCCL=$nccl expect_code 0 "$dynamic" "${tune[@]:1}" --collective allreduce,allgather -o beside
grep -q 'in turn with NCCL 2.28.9 (' out || fail "NCCL is not named"
grep -q '^faster than NCCL at [012] of 2 sizes$' out || fail "no count against NCCL"
[[ $(grep -c 'NCCL 2.28.9' beside/tune-R2.jsonl) == 12 ]] || fail "NCCL is not timed three times a size"
MSCCLC_NCCL=$nccl expect_code 0 "$dynamic" "${tune[@]:1}" --collective allreduce --no-nccl -o without
grep -q 'NCCL was not timed: it was not asked for' out || fail "NCCL in spite of --no-nccl"
MSCCLC_NCCL=$nccl expect_code 0 "${tune[@]}" --collective allreduce -o static
grep -q 'NCCL was not timed: .*linked statically' out || fail "a static program says nothing"

# Between other kernels: another file of trials, as times are others.
expect_code 0 "${tune[@]}" --collective allreduce --between -o around
grep -q 'calls one by one, between other kernels' out || fail "nothing about kernels"
expect_code 2 "${tune[@]}" --collective allreduce -o around
grep -q 'is of another run' err || fail "times of other calls are taken"

expect_code 2 "${tune[@]}" --collective allred -o x
expect_code 2 "${tune[@]}" --dtype f33 -o x
expect_code 2 "${tune[@]}" --ranks 1 -o x
expect_code 2 "${tune[@]}" --machine nothing -o x
expect_code 2 "$mscclc" tune --device threads --bytes 0 -o x
[[ ! -e x ]] || fail "a folder in spite of an error"
mkdir other
echo letters >other/tune-R2.jsonl
expect_code 2 "${tune[@]}" -o other
grep -q "is no file of 'mscclc tune'" err || fail "a file of something else is taken"
echo fine
