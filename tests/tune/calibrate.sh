#!/usr/bin/env bash
# mscclc calibrate on the host device: a machine file that 'mscclc explain' takes.
#   calibrate.sh MSCCLC
set -euo pipefail
mscclc=$(realpath "$1")
plans=$(realpath plans)
# shellcheck source=tests/tune/checks.bash
source "$(dirname "$0")/checks.bash"
measure=("$mscclc" calibrate --device threads --repeats 1 --max-bytes 4K)

# However far apart the two measurements are, it is allowed.
expect_code 0 "${measure[@]}" --tolerance 1e9 -o mine.json
grep -q '^hops_of_puts K=1 ' out || fail "no row of a probe"
for format in LL8 LL16 sentinel; do
  grep -q "^hops_of_packets K=9 F=$format " out || fail "no probe of $format"
done
grep -q '^predicted within 15 %: ' out || fail "no count of predictions"
grep -q ': 0 of [0-9]* probes$' out || fail "no count of second times"
grep -q '"origin": "measured"' mine.json || fail "the file does not say that it was measured"
grep -q 'not measured, as in .4xH200.: .*nic.latency_ns' mine.json || fail "what was not measured"
"$mscclc" explain "$plans/allreduce_1shot.mscl" -D R=2 --bytes 4K --machine mine.json --no-choices >out
grep -q 'on mine (measured)' out || { cat out; fail "explain does not take the machine"; }

# No two measurements are the same to a billionth: the file is written, and the exit code says it.
expect_code 3 "${measure[@]}" --tolerance 1e-9 --base mine.json --name again -o again.json
grep -q '"name": "again"' again.json || fail "no file after a second time that differs"
grep -q 'differs$' out || fail "no probe is marked"

# Each rank as a node of its own: the figures of the network.
expect_code 0 "${measure[@]}" --tolerance 1e9 --network --base mine.json -o nodes.json
grep -q '"nodes": 2' nodes.json || fail "no nodes"
grep -q 'not measured, as in .mine.json.: nvlink.latency_ns' nodes.json || fail "links within a node"

# The machine file to standard output, alone.
expect_code 0 "${measure[@]}" --tolerance 1e9 --name mine -o -
[[ $(head -c 1 out) == '{' ]] || fail "standard output is no machine file"

expect_code 2 "${measure[@]}" --max-bytes many -o x.json
expect_code 2 "${measure[@]}" --base nothing.json -o x.json
expect_code 2 "${measure[@]}" --ranks 1 -o x.json
expect_code 2 "${measure[@]}"
[[ ! -e x.json ]] || fail "a file in spite of an error"
echo fine
