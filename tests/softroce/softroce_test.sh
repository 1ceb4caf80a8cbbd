#!/bin/sh
# Lanes over verbs on real libibverbs and kernel, in a virtual machine; left out where it cannot be
# made.
exec tests/softroce/run.sh tests/softroce/checks.sh runtime/network/verbs/verbs_lane_test \
  tests/nodes/verbs_nodes_test tools/mscclc tests/gpu/atomics/remote_adds_test
