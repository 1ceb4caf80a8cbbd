// Which program is the port of which plan.
#include "tests/ported_plans/ported_plans.h"

namespace mscclc {

const std::vector<PortedPlan>& ported_plans() {
  static const std::vector<PortedPlan> ports = {
      {"a2a_pipeline_r4", "alltoall_pipeline", "R=4", "",
       "our scratch holds two units of a row at most"},
      {"a2a_pkt_r4", "alltoall_packets", "R=4 B=2", "", ""},
      {"a2a_r4", "alltoall_scratch", "R=4", "", ""},
      {"a2a_ring_r4_i2", "alltoall_ring", "R=4 I=2", "", ""},
      {"ag_nvls_zero_copy_pkt_r4", "allgather_switch_packets", "R=4 B=1",
       "my own packets have a slot apart from the row that the switch fills: there it has two "
       "writers",
       ""},
      {"ag_nvls_zero_copy_r4_i2", "allgather_switch", "R=4 B=2", "",
       "its closing handshake is relaxed and yet carries data"},
      {"ag_pkt_r4", "allgather_packets", "R=4 B=1",
       "blocks with an op each there, blocks with all of them here: fewer of them", ""},
      {"ag_pkt_rppkt_r4", "allgather_packets", "R=4 B=1", "",
       "packets go to the peers without a stop in the own scratch"},
      {"ag_r2", "allgather_direct", "R=2", "", ""},
      {"ag_r2_i4", "allgather_direct", "R=2", "", ""},
      {"ag_ring_r4_i2", "allgather_direct", "R=4", "",
       "a ring in name only: every rank sends to all others; its closing handshake is relaxed and "
       "yet carries data"},
      {"ag_tbg_r2", "allgather_groups", "R=2", "", ""},
      {"ar_2pa_allpairs_r2", "allreduce_allpairs", "R=2", "", ""},
      {"ar_2pa_allpairs_r4", "allreduce_allpairs", "R=4", "", ""},
      {"ar_2pa_allpairs_r4_nofuse", "allreduce_allpairs", "R=4", "", ""},
      {"ar_2pa_allpairs_r8", "allreduce_allpairs", "R=8", "", ""},
      {"ar_naive_r4", "allreduce_2shot_packets", "R=4",
       "two copies of the shares, which sentinel packets need", ""},
      {"ar_naive_r4_i2", "allreduce_2shot_packets", "R=4", "the same", ""},
      {"ar_naive_r4_nofuse_noautosync", "allreduce_2shot_packets", "R=4", "the same", ""},
      {"ar_nvls_zero_copy_r4", "allreduce_switch_direct", "R=4", "",
       "its closing handshake is relaxed and yet carries data"},
      {"ar_pipeline_nvls_r2", "allreduce_switch", "R=2", "", ""},
      {"ar_pkt_r2", "allreduce_2shot_packets", "R=2", "", ""},
      {"ar_pkt_r4", "allreduce_2shot_packets", "R=4", "", ""},
      {"ar_pkt_r8", "allreduce_2shot_packets", "R=8", "", ""},
      {"da_ag_multinode_r4", "allgather_hier_packets", "world=4 gpus=2 T=1", "", ""},
      {"da_ar_multinode_r4_tbg2", "allreduce_hier_packets", "world=4 gpus=2 T=2", "", ""},
      {"da_rs_multinode_r4", "reducescatter_hier_packets", "world=4 gpus=2 T=1", "", ""},
      {"mn_ag_pkt_r4", "allgather_hier_packets", "world=4 gpus=2 T=1", "", ""},
      {"mn_ag_r4", "allgather_hier", "world=4 gpus=2 I=1", "", ""},
      {"mn_ag_tbg_r4", "allgather_hier", "world=4 gpus=2 I=1", "",
       "straight into the outputs: the way through scratch falls away"},
      {"mn_rs_pkt_r4", "reducescatter_hier_packets", "world=4 gpus=2 T=1",
       "sums for other nodes lie in scratch; there they overwrite the caller's input", ""},
      {"mn_rs_r4", "reducescatter_hier", "world=4 gpus=2 I=1",
       "sums for other nodes lie in scratch; there they overwrite the caller's input",
       "its closing handshake is relaxed and yet covers reads of others' inputs; it leaves while "
       "the network may still read the input; our scratch holds two units of a row at most"},
      {"mn_send_recv_r4", "sendrecv_port", "R=4 B=2", "",
       "it leaves while the network may still read the input"},
      {"repo_ef_allreduce", "allreduce_allpairs", "R=2", "", ""},
      {"repo_ef_allreduce_packet", "allreduce_2shot_packets", "R=2", "", ""},
      {"repo_ef_allreduce_pipeline", "allreduce_switch", "R=4", "",
       "an older format, which no loader takes today"},
      {"repo_et_reduce", "allreduce_allpairs", "R=2 B=1", "",
       "a test of ops: half of the message is read, half got, both written back"},
      {"repo_et_reduce_nvls", "allreduce_switch_direct", "R=2 B=1", "",
       "its closing handshake is relaxed and yet carries data"},
      {"repo_et_reduce_nvls_pipeline", "allreduce_switch_direct", "R=2 B=1", "",
       "a pipeline of one stage gains nothing; its closing handshake is relaxed and yet carries "
       "data"},
      {"repo_et_reduce_pack", "allreduce_2shot_packets", "R=2 B=1",
       "three blocks with an op each there, one block with all of them here", ""},
      {"repo_et_reduce_pack_tbg", "allreduce_2shot_packets", "R=2 B=2", "the same", ""},
      {"repo_et_reduce_tbg", "allreduce_allpairs", "R=2 B=2", "", "it races (MANIFEST.md)"},
      {"repo_et_transfer_pack", "allgather_packets", "R=2 B=1",
       "three blocks with an op each there, one block with all of them here", ""},
      {"repo_et_transfer_pack_tbg", "allgather_packets", "R=2 B=2", "the same", ""},
      {"ut_get_fuse_r2", "sendrecv_get", "R=2 B=1", "", "a test of one op, without a result"},
  };
  return ports;
}

}  // namespace mscclc
