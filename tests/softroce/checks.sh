#!/bin/sh
# What runs in the virtual machine: lanes and plans over real verbs, what goes wrong, and jobs without
# the library or devices. Arguments: verbs_lane_test, verbs_nodes_test, mscclc, remote_adds_test.
. tests/softroce/common.sh

lossy() {  # percent of the packets that each end loses
  for end in veth0 veth1; do
    if [ "$1" = 0 ]; then
      tc qdisc del dev $end root
    else
      tc qdisc replace dev $end root netem limit 100000 loss "$1%"
    fi
  done
}

# rdma_rxe of Linux 6.1 answers orders that are right with errors when it sends again
# (docs/design/network.md), so a job may end; what may not come is wrong data, or nothing.
ends() {  # command...: it is right, or says which lane has ended
  "$@" >/tmp/all 2>&1 && return
  cat /tmp/all
  grep -q "the lane to rank [0-9]* has ended" /tmp/all && ! grep -q FAILED /tmp/all
}

check "lanes" "$lanes"
check "additions to host memory" "$adds" "remote adds: to host memory"
for mode in host host-no-atomic; do
  export MSCCLC_IBV_MODE=$mode
  for name in allreduce_hier allreduce_hier_packets allgather_hier reducescatter_hier; do
    check "$name on 2 x 2 ranks, $mode" plan $name 4 2 0,4,1000,64K,1M
  done
  for name in allgather_hier allreduce_hier alltoall_hier; do
    check "$name on 2 x 4 ranks, $mode" plan $name 8 4 0,64K,1M
  done
done
check "16 MiB on 2 x 4 ranks" plan allgather_hier 8 4 16M
unset MSCCLC_IBV_MODE
check "all types" plan allreduce_hier 4 2 1000,64K --dtype all
check "a rank that dies" "$nodes" "a rank that dies ends the job on all nodes"
check "ranks as threads, which leave nothing" "$nodes" \
  "nodes leave no threads and no descriptors"
for percent in 1 5; do
  lossy "$percent"
  for mode in host host-no-atomic; do
    check "$percent % lost, $mode" \
      ends env MSCCLC_IB_TIMEOUT=17 MSCCLC_IBV_MODE=$mode MSCCLC_IB_QPS=3 \
      "$mscclc" run plans/allreduce_hier.mscl -D world=4 -D gpus=2 --bytes 4,64K,1M --iters 2 \
      --device processes --ranks-per-node 2
  done
done
lossy 0
small() {  # variables..., for two nodes of two ranks
  env "$@" "$mscclc" run plans/allgather_hier.mscl -D world=4 -D gpus=2 --bytes 64K \
    --device processes --ranks-per-node 2
}

check "a library by its path" small \
  MSCCLC_IBV_SO="$(ldconfig -p | sed -n 's/.*libibverbs.so.1 .*x86-64.*=> //p' | head -n 1)"
check "a library that there is not" says "no lanes over verbs: libno_such.so: cannot open" \
  small MSCCLC_IBV_SO=libno_such.so
check "without the library, over sockets" small MSCCLC_IBV_SO=libno_such.so MSCCLC_LANE=sockets
check "a mode that there is not" says "MSCCLC_IBV_MODE is 'other'" small MSCCLC_IBV_MODE=other
check "MSCCLC_FORCE_DISABLE_GDR is about GPUs" small MSCCLC_FORCE_DISABLE_GDR=1
check "a GID that there is not" says "no lanes over verbs: port 1 of rxe" \
  small MSCCLC_IB_GID_INDEX=200
ip link set veth1 down  # takes the other end of the pair along
check "a port that is down" says "port 1 of rxe0 is down" small MSCCLC_IB_HCA=rxe0,rxe1
rdma link delete rxe0
rdma link delete rxe1
check "no devices" says "this machine has no InfiniBand or RoCE device" small
check "without devices, over sockets" small MSCCLC_LANE=sockets
exit $failed
