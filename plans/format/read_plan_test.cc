// What the reader refuses, each with the whole message: damage done to a plan of ours and to one of
// MSCCL++'s.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ir/print/print.h"
#include "plans/format/json/json_tape.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/rehash.h"
#include "tests/helpers/plans/sample_plan.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// A change to a plan: `value` (JSON text) is put at `path`; "" takes away what is there.
struct Change {
  const char* path;
  const char* value;
};

struct Case {
  std::vector<Change> changes;
  std::string message;  ///< without the file's name in front
};

void apply(OrderedJson& plan, const Change& change) {
  const OrderedJson::json_pointer pointer(change.path);
  if (*change.value != '\0') {
    plan[pointer] = OrderedJson::parse(change.value);
    return;
  }
  OrderedJson& parent = plan[pointer.parent_pointer()];
  if (parent.is_array()) {
    parent.erase(std::stoul(pointer.back()));
  } else {
    parent.erase(pointer.back());
  }
}

/// Messages without the file's name, which begins each.
std::string read_errors(const std::string& text) {
  Diagnostics diagnostics;
  const auto program = read_plan(text, "p", diagnostics);
  if (program) return "read";
  std::string out;
  for (const Diagnostic& d : diagnostics.all()) {
    std::string path = d.path.substr(std::min<size_t>(d.path.size(), 1));
    if (path.starts_with(": ")) path = path.substr(2);
    out += (out.empty() ? "" : "\n") + path + ": " + d.message;
  }
  return out;
}

void check_all(const OrderedJson& right, const std::vector<Case>& cases) {
  REQUIRE(read_errors(right.dump()) == "read");
  for (const Case& c : cases) {
    OrderedJson plan = right;
    for (const Change& change : c.changes) apply(plan, change);
    INFO(c.changes[0].path << " = " << c.changes[0].value);
    CHECK(read_errors(testing::rehash(plan.dump())) == c.message);
  }
}

OrderedJson our_plan() {
  Diagnostics diagnostics;
  return OrderedJson::parse(
      *write_plan(testing::sample_plan(), builtin_targets().front(), diagnostics));
}

/// Our plan with its extra key taken away: a plan as a peer could have written it.
OrderedJson mscclpp_plan() {
  OrderedJson plan = our_plan();
  plan.erase("mscclc");
  return plan;
}

#define BLOCK "/gpus/0/threadblocks/"
#define IN_BLOCK "gpus[0].threadblocks"
#define EXTRA "/mscclc/ranks/0/"
#define IN_EXTRA "mscclc.ranks[0]."

const std::vector<Case> kTop = {
    {{{"/name", ""}}, ": key 'name' is missing"},
    {{{"/nome", "1"}}, ": unknown key 'nome'"},
    {{{"/name", "1"}}, "name: expected a string, found a number"},
    {{{"/inplace", "0"}}, "inplace: expected a boolean, found a number"},
    {{{"/protocol", "\"LL8\""}}, "protocol: 'LL8' is not a protocol; expected 'LL' or 'Simple'"},
    {{{"/gpus", "{}"}}, "gpus: expected an array, found an object"},
    {{{"/buffer_alignment", "0"}}, "buffer_alignment: is 0"},
    {{{"/buffer_alignment", "8"}}, "buffer_alignment: is 8; expected a multiple of 16 up to 1 MiB"},
    {{{"/buffer_alignment", "24"}},
     "buffer_alignment: is 24; expected a multiple of 16 up to 1 MiB"},
    {{{"/buffer_alignment", "1048592"}},
     "buffer_alignment: is 1048592; expected a multiple of 16 up to 1 MiB"},
    {{{"/num_threads_per_block", "0"}}, "num_threads_per_block: is 0"},
    {{{"/num_threads_per_block", "33"}},
     "num_threads_per_block: is 33; a thread block has 32 to 1024, in whole warps"},
    {{{"/num_threads_per_block", "2048"}},
     "num_threads_per_block: is 2048; a thread block has 32 to 1024, in whole warps"},
    {{{"/num_threads_per_block", "4294967296"}},
     "num_threads_per_block: 4294967296 is too large; at most 4294967295"},
    {{{"/min_message_size", "-1"}}, "min_message_size: expected a number, found a negative number"},
    {{{"/max_message_size", "1.5"}}, "max_message_size: expected a number, found a real number"},
    {{{"/max_message_size", "18446744073709551616"}},
     "max_message_size: expected a number, found a real number"},
};

const std::vector<Case> kRanks = {
    {{{"/gpus/1/id", "0"}}, "gpus[1].id: is 0; ids are positions"},
    {{{"/gpus/0/semaphore", "[]"}}, "gpus[0]: unknown key 'semaphore'"},
    {{{"/gpus/0/inputChunks", "1"}},
     "gpus: the plan is of MSCCL++ before 0.7, whose format is another: write its program in the "
     "language of 0.7, for 'python3 -m mscclc mscclpp'"},
    {{{"/gpus/0/channels", ""}}, "gpus[0]: key 'channels' is missing"},
    {{{"/gpus/0/channels/0/channel_type", "\"none\""}},
     "gpus[0].channels[0].channel_type: 'none' is not a kind of channel; 'memory', 'port' or "
     "'switch'"},
    {{{"/gpus/0/channels/0/connected_to/0", "2"}},
     "gpus[0].channels[0].connected_to[0]: 2 is not a rank (there are 2)"},
    {{{"/gpus/0/channels/0/connected_to/0", "0"}},
     "gpus[0].channels[0].connected_to[0]: a channel to its own rank"},
    {{{"/gpus/0/channels/0/buffer_type", "\"s\""}},
     "gpus[0].channels[0]: unknown key 'buffer_type'"},
    {{{"/gpus/0/channels/2/buffer_type", "\"x\""}},
     "gpus[0].channels[2].buffer_type: 'x' is not a buffer; expected 'i', 'o' or 's'"},
    {{{"/gpus/0/channels/2/rank_groups/0/size", "3"}},
     "gpus[0].channels[2].rank_groups[0].size: is 3, but there are 2 ranks"},
    {{{"/gpus/0/channels/2/rank_groups/0/ranks", "[1]"}},
     "gpus[0].channels[2].rank_groups[0].ranks: rank 0 is not one of them"},
    {{{"/gpus/0/remote_buffers/0/rank", "7"}},
     "gpus[0].remote_buffers[0].rank: 7 is not a rank (there are 2)"},
    {{{"/gpus/0/remote_buffers/0/access_channel_types/1", "\"switch\""}},
     "gpus[0].remote_buffers[0].access_channel_types[1]: a remote buffer is reached by 'memory' "
     "or 'port'"},
    {{{"/gpus/0/remote_buffers/0/access_channel_types", "[\"port\"]"}},
     IN_BLOCK "[0].remote_buffer_refs[0].remote_buffer_ids[0]: remote buffer 0 is not reached by "
              "'memory'"},
    {{{"/gpus/0/semaphores/0", "{}"}}, "gpus[0].semaphores[0]: key 'init_value' is missing"},
};

const std::vector<Case> kBlocks = {
    {{{BLOCK "1/id", "2"}}, IN_BLOCK "[1].id: is 2; ids are positions"},
    {{{BLOCK "0/channels/0/channel_ids/0", "2"}},
     IN_BLOCK "[0].channels[0].channel_ids[0]: 2 is not a channel (there are 2)"},
    {{{BLOCK "1/channels/0/channel_ids/0", "1"}},
     IN_BLOCK "[1].channels[0].channel_ids[0]: 1 is not a channel (there are 1)"},
    {{{BLOCK "0/remote_buffer_refs/0/remote_buffer_ids/0", "2"}},
     IN_BLOCK "[0].remote_buffer_refs[0].remote_buffer_ids[0]: 2 is not a remote buffer (there "
              "are 2)"},
    {{{BLOCK "0/remote_buffer_refs/0/access_channel_type", "\"switch\""}},
     IN_BLOCK "[0].remote_buffer_refs[0].access_channel_type: a remote buffer is reached by "
              "'memory' or 'port'"},
    {{{BLOCK "0/ops/0/name", ""}}, IN_BLOCK "[0].ops[0]: key 'name' is missing"},
    {{{BLOCK "0/ops/0/name", "\"putt\""}}, IN_BLOCK "[0].ops[0].name: unknown op 'putt'"},
    {{{BLOCK "0/ops/0", "7"}}, IN_BLOCK "[0].ops[0]: expected an object, found a number"},
    {{{BLOCK "0/ops/0/reduce_op", "\"sum\""}}, IN_BLOCK "[0].ops[0]: unknown key 'reduce_op'"},
    {{{BLOCK "2/ops/5/channel_ids", "[]"}}, IN_BLOCK "[2].ops[5]: unknown key 'channel_ids'"},
    {{{BLOCK "0/ops/0/channel_type", ""}}, IN_BLOCK "[0].ops[0]: key 'channel_type' is missing"},
    {{{BLOCK "0/ops/0/channel_type", "\"switch\""}},
     IN_BLOCK "[0].ops[0].channel_type: 'switch' cannot be combined with 'put_packets'"},
    {{{BLOCK "2/ops/0/channel_type", "\"memory\""}},
     IN_BLOCK "[2].ops[0].channel_type: 'memory' cannot be combined with 'put_with_signal'"},
    {{{BLOCK "1/ops/1/ops/0", "{\"name\":\"pipeline\",\"iter_context\":{},\"ops\":[]}"}},
     IN_BLOCK "[1].ops[1].ops[0]: a pipeline inside a pipeline"},
    {{{BLOCK "1/ops/1/ops", "[]"}}, IN_BLOCK "[1].ops[1]: a pipeline without ops"},
    {{{BLOCK "1/ops/1/iter_context/unit_size", "1000"}},
     IN_BLOCK "[1].ops[1].iter_context.unit_size: 1000 is not a multiple of 16"},
    {{{BLOCK "2/ops/1/channel_ids/0", "1"}},
     IN_BLOCK "[2].ops[1].channel_ids[0]: 1 is not a channel (there are 1)"},
    {{{BLOCK "2/ops/1/channel_ids", "[]"}}, IN_BLOCK "[2].ops[1]: names nothing to act on"},
    {{{BLOCK "1/ops/1/ops/0/semaphore_ids/0", "2"}},
     IN_BLOCK "[1].ops[1].ops[0].semaphore_ids[0]: 2 is not a semaphore (there are 2)"},
    {{{BLOCK "0/ops/2/num_threadblocks", "3"}},
     IN_BLOCK "[0].ops[2]: 'num_threadblocks' is 3, but 2 thread blocks have barrier 0"},
    {{{BLOCK "0/ops/2/barrier_id", "1"}},
     IN_BLOCK "[1].ops[0]: 'num_threadblocks' is 2, but 1 thread blocks have barrier 0"},
};

const std::vector<Case> kMoves = {
    {{{BLOCK "0/ops/0/src_buff", "[]"}},
     IN_BLOCK "[0].ops[0].src_buff: 'put_packets' takes at least 1 ref here, there are 0"},
    {{{BLOCK "0/ops/0/src_buff/1", "{\"type\":\"i\",\"index\":1,\"size\":1}"}},
     IN_BLOCK "[0].ops[0]: 1 destination, 2 sources"},
    {{{BLOCK "0/ops/1/src_buff/1", ""}},
     IN_BLOCK "[0].ops[1].src_buff: 'reduce_packets' takes at least 2 refs here, there is 1"},
    {{{BLOCK "0/ops/1/dst_buff", "[]"}},
     IN_BLOCK "[0].ops[1].dst_buff: 'reduce_packets' takes 1 ref here, there are 0"},
    {{{BLOCK "0/ops/1/src_buff/1/size", "2"}},
     IN_BLOCK "[0].ops[1].src_buff[1]: 2 chunks, but the op moves 1"},
    {{{BLOCK "0/ops/1/src_buff/1/size", "0"}},
     IN_BLOCK "[0].ops[1].src_buff[1].size: an empty range of chunks"},
    {{{BLOCK "0/ops/1/src_buff/1/index", "4"}},
     IN_BLOCK "[0].ops[1].src_buff[1]: chunks 4..5 of a buffer that has 4"},
    {{{BLOCK "0/ops/0/dst_buff/0/index", "4294967295"}},
     IN_BLOCK "[0].ops[0].dst_buff[0]: chunks 4294967295..4294967296 of a buffer that has 4"},
    {{{BLOCK "0/ops/1/src_buff/1/buffer_id", "0"}},
     IN_BLOCK "[0].ops[1].src_buff[1]: unknown key 'buffer_id'"},
    {{{BLOCK "0/ops/0/dst_buff/0", "{\"type\":\"s\",\"index\":0,\"size\":1}"}},
     IN_BLOCK "[0].ops[0].dst_buff[0]: unknown key 'type'"},
    {{{BLOCK "0/ops/0/src_buff/0/rank", "1"}},
     IN_BLOCK "[0].ops[0].src_buff[0].rank: is 1 on rank 0"},
    {{{BLOCK "0/ops/0/dst_buff/0/buffer_id", "1"}},
     IN_BLOCK "[0].ops[0].dst_buff[0].buffer_id: 1 is not a remote buffer (there are 1)"},
    {{{BLOCK "1/ops/1/ops/1/src_buff/0/switch_channel_id", "1"}},
     IN_BLOCK "[1].ops[1].ops[1].src_buff[0].switch_channel_id: 1 is not a channel (there are 1)"},
    {{{BLOCK "2/ops/0/channel_ids", ""}}, IN_BLOCK "[2].ops[0]: key 'channel_ids' is missing"},
    {{{BLOCK "2/ops/0/channel_ids", "[0,0]"}},
     IN_BLOCK "[2].ops[0].channel_ids: 2 channels for 1 remote chunk"},
    {{{BLOCK "2/ops/0/channel_ids/0", "1"}},
     IN_BLOCK "[2].ops[0].channel_ids[0]: 1 is not a channel (there are 1)"},
    {{{BLOCK "0/ops/1/reduce_op", "\"xor\""}},
     IN_BLOCK "[0].ops[1].reduce_op: 'xor' is not a reduction here"},
    {{{BLOCK "1/ops/2/tbg_info/tb_id", "2"}}, IN_BLOCK "[1].ops[2].tbg_info: part 2 of 2"},
    {{{BLOCK "1/ops/2/tbg_info/tbg_size", "65536"}},
     IN_BLOCK "[1].ops[2].tbg_info.tbg_size: 65536 is too large; at most 65535"},
};

/// Rank 0 has a chunk of packets first, and its plain data at the chunk `plain`.
std::vector<Change> packets_first(const char* plain) {
  return {{BLOCK "0/ops/1/src_buff/1/index", "0"},
          {"/gpus/1/threadblocks/0/ops/0/dst_buff/0/index", "0"},
          {BLOCK "1/ops/1/ops/1/src_buff/0/index", plain},
          {BLOCK "1/ops/1/ops/1/dst_buff/0/index", plain},
          {BLOCK "1/ops/2/src_buff/0/index", plain},
          {BLOCK "2/ops/0/src_buff/0/index", plain},
          {"/gpus/1/threadblocks/2/ops/0/dst_buff/0/index", plain}};
}

const std::vector<Case> kMscclppOnly = {
    {{{"/gpus/0/output_chunks", "0"}},
     "gpus[0].output_chunks: is 0; MSCCL++'s executor divides by it"},
    {{{BLOCK "0/ops/1/name", "\"reduce_packets\""}},
     IN_BLOCK "[0].ops[1].name: unknown op 'reduce_packets'"},
    {{{"/protocol", "\"Simple\""}},
     IN_BLOCK "[0].ops[1].src_buff[1]: packets, but the protocol is not 'LL': scratch would be too "
              "small"},
    {{{BLOCK "1/ops/2/src_buff/0/index", "2"}},
     IN_BLOCK "[1].ops[2].src_buff[0]: scratch chunk 2 is used both for packets and for plain "
              "data"},
    {{{"/use_double_scratch_buffer", "true"}},
     IN_BLOCK "[1].ops[1].ops[1].src_buff[0]: plain remote scratch in a plan with double scratch: "
              "MSCCL++'s executor would always use the first half"},
    {packets_first("1"),
     "gpus[0].scratch_chunks: packets and plain data of scratch lie at the same bytes"},
    {{{"/gpus/1/output_chunks", "3"}},
     "gpus[1].output_chunks: is 3; 'allreduce' over 2 ranks makes it 2"},
    {{{"/collective", "\"allgather\""}},
     "gpus[0].output_chunks: is 2; 'allgather' over 2 ranks makes it 4"},
    {{{"/collective", "\"reducescatter\""}},
     "gpus[0].input_chunks: is 2; 'reducescatter' over 2 ranks makes it 4"},
    {{{"/collective", "\"alltoall\""}, {"/gpus/0/input_chunks", "3"}},
     "gpus[0].input_chunks: is 3; 'alltoall' over 2 ranks makes it 2"},
    {{{"/collective", "\"test\""}, {"/gpus/1/input_chunks", "3"}},
     "gpus[1].input_chunks: differs from that of rank 0"},
    {{{"/gpus", "[]"}}, "collective: the plan has no ranks"},
};

const std::vector<Case> kExtraKey = {
    {{{"/mscclc/schema", "1"}},
     "mscclc.schema: version 1 of plans; this program reads version 2: compile the plan's program "
     "again with this mscclc"},
    {{{"/mscclc/hash", ""}}, "mscclc: key 'hash' is missing"},
    {{{"/mscclc/pruf", "1"}}, "mscclc: unknown key 'pruf'"},
    {{{"/mscclc/target", "1"}}, "mscclc.target: expected a string, found a number"},
    {{{"/mscclc/contract/kind", "\"allredcue\""}},
     "mscclc.contract.kind: unknown collective 'allredcue'"},
    {{{"/mscclc/contract/in_place", "\"maybe\""}},
     "mscclc.contract.in_place: must be 'either', 'yes' or 'no'"},
    {{{"/mscclc/contract/promises", "[[0,0,2,0,0]]"}},
     "mscclc.contract.promises[0]: expected an output chunk, 0 or 1, and input chunks"},
    {{{"/mscclc/contract/ranks", "3"}}, ": the contract is about 3 ranks, the program has 2"},
    {{{"/mscclc/contract/chunks", "[3]"}},
     ": 'input' of rank 0 has 2 chunks, the contract says 3\n"
     ": 'output' of rank 0 has 2 chunks, the contract says 3\n"
     ": 'input' of rank 1 has 2 chunks, the contract says 3\n"
     ": 'output' of rank 1 has 2 chunks, the contract says 3"},
    {{{"/mscclc/select/dtypes", "[\"f33\"]"}}, "mscclc.select.dtypes[0]: unknown word 'f33'"},
    {{{"/mscclc/select/sizes", "[0]"}}, "mscclc.select.sizes: expected two numbers"},
    {{{"/mscclc/launch/policy", "\"blockd\""}},
     "mscclc.launch.policy: must be 'interleaved' or 'blocked'"},
    {{{"/mscclc/sites/0", "[0,1]"}}, "mscclc.sites[0]: expected a file, a line and a column"},
    {{{"/mscclc/sites/0/0", "1"}}, "mscclc.sites[0]: 1 is not a file (there are 1)"},
    {{{"/mscclc/sites/0/3", "2"}}, "mscclc.sites[0]: 2 is not a variable (there are 2)"},
    {{{"/mscclc/ranks/1", ""}}, "gpus: 2 ranks; 'mscclc' speaks of 1"},
    {{{EXTRA "loc", "{}"}}, IN_EXTRA "loc: expected an array, found an object"},
    {{{EXTRA "buffers/0/packets", "\"LL32\""}},
     IN_EXTRA "buffers[0].packets: unknown packets 'LL32'"},
    {{{EXTRA "buffers/1/at", "1"}}, IN_EXTRA "buffers: 'slots' is at 1; its place is 2"},
    {{{EXTRA "buffers/1/chunks", "3"}}, "gpus[0].scratch_chunks: is 4; the buffers have 5 chunks"},
    {{{EXTRA "channels/0", "[\"up\",\"memory\"]"}},
     IN_EXTRA "channels[0]: expected a name, a kind, a count and keys"},
    {{{EXTRA "channels/0/1", "\"cable\""}},
     IN_EXTRA "channels[0][1]: 'cable' is not a kind of channel"},
    {{{EXTRA "channels/0/3", "\"pear\""}},
     IN_EXTRA "channels[0][3]: keys are a list, or \"peer\" for channels"},
    {{{EXTRA "channels/0/3", "[1,2,3]"}, {EXTRA "channels/0/2", "2"}},
     IN_EXTRA "channels[0][3]: 3 keys for 2 members"},
    {{{EXTRA "channels/0", ""}}, "gpus[0].channels: 'mscclc' does not name all channels"},
    {{{EXTRA "channels/2/2", "2"}},
     IN_EXTRA "channels[2]: declares a channel that the rank does not have"},
    {{{EXTRA "channels/3/2", "2"}},
     IN_EXTRA "channels[3]: declares a switch that the rank does not have"},
    {{{EXTRA "channel_ids", "[0,0,0]"}},
     IN_EXTRA "channels[1]: declares a channel that the rank does not have"},
    {{{EXTRA "channel_ids", "[0,1,0,1]"}}, IN_EXTRA "channel_ids: more ids than channels"},
    {{{EXTRA "alone", "[7]"}}, IN_EXTRA "alone: lists something that is not a channel of the rank"},
    {{{EXTRA "credits", "[[0,1]]"}}, IN_EXTRA "credits[0]: expected a port channel and 1 to 1024"},
    {{{EXTRA "credits", "[[1]]"}}, IN_EXTRA "credits[0]: expected a port channel and 1 to 1024"},
    {{{EXTRA "switches", "[1]"}}, IN_EXTRA "switches: 1 is not a switch (there are 1)"},
    {{{EXTRA "switches", "[]"}, {EXTRA "unused_switches", "[[0,0,1]]"}},
     "gpus[0].channels: 'mscclc' does not name all switches"},
    {{{EXTRA "unused_switches", "[[1,0]]"}},
     IN_EXTRA "unused_switches[0]: begins with no switch of the rank"},
    {{{EXTRA "unused_switches", "[[0,5]]"}},
     IN_EXTRA "unused_switches[0]: lists a rank that does not exist"},
    {{{EXTRA "semaphores", "[[\"done\",1,[0]]]"}},
     "gpus[0].semaphores: 'mscclc' does not name all semaphores"},
    {{{EXTRA "semaphores", "[[\"done\",3,[0,1,2]]]"}},
     IN_EXTRA "semaphores[0]: more names than semaphores"},
    {{{EXTRA "complete", "[99]"}}, IN_EXTRA "complete[0]: 99 is not an op (there are 14)"},
    {{{EXTRA "complete", "[1,1]"}}, IN_EXTRA "complete[1]: the list does not ascend"},
    {{{EXTRA "complete", "[0]"}}, IN_EXTRA "complete[0]: does not go with 'put_packets'"},
    {{{EXTRA "tree", "[0]"}}, IN_EXTRA "tree[0]: does not go with 'put_packets'"},
    {{{EXTRA "exact", "[0]"}}, IN_EXTRA "exact[0]: does not go with 'put_packets'"},
    {{{EXTRA "fixed_sum", "[0]"}}, IN_EXTRA "fixed_sum[0]: does not go with 'put_packets'"},
    {{{EXTRA "plain_last", "[5]"}},
     IN_EXTRA "plain_last[0]: does not go with 'switch_reduce_broadcast'"},
    {{{EXTRA "plain_first", "[1]"}}, IN_EXTRA "plain_first: does not go with 'foreign'"},
    {{{EXTRA "data_channels", "[[2,2]]"}},
     IN_EXTRA "data_channels[0]: 2 is not a channel (there are 2)"},
    {{{EXTRA "data_channels", "[[3,0]]"}},
     IN_EXTRA "data_channels[0]: begins with no later thread block"},
    {{{EXTRA "op_channels", "[[2,0]]"}},
     IN_EXTRA "op_channels[0]: begins with no op that moves data"},
    {{{EXTRA "op_channels", "[[0,2]]"}},
     IN_EXTRA "op_channels[0]: does not list the channels of the op"},
    {{{EXTRA "barriers", "[[0,1]]"}}, IN_EXTRA "barriers[0]: begins with no barrier"},
    {{{EXTRA "barriers", "[[2]]"}}, IN_EXTRA "barriers[0]: expected an op and thread blocks"},
    {{{EXTRA "barriers", "[[2,0,1],[2,1,0]]"}}, IN_EXTRA "barriers[1]: the op appears twice"},
    {{{EXTRA "loc", "[1,2,0,0]"}}, IN_EXTRA "loc: there are more ops than locations"},
    {{{EXTRA "loc", "[2]"}}, IN_EXTRA "loc[0]: not a site"},
    {{{EXTRA "loc", "[1,3]"}}, IN_EXTRA "loc[1]: more values than the site has variables"},
    {{{EXTRA "loc", "[1,1,0]"}},
     IN_EXTRA "loc[1]: leaves out the value of a variable that had none yet"},
    {{{EXTRA "loc", "[-1]"}}, IN_EXTRA "loc[0]: another location of an op that has none"},
    {{{EXTRA "loc", "[1,-1]"}},
     IN_EXTRA "loc[1]: a run must continue a location of the same op and site"},
    {{{EXTRA "loc", "[1,2,0,0,-1,-1,4000000000,1]"}},
     IN_EXTRA "loc[6]: more locations than a plan of this size can have"},
    {{{EXTRA "loc", "[1,2,0]"}}, IN_EXTRA "loc: the list ends within a location"},
    {{{BLOCK "0/ops/1/reduce_op", "\"max\""}},
     IN_BLOCK "[0].ops[1].reduce_op: 'max' is not a reduction here"},
    {{{"/collective", "\"reduce\""}}, "collective: 'collective' is not what 'mscclc' makes it"},
    {{{"/protocol", "\"Simple\""}}, "protocol: 'protocol' is not what 'mscclc' makes it"},
    {{{"/inplace", "true"}}, "inplace: 'inplace' is not what 'mscclc' makes it"},
    {{{"/max_message_size", "1"}},
     "max_message_size: 'max_message_size' is not what 'mscclc' makes it"},
};

}  // namespace

TEST_CASE("mistakes in the keys of all plans") {
  for (const auto* cases : {&kTop, &kRanks, &kBlocks, &kMoves}) {
    check_all(our_plan(), *cases);
    check_all(mscclpp_plan(), *cases);
  }
}

TEST_CASE("mistakes in a plan of MSCCL++") { check_all(mscclpp_plan(), kMscclppOnly); }

TEST_CASE("mistakes in the extra key") { check_all(our_plan(), kExtraKey); }

TEST_CASE("a changed plan is recognised by its hash") {
  std::string text = our_plan().dump();
  const size_t at = text.find("\"unit_size\":1024");
  REQUIRE(at != std::string::npos);
  text.replace(at, 16, "\"unit_size\":2048");
  const std::string errors = read_errors(text);
  CHECK(
      errors.starts_with("mscclc.hash: the plan was changed after it was written: its content "
                         "has the hash "));
  CHECK(read_errors(testing::rehash(text)) == "read");
}

const Proof kProof = {.proved = true,
                      .orders = {.replicated = true, .tree = true, .exact = true},
                      .in_place = true,
                      .rounding = Rounding::each_op,
                      .between_calls = BetweenCalls::copies,
                      .sums = "[x0 + x1] + x2"};

/// Our plan with the record of a proof.
OrderedJson proved_plan(const char* target = "host") {
  Diagnostics diagnostics;
  return OrderedJson::parse(
      *write_plan(testing::sample_plan(), *find_target(target, diagnostics), diagnostics, &kProof));
}

TEST_CASE("white space does not change the hash, what a plan claims does") {
  CHECK(read_errors(proved_plan().dump(2)) == "read");
  CHECK(proved_plan()["mscclc"]["hash"] != our_plan()["mscclc"]["hash"]);
  const OrderedJson right = proved_plan();
  for (const auto& [claim, value] : right["mscclc"]["proof"].items()) {
    INFO(claim);
    OrderedJson changed = right;
    OrderedJson& other = changed["mscclc"]["proof"][claim];
    if (value.is_boolean()) other = !value.get<bool>();
    if (value.is_number()) other = value.get<uint32_t>() + 1;
    if (claim == "orders") other = {"ranks"};
    if (claim == "sums") other = "[x0 + x2] + x1";
    if (claim == "rounding") other = "once";
    if (claim == "between_calls") other = "meeting";
    if (claim == "target") other = changed["mscclc"]["target"] = "mscclpp";
    REQUIRE(changed != right);
    CHECK_THAT(read_errors(changed.dump()), Catch::StartsWith("mscclc.hash: the plan was changed"));
  }
}

TEST_CASE("where a plan comes from is not hashed") {
  OrderedJson plan = our_plan();
  REQUIRE(plan["mscclc"]["sites"].size() > 0);
  plan["mscclc"]["description"] = "another comment\nof two lines";
  plan["mscclc"]["files"][0] = "moved.mscl";
  plan["mscclc"]["sites"][0][1] = 77;
  CHECK(read_errors(plan.dump()) == "read");
  plan["name"] = "another";
  CHECK_THAT(read_errors(plan.dump()), Catch::StartsWith("mscclc.hash: the plan was changed"));
}

TEST_CASE("plans whose hash is of everything are read") {
  OrderedJson plan = our_plan();
  Diagnostics diagnostics;
  JsonTape tape;
  REQUIRE(tape.parse(plan.dump(), "plan.json", diagnostics));
  plan["mscclc"]["hash"] = canonical_hash(tape, nullptr, HashOf::everything);
  CHECK(plan["mscclc"]["hash"] != our_plan()["mscclc"]["hash"]);
  CHECK(read_errors(plan.dump()) == "read");
  plan["mscclc"]["description"] = "changed";
  CHECK_THAT(read_errors(plan.dump()), Catch::StartsWith("mscclc.hash: the plan was changed"));
}

TEST_CASE("the record of a proof is read") {
  Diagnostics diagnostics;
  std::optional<ProofRecord> record;
  REQUIRE(read_plan(our_plan().dump(), "plan.json", diagnostics, &record));
  CHECK(!record);
  REQUIRE(read_plan(proved_plan().dump(), "plan.json", diagnostics, &record));
  REQUIRE(record);
  CHECK(record->prover == kProverVersion);
  CHECK(record->target == "host");
  CHECK(record->graph_replay);
  CHECK(record->proof.proved);
  CHECK(record->proof.orders == SumOrders{.replicated = true, .tree = true, .exact = true});
  CHECK(record->proof.sums == kProof.sums);
  CHECK(!record->proof.out_of_place);
  CHECK(record->proof.in_place);
  CHECK(!record->proof.keeps_input);
  CHECK(record->proof.rounding == Rounding::each_op);
  CHECK(record->proof.between_calls == BetweenCalls::copies);
}

TEST_CASE("records of version 4 say only whether sums are the same on all ranks") {
  OrderedJson plan = proved_plan();
  OrderedJson& proof = plan["mscclc"]["proof"];
  proof["prover"] = 4;
  proof.erase("orders");
  proof["deterministic"] = true;
  Diagnostics diagnostics;
  std::optional<ProofRecord> record;
  REQUIRE(read_plan(testing::rehash(plan.dump()), "plan.json", diagnostics, &record));
  CHECK(record->proof.orders == SumOrders{.replicated = true});
}

TEST_CASE("a record that does not say what sums are is read") {
  OrderedJson plan = proved_plan();
  plan["mscclc"]["proof"].erase("sums");
  Diagnostics diagnostics;
  std::optional<ProofRecord> record;
  REQUIRE(read_plan(testing::rehash(plan.dump()), "plan.json", diagnostics, &record));
  CHECK(record->proof.sums.empty());
}

TEST_CASE("the record of a proof is read strictly") {
  const OrderedJson right = proved_plan();
  const std::vector<Case> cases = {
      {{{"/mscclc/proof/target", "\"sm_90\""}},
       "mscclc.proof.target: the proof is for the target 'sm_90', the plan for 'host'"},
      {{{"/mscclc/proof/prover", ""}}, "mscclc.proof: key 'prover' is missing"},
      {{{"/mscclc/proof/by", "1"}}, "mscclc.proof: unknown key 'by'"},
      {{{"/mscclc/proof/in_place", "1"}},
       "mscclc.proof.in_place: expected a boolean, found a number"},
      {{{"/mscclc/proof/sums", "1"}}, "mscclc.proof.sums: expected a string, found a number"},
      {{{"/mscclc/proof/rounding", "\"twice\""}}, "mscclc.proof.rounding: unknown word 'twice'"},
      {{{"/mscclc/proof/between_calls", "\"once\""}},
       "mscclc.proof.between_calls: unknown word 'once'"},
      {{{"/mscclc/proof/orders", "[\"rank\"]"}}, "mscclc.proof.orders[0]: unknown word 'rank'"},
      {{{"/mscclc/proof/orders", "[\"tree\", \"tree\"]"}},
       "mscclc.proof.orders[1]: a second 'tree'"},
      {{{"/mscclc/proof/orders", ""}}, "mscclc.proof: 'orders' is missing"},
      {{{"/mscclc/proof/deterministic", "true"}},
       fmt::format("mscclc.proof.deterministic: no record of version {} has it", kProverVersion)},
      {{{"/mscclc/proof", "1.5"}}, "mscclc.proof: expected an object, found a real number"},
  };
  check_all(right, cases);
}

TEST_CASE("what is not JSON") {
  CHECK(read_errors("") ==
        ": not JSON: parse error at line 1, column 1: syntax error while parsing value - "
        "unexpected end of input; expected '[', '{', or a literal");
  CHECK(read_errors("[]") == ": expected an object, found an array");
  CHECK(read_errors("{\"name\":1,\"name\":2}") == ": key 'name' appears twice");
  CHECK(read_errors("{\"gpus\":[{\"x\":1,\"y\":2,\"x\":3}]}") == "gpus[0]: key 'x' appears twice");
  CHECK(read_errors(std::string(40, '[')).find("nested too deep") != std::string::npos);
}

TEST_CASE("what a file says at length is not repeated at length") {
  const std::string x(100000, 'x');
  for (const std::string& plan :
       {"{\"" + x + "\":1}", "{\"" + x + "\":1,\"" + x + "\":2}",
        "{\"" + x + "\":" + std::string(40, '['), "{\"collective\":\"" + x + "\"}",
        "{\"name\":1" + std::string(100000, '0') + "}", "\"" + x}) {
    const std::string said = read_errors(plan);
    CHECK(!said.empty());
    CHECK(said.size() < 1500);
  }
}

TEST_CASE("a plan of MSCCL++ becomes IR") {
  Diagnostics diagnostics;
  const auto program = read_plan(mscclpp_plan().dump(), "p", diagnostics);
  REQUIRE(program);
  CHECK(program->foreign);
  CHECK(program->contract.even_only);
  CHECK(program->contract.in_place == InPlace::no);
  const std::string text = print_ir(*program);
  // Names are made up; packets and plain data of scratch are two buffers; the plain source of a
  // packet sum comes last; the reduction is a sum.
  CHECK(text.find(R"(rank 0 {
  buffer scratch[2]
  buffer packets[2] packets: LL16
  channel mem[0] = memory(1) to mem[0]
  channel mem[1] = memory(1) to mem[1]
  channel port[0] = port(1) to port[0]
  channel sw[0] = switch(0..2)
  semaphore sem[0]
  semaphore sem[1] = 1

  tb 0 {
    put_packets mem[0].packets[0] <- input[0]
    reduce_packets output[0] <- packets[0], input[0] op: sum
    barrier 0..2
  }
)") != std::string::npos);
}

TEST_CASE("a plan of MSCCL++ may have packets below its plain scratch") {
  OrderedJson plan = mscclpp_plan();
  for (const Change& change : packets_first("2")) apply(plan, change);
  Diagnostics diagnostics;
  const auto program = read_plan(plan.dump(), "p", diagnostics);
  REQUIRE(program);
  // A packet chunk has the bytes of two: what no op names is left for them.
  CHECK(print_ir(*program).find("rank 0 {\n  buffer packets[2] packets: LL16\n"
                                "  buffer scratch[2]\n") != std::string::npos);
}

}  // namespace mscclc

#undef BLOCK
#undef IN_BLOCK
#undef EXTRA
#undef IN_EXTRA
