#!/bin/bash
# Runs every snippet of docs/integration.md and of the README with fake frameworks, which load NCCL as
# the real ones do: each must find ours. And the line of a call in the page is one that the library
# writes.
# Arguments: our library, the audit library, fake_framework.so, a fake NCCL, the documents.
set -euo pipefail
front=$(dirname "$(realpath "$1")") framework=$(realpath "$3") fake=$(realpath "$4")
[[ $(dirname "$(realpath "$2")") == "$front" ]]
shift 4
export MSCCLC_DEVICE=host MSCCLC_NCCL=$fake MSCCLC_FLIGHT_FILE=none
export FRAMEWORK=$framework
work=$TEST_TMPDIR
mkdir -p "$work/bin" "$work/python/sglang" "$work/here"

# Python packages: torch, jax and cupy say where they find NCCL when they are imported.
report() { # NAME FUNCTION
  cat << PYTHON
import ctypes, os
_library = ctypes.CDLL(os.environ["FRAMEWORK"])
_library.$2.restype = ctypes.c_char_p
print("$1:", os.path.realpath(_library.$2().decode()))
PYTHON
}
report torch linked_nccl > "$work/python/torch.py"
report jax named_nccl > "$work/python/jax.py"
report cupy linked_nccl > "$work/python/cupy.py"
# The servers have a wrapper of their own beside PyTorch.
server() { # VARIABLE
  cat << PYTHON
import ctypes, os
import torch
ctypes.CDLL(os.environ.get("$1", "libnccl.so.2"))
found = {line.split()[-1] for line in open("/proc/self/maps") if "libnccl.so.2" in line}
print("wrapper:", *map(os.path.realpath, found))
PYTHON
}
touch "$work/python/sglang/__init__.py"
server SGLANG_NCCL_SO_PATH > "$work/python/sglang/launch_server.py"
{ echo '#!/usr/bin/env python3'; server VLLM_NCCL_SO_PATH; } > "$work/bin/vllm"
# Launchers: processes with the environment that they are to pass on.
cat > "$work/bin/torchrun" << 'BASH'
#!/bin/bash
python3 "${!#}" && python3 "${!#}"
BASH
cat > "$work/bin/mpirun" << 'BASH'
#!/bin/bash
while [[ $1 == -* ]]; do
  [[ $1 == -n ]] && ranks=$2
  [[ $1 == -x ]] && given+=("$2")
  shift 2
done
for ((i = 0; i < ranks; ++i)); do env "${given[@]}" "$@"; done
BASH
{ echo '#!/usr/bin/env python3'; report program linked_nccl; } > "$work/here/program"
chmod +x "$work"/bin/* "$work/here/program"
echo 'import torch' > "$work/here/train.py"
echo 'import jax' > "$work/here/train_jax.py"
echo 'import cupy' > "$work/here/sums_cupy.py"
export PATH=$work/bin:$PATH PYTHONPATH=$work/python PYTHONDONTWRITEBYTECODE=1

# The blocks that say what they are, as files: snippet-1.sh, snippet-2.python …
cat "$@" | sed "s|/opt/mscclc/lib/mscclc|$front|g" | awk -v to="$work/snippet-" '
  /^```$/ { on = 0 }
  on { print > file }
  /^```(sh|python)$/ { on = 1; file = to (++count) "." substr($0, 4) }'
# The line of a call, from the plan on: before that are names and addresses.
shown=$(grep -h ' NCCL INFO AllReduce: count 2048 datatype 7 op 0 .* nranks 2 ' "$1" | sed 's/.*: plan/plan/')
failed=0 snippets=0
cd "$work/here"
for snippet in "$work"/snippet-*; do
  shell=bash
  [[ $snippet == *.python ]] && shell=python3
  said=$(timeout 600 "$shell" "$snippet" 2>&1) || said="failed: $said"
  snippets=$((snippets + 1))
  [[ -n $said ]] && ! grep -qv ": $front/libnccl.so.2$" <<< "$said" && continue
  printf 'FAILED: %s\n%s\n' "$(cat "$snippet")" "$said"
  failed=1
done
# Without any of it they find the other one, and say so.
[[ $(python3 train.py) == "torch: $fake" ]] || { echo "FAILED: the fake: $(python3 train.py)"; failed=1; }
cat > call.py << 'PYTHON'
import ctypes, sys
nccl = ctypes.CDLL(sys.argv[1])
comms, data = (ctypes.c_void_p * 2)(), [(ctypes.c_float * 2048)() for _ in range(2)]
assert nccl.ncclCommInitAll(comms, 2, None) == 0
nccl.ncclGroupStart()
for comm, floats in zip(comms, data):
    nccl.ncclAllReduce(floats, floats, ctypes.c_size_t(2048), 7, 0, ctypes.c_void_p(comm), None)
assert nccl.ncclGroupEnd() == 0
PYTHON
written=$(NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL python3 call.py "$front/libnccl.so.2")
[[ -n $shown && $written == *": $shown" ]] || { echo "FAILED: not '$shown': $written"; failed=1; }
echo "$snippets snippets"
((snippets >= 11)) || failed=1
exit $failed
