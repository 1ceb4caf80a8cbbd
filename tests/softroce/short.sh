#!/bin/sh
# The short form of checks.sh: writes, writes with immediate and atomics between two ranks, one that is
# ahead by credits, a rank that dies and a GID that there is not. Arguments: as there.
. tests/softroce/common.sh

for mode in host host-no-atomic; do
  export MSCCLC_IBV_MODE=$mode
  check "2 ranks, $mode" plan allgather_hier 2 1 0,1000,64K
  check "2 ranks, one ahead by credits, $mode" "$mscclc" run plans/broadcast_nodes.mscl \
    --bytes 0,1000,64K --iters 20 --device processes --ranks-per-node 1
done
unset MSCCLC_IBV_MODE
check "additions to host memory" "$adds" "remote adds: to host memory"
check "a rank that dies" "$nodes" "a rank that dies ends the job on all nodes"
check "a GID that there is not" says "no lanes over verbs: port 1 of rxe" \
  env MSCCLC_IB_GID_INDEX=200 "$mscclc" run plans/allgather_hier.mscl -D world=2 -D gpus=1 \
  --bytes 64K --device processes --ranks-per-node 1
exit $failed
