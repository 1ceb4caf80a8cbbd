#!/bin/sh
# What runs in the virtual machine: lanes and plans over real verbs, and what goes wrong. Arguments:
# verbs_lane_test, verbs_nodes_test, mscclc.
set -u
lanes=$1 nodes=$2 mscclc=$3
failed=0

export MSCCLC_IBV_SO=libibverbs.so.1 MSCCLC_LANE=verbs MSCCLC_IB_TIMEOUT=17
export MSCCLC_FLIGHT_FILE=none HOME=/tmp

check() {  # what it shows, command...
  what=$1
  shift
  if "$@" >/tmp/said 2>&1; then
    echo "ok: $what"
  else
    cat /tmp/said
    echo "FAILED: $what"
    failed=1
  fi
}

says() {  # text, command...: it fails, and says that
  text=$1
  shift
  ! "$@" >/tmp/all 2>&1 || return 1
  cat /tmp/all
  grep -qF "$text" /tmp/all
}

plan() {  # name, ranks, ranks of a node, sizes
  "$mscclc" run "plans/$1.mscl" -D world="$2" -D gpus="$3" --bytes "$4" --iters 2 \
    --device processes --ranks-per-node "$3"
}

check "lanes" "$lanes"
for mode in host host-no-atomic; do
  export MSCCLC_IBV_MODE=$mode
  for name in allreduce_hier allreduce_hier_packets allgather_hier reducescatter_hier; do
    check "$name on 2 x 2 ranks, $mode" plan $name 4 2 0,4,1000,64K,1M
  done
  check "allgather_hier on 2 x 4 ranks, $mode" plan allgather_hier 8 4 0,64K,1M
done
check "16 MiB" plan allgather_hier 4 2 16M
unset MSCCLC_IBV_MODE
check "ranks as threads, which leave nothing" "$nodes" \
  "nodes leave no threads and no descriptors"
check "a GID that there is not" says "no lanes over verbs: port 1 of rxe" \
  env MSCCLC_IB_GID_INDEX=200 "$mscclc" run plans/allgather_hier.mscl -D world=4 -D gpus=2 \
  --bytes 64K --device processes --ranks-per-node 2
ip link set veth1 down  # takes the other end of the pair along
check "a port that is down" says "port 1 of rxe0 is down" \
  env MSCCLC_IB_HCA=rxe0,rxe1 "$mscclc" run plans/allgather_hier.mscl -D world=4 -D gpus=2 \
  --bytes 64K --device processes --ranks-per-node 2
exit $failed
