#!/bin/bash
# Runs every snippet of docs/integration.md and of the README, and what the README's table says to
# type, with fake frameworks, which load NCCL as the real ones do: each must find ours. The line of a
# call in the page is one that the library writes, and vLLM's snippet switches off all that the page
# says takes calls before NCCL.
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
# vLLM's plug-in needs the wheel only, and finds no library of ours in front.
cat > "$work/bin/pip" << 'BASH'
#!/bin/bash
[[ $1 == install && -f $2 && $# == 2 ]] && touch "$PYTHONPATH/installed"
BASH
touch "$work/here/mscclc-0.1.0-py3-none-any.whl"
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
# Commands in the cells of the README's table, where $M is the library.
cells=0
while read -r cell; do
  cells=$((cells + 1))
  printf 'M=%s\n%s\n' "$front/libnccl.so.2" "$cell" > "$work/snippet-cell$cells.sh"
done < <(grep -hoE '^\|[^|]*\| `(LD_PRELOAD=\$M [^`]*|pip install [^`]*)`' "${@: -1}" | grep -oE '`.*`' | tr -d '`')
# What switches off a framework's own all-reduce: rows of vLLM, whose name stands in the first only.
vllm_off=$(awk -F '|' '/off with/ { on = 1 } !on { next } !/^\|/ { exit }
  $2 !~ /^ *$/ { vllm = $2 ~ /vLLM/ } vllm { print $4 }' "$1" | grep -oE '`[^`]+`' | tr -d '`')
vllm_front=$(awk '/^```sh$/ { block = "" } { block = block $0 }
  /^```$/ && block ~ /LD_PRELOAD.* vllm serve/ { print block }' "$1")
# The line of a call, from the plan on: before that are names and addresses.
shown=$(grep -h ' NCCL INFO AllReduce: count 2048 datatype 7 op 0 .* nranks 2 ' "$1" | sed 's/.*: plan/plan/')
failed=0 snippets=0
cd "$work/here"
for snippet in "$work"/snippet-*; do
  shell=bash
  [[ $snippet == *.python ]] && shell=python3
  said=$(timeout 600 "$shell" "$snippet" 2>&1) || said="failed: $said"
  snippets=$((snippets + 1))
  if [[ $(cat "$snippet") == *"pip install"* ]]; then
    [[ -f $PYTHONPATH/installed && $said == *"wrapper: "* ]] && continue
  fi
  [[ -n $said ]] && ! grep -qv ": $front/libnccl.so.2$" <<< "$said" && continue
  printf 'FAILED: %s\n%s\n' "$(cat "$snippet")" "$said"
  failed=1
done
offs=0
while read -r off; do
  offs=$((offs + 1))
  [[ $vllm_front == *"$off"* ]] || { echo "FAILED: vLLM's snippet lacks $off"; failed=1; }
done <<< "$vllm_off"
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
echo "$snippets snippets, $cells of them cells; $offs of vLLM's own all-reduces"
((snippets - cells >= 11 && cells >= 4 && offs >= 4)) || failed=1
exit $failed
