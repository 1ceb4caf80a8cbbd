// What is written, byte for byte, and what a target refuses.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "ir/verify/verify.h"
#include "plans/format/plan_json.h"
#include "tests/helpers/plans/sample_plan.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using namespace testing;

Target target(const std::string& name) {
  Diagnostics diagnostics;
  return *find_target(name, diagnostics);
}

std::string errors(const Program& program, const Target& target) {
  Diagnostics diagnostics;
  const bool right = verify_structure(program, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(right);
  if (write_plan(program, target, diagnostics)) return "";
  return render_text(diagnostics, Sources());
}

/// Two ranks, one block each: handshake, put, copy, publish.
Program allgather() {
  TestProgram t(2, 1);
  Program& p = t.program;
  p.name = "ag";
  p.split = true;
  p.contract.kind = CollectiveKind::allgather;
  p.files = {"ag.mscl"};
  const uint32_t site = t.site(0, 7, 3, {"r"});
  for (const uint32_t r : {0u, 1u}) {
    p.ranks[r].buffers[kOutput].chunks = 2;
    t.channel(r, ChannelKind::memory, "ch", {1 - r}, 1 - r, 0);
    t.located(t.op_in(r, 0, OpKind::put, {far(0, kOutput, r)}, {local(kInput, 0)}), site, {r});
    t.located(t.op_in(r, 0, OpKind::copy, {local(kOutput, r)}, {local(kInput, 0)}), site, {r});
    t.op_in(r, 0, OpKind::sync, {});
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
    t.op_in(r, 0, OpKind::wait, {end_of(0)});
  }
  return std::move(p);
}

}  // namespace

TEST_CASE("a small plan, byte for byte") {
  Diagnostics diagnostics;
  CHECK(*write_plan(allgather(), target("host"), diagnostics) ==
        R"({"name":"ag","collective":"allgather","protocol":"Simple","inplace":false,)"
        R"("reuse_resources":false,"gpus":[)"
        R"({"id":0,"input_chunks":1,"output_chunks":2,"scratch_chunks":0,"threadblocks":[)"
        R"({"id":0,"ops":[)"
        R"({"name":"put","src_buff":[{"type":"i","index":0,"size":1}],)"
        R"("dst_buff":[{"buffer_id":0,"index":0,"size":1}],"channel_type":"memory"},)"
        R"({"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],)"
        R"("dst_buff":[{"type":"o","index":0,"size":1}]},)"
        R"({"name":"nop"},)"
        R"({"name":"signal","channel_ids":[0],"channel_type":"memory"},)"
        R"({"name":"wait","channel_ids":[0],"channel_type":"memory"}],)"
        R"("channels":[{"channel_type":"memory","channel_ids":[0]}],)"
        R"("remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}]}],)"
        R"("channels":[{"channel_type":"memory","connected_to":[1]}],)"
        R"("remote_buffers":[{"rank":1,"type":"o","access_channel_types":["memory"]}],)"
        R"("semaphores":[]},)"
        R"({"id":1,"input_chunks":1,"output_chunks":2,"scratch_chunks":0,"threadblocks":[)"
        R"({"id":0,"ops":[)"
        R"({"name":"put","src_buff":[{"type":"i","index":0,"size":1}],)"
        R"("dst_buff":[{"buffer_id":0,"index":1,"size":1}],"channel_type":"memory"},)"
        R"({"name":"copy","src_buff":[{"type":"i","index":0,"size":1}],)"
        R"("dst_buff":[{"type":"o","index":1,"size":1}]},)"
        R"({"name":"nop"},)"
        R"({"name":"signal","channel_ids":[0],"channel_type":"memory"},)"
        R"({"name":"wait","channel_ids":[0],"channel_type":"memory"}],)"
        R"("channels":[{"channel_type":"memory","channel_ids":[0]}],)"
        R"("remote_buffer_refs":[{"access_channel_type":"memory","remote_buffer_ids":[0]}]}],)"
        R"("channels":[{"channel_type":"memory","connected_to":[0]}],)"
        R"("remote_buffers":[{"rank":0,"type":"o","access_channel_types":["memory"]}],)"
        R"("semaphores":[]}],)"
        R"("num_threads_per_block":1024,"use_double_scratch_buffer":false,"buffer_alignment":16,)"
        R"("min_message_size":0,"max_message_size":4294967264,)"
        R"("mscclc":{"schema":2,"target":"host",)"
        R"("contract":{"kind":"allgather","ranks":2,"chunks":[1],"in_place":"either",)"
        R"("even_only":false},)"
        R"("select":{"sizes":[0,18446744073709551615],"nodes":[0,18446744073709551615],)"
        R"("gpus_per_node":[0,18446744073709551615],"dtypes":[],"ops":[],"tags":[],)"
        R"("priority":0},)"
        R"("launch":{"instances":1,"policy":"interleaved","fuse":true,"auto_sync":true},)"
        R"("files":["ag.mscl"],"variables":["r"],"sites":[[0,7,3,0]],)"
        R"("ranks":[{"channels":[["ch","memory",1,"peer"]],"loc":[1,1,0,1,0,0,0,0]},)"
        R"({"channels":[["ch","memory",1,"peer"]],"loc":[1,1,1,1,0,0,0,0]}],)"
        R"("hash":"e01f73b30a7a68497714d1fb762b4eb4"}})");
}

TEST_CASE("comments above a program, which move its lines, change no hash") {
  const auto hash_of = [](const Program& program) {
    Diagnostics diagnostics;
    const std::string plan = *write_plan(program, target("host"), diagnostics);
    const size_t at = plan.rfind("\"hash\":");
    REQUIRE(at != plan.npos);
    return plan.substr(at);
  };
  Program p = allgather();
  const std::string before = hash_of(p);
  p.description = "A comment";
  CHECK(hash_of(p) == before);
  for (Site& site : p.sites) site.line += 3;
  CHECK(hash_of(p) == before);
  p.launch.threads = 512;
  CHECK(hash_of(p) != before);
}

TEST_CASE("a sink gets the same bytes, and may stop") {
  Diagnostics diagnostics;
  std::string text;
  const auto append = [&](std::string_view block) {
    text += block;
    return true;
  };
  CHECK(write_plan(allgather(), target("host"), append, diagnostics));
  CHECK(text == *write_plan(allgather(), target("host"), diagnostics));
  CHECK_FALSE(write_plan(
      allgather(), target("host"), [](std::string_view) { return false; }, diagnostics));
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("text that is not UTF-8 cannot be held by a plan") {
  Program p = allgather();
  p.description = "caf\xe9";
  CHECK(errors(p, target("host")) ==
        "error: a name or the description is not UTF-8; a plan cannot hold it\n");
}

TEST_CASE("limits of a target, each with the place of the op") {
  const Program p = sample_plan();
  const auto refusal = [&](uint32_t Target::*limit, uint32_t value) {
    Target t = target("host");
    t.name = "tiny";
    t.*limit = value;
    return errors(p, t);
  };
  CHECK(errors(p, target("host")).empty());
  CHECK(refusal(&Target::max_threads_per_block, 128) ==
        "error: 256 threads per block ('launch threads'); target 'tiny' has at most 128\n");
  CHECK(refusal(&Target::max_blocks, 2) ==
        "error: rank 0 has 3 thread blocks; target 'tiny' runs at most 2 at once\n"
        "note: in 'put_with_signal net.stage[1] <- stage[1]' (rank 0, tb 2)\n");
  CHECK(refusal(&Target::max_ops_per_block, 5)
            .find("6 ops in a thread block; target 'tiny' has at "
                  "most 5\n") != std::string::npos);
  CHECK(refusal(&Target::max_operands_per_op, 1) ==
        "sample.mscl:18:5: error: 2 operands on one side; target 'tiny' has at most 1\n"
        "sample.mscl:18:5: note: when r = 0, p = 1\n"
        "sample.mscl:18:5: note: in 'reduce_packets output[0] <- input[0], slots[0] complete' "
        "(rank 0, tb 0)\n");
  CHECK(refusal(&Target::max_channels_per_op, 1)
            .find("error: 2 channels in an op; target 'tiny' has at most 1\n"
                  "note: in 'signal up[1], down[1] relaxed' (rank 0, tb 2)\n") !=
        std::string::npos);
  CHECK(refusal(&Target::max_channels_per_block, 1)
            .find("error: 2 channels of a kind in a thread block; target 'tiny' has at most 1\n") !=
        std::string::npos);
  CHECK(refusal(&Target::max_channels, 1)
            .find("error: 2 memory channels on rank 0; target 'tiny' has at most 1\n"
                  "note: in 'signal up[1], down[1] relaxed' (rank 0, tb 2)\n") !=
        std::string::npos);
  CHECK(refusal(&Target::max_remote_buffers_per_block, 1).empty());
  CHECK(refusal(&Target::max_semaphores_per_op, 1).empty());
  CHECK(refusal(&Target::max_barriers, 1).empty());
}

TEST_CASE("limits that the sample does not reach") {
  TestProgram t(2, 2);
  t.program.split = true;
  t.program.contract.in_place = InPlace::yes;
  for (const uint32_t r : {0u, 1u}) {
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
    t.semaphore(r, "a", {});
    t.semaphore(r, "b", {});
    t.op_in(r, 0, OpKind::release, {id(0), id(1)});
    t.op_in(r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
    t.op_in(r, 0, OpKind::put, {far(0, kInput, 1)}, {local(kInput, 1)});
    t.op_in(r, 0, OpKind::barrier, {id(0)});
    t.op_in(r, 0, OpKind::barrier, {id(0), id(1)});
    t.op_in(r, 1, OpKind::barrier, {id(0), id(1)});
  }
  Target tiny = target("host");
  tiny.max_semaphores_per_op = tiny.max_remote_buffers_per_block = tiny.max_barriers = 1;
  const std::string text = errors(t.program, tiny);
  CHECK(text.find("2 semaphores in an op; target 'host' has at most 1") != std::string::npos);
  CHECK(text.find("2 remote buffers in a thread block; target 'host' has at most 1") !=
        std::string::npos);
  CHECK(text.find("2 barriers on a rank; target 'host' has at most 1") != std::string::npos);
}

TEST_CASE("blocks of a plan with row functions may share multiprocessors: a call counts them") {
  Program p = sample_plan();
  Target tiny = target("host");
  tiny.max_blocks = 2;
  Diagnostics diagnostics;
  CHECK_FALSE(runs_at_once(p, tiny, diagnostics));
  p.functions.emplace_back();
  CHECK(runs_at_once(p, tiny, diagnostics));
}

TEST_CASE("ops too many for the shared memory of a target") {
  Target tiny = target("host");
  tiny.shared_bytes_per_op = 100;
  tiny.max_shared_bytes = 600;
  CHECK(errors(sample_plan(), tiny).empty());
  tiny.max_shared_bytes = 599;
  CHECK(errors(sample_plan(), tiny)
            .find("error: 600 bytes of shared memory for the ops of a thread block; target 'host' "
                  "has at most 599\n") != std::string::npos);
}

TEST_CASE("chunks that begin where a target's accesses cannot") {
  Target vectors = target("host");
  vectors.vector_bytes = 16;
  Program p = allgather();
  CHECK(errors(p, vectors).empty());
  p.launch.align = 32;
  CHECK(errors(p, vectors).empty());
  p.launch.align = 8;
  CHECK(errors(p, vectors) ==
        "error: chunks begin at multiples of 8 bytes ('launch align'); accesses of target 'host' "
        "need multiples of 16\n");
}

TEST_CASE("messages too large for the offsets of a target") {
  Program p = allgather();
  Target tiny = target("host");
  tiny.max_bytes = 4096;
  CHECK(errors(p, tiny).empty());  // nothing says how large messages get
  p.select.sizes.max = 4096;
  CHECK(errors(p, tiny).empty());
  p.select.sizes.max = 4097;
  CHECK(
      errors(p, tiny) ==
      "ag.mscl:7:3: error: messages of 4097 bytes ('select sizes') reach offsets beyond 4096, the "
      "largest of target 'host'\n"
      "ag.mscl:7:3: note: when r = 1\n"
      "ag.mscl:7:3: note: in 'put ch[0].output[1] <- input[0]' (rank 1, tb 0)\n");
}

TEST_CASE("MSCCL++'s executor is given sizes that it can take") {
  const auto sizes = [](const std::function<void(Program&)>& change) {
    Program p = sample_plan();
    p.select.sizes = {};
    change(p);
    Diagnostics diagnostics;
    const std::string text = *write_plan(p, target("host"), diagnostics);
    const size_t at = text.find("\"min_message_size\"");
    return text.substr(at, text.find(",\"mscclc\"") - at);
  };
  // Four scratch chunks, twice as long for packets: 2^32 - 1 bytes hold eight; a pipeline of one
  // KiB makes 65535 rounds.
  CHECK(sizes([](Program&) {}) == "\"min_message_size\":0,\"max_message_size\":134215680");
  CHECK(sizes([](Program& p) {
          for (Loop& loop : p.loops) loop.unit = 1 << 20;
        }) == "\"min_message_size\":0,\"max_message_size\":1073741792");
  CHECK(sizes([](Program& p) { p.launch.reuse_scratch = true; }) ==
        "\"min_message_size\":0,\"max_message_size\":33554432");
  // Pipelined ops, too: that executor wraps their rounds around in the 16 MiB of a chunk.
  CHECK(sizes([](Program& p) {
          p.launch.reuse_scratch = true;
          for (Loop& loop : p.loops) loop.unit = 1 << 20;
          for (Rank& rank : p.ranks) {
            for (Op& op : rank.ops) op.loop = 0;
          }
        }) == "\"min_message_size\":0,\"max_message_size\":33554432");
  CHECK(sizes([](Program& p) {
          p.select.sizes = {uint64_t{1} << 33, uint64_t{1} << 34};
        }) == "\"min_message_size\":2147483647,\"max_message_size\":134215680");
  // A whole number of granules for each chunk, here 2 chunks of 16 bytes.
  CHECK(sizes([](Program& p) {
          p.select.sizes = {0, 1023};
        }) == "\"min_message_size\":0,\"max_message_size\":992");
}

}  // namespace mscclc
