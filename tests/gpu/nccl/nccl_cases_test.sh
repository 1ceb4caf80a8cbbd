#!/bin/bash
# The conformance cases that need GPUs are those of nccl_cases.py: each has one, and no other has.
set -eu
needed=$(grep -oE '^CASE\([0-9]+, +gpu,' tests/nccl/cases.def | grep -oE '[0-9]+' | sort -nu)
tried=$(sed -n '/^CASES = /,/^OURS = /p' tests/gpu/nccl/nccl_cases.py | grep -oE '\([0-9]+,' | grep -oE '[0-9]+' | sort -nu)
[ -n "$needed" ]
diff <(echo "$needed") <(echo "$tried")
