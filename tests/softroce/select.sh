#!/bin/sh
# Every program that the library has for several nodes, over real verbs: 0 bytes to 16 MiB, packets to
# 1 MiB or 64 KiB, on 2 nodes of 4 ranks, and all types on 2 nodes of 2; those for nodes of one rank in
# both modes. Beside other work it takes up to 30 minutes (docs/records/recorded_runs_jobs.md). Arguments: as for
# checks.sh. ./test --also-verbs runs it.
. tests/softroce/common.sh

short=0,4,1000,64K
long=0,4,1000,64K,1M,16M
both() {  # name, sizes
  check "$1: $2" plan "$1" 8 4 "$2"
  check "$1: all types" plan "$1" 4 2 1000 --dtype all
}

for name in allreduce allgather reducescatter alltoall broadcast; do
  both ${name}_hier $long
done
both allreduce_hier_pipeline $long
for name in allreduce allgather reducescatter alltoall; do
  both ${name}_hier_packets $short,1M
done
both broadcast_hier_packets $short
both sendrecv_hier_packets $short
check "allreduce_hier_2shot on 3 nodes: $long" plan allreduce_hier_2shot 6 2 $long
check "allreduce_hier_2shot on 3 nodes: all types" plan allreduce_hier_2shot 6 2 1000 --dtype all
for sizes in "$long" "1000 --dtype all"; do
  # shellcheck disable=SC2086  # words of their own
  check "sendrecv_port: $sizes" "$mscclc" run plans/sendrecv_port.mscl -D R=2 -D B=2 \
    --bytes $sizes --iters 2 --device processes --ranks-per-node 1
done
# Programs for nodes of one rank, which run ahead of each other by copies and credits: many calls.
for mode in host host-no-atomic; do
  export MSCCLC_IBV_MODE=$mode
  for name in allgather_nodes allreduce_nodes alltoall_nodes broadcast_nodes reduce_nodes reducescatter_nodes \
    sendrecv_nodes; do
    ranks=3
    [ $name = sendrecv_nodes ] && ranks=2
    for sizes in "$short,1M" "1000 --dtype all"; do
      # shellcheck disable=SC2086  # words of their own
      check "$name on $ranks nodes, $mode: $sizes" "$mscclc" run plans/$name.mscl -D R=$ranks \
        --bytes $sizes --iters 20 --device processes --ranks-per-node 1
    done
  done
done
exit $failed
