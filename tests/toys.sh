#!/usr/bin/env bash
# What a pass, a kind of step, an op and a packet format cost, by adding one of each to copies of the tree:
# toy_*.sh, in their quick form. Fails if one costs more than its script allows.
set -euo pipefail
cd "$(dirname "$0")"
failed=0
for toy in pass step op format; do
  ./toy_$toy.sh --quick || failed=1
done
exit $failed
