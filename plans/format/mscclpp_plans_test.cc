// Every plan of tests/mscclpp_plans: is read, printed, and written again with the same meaning, or
// is refused with the reason.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"

namespace mscclc {
namespace {

using Json = nlohmann::json;

// Plans that are refused, with the message.
const std::map<std::string, std::string> kRefused = {
    {"repo_ef_allreduce_pipeline",
     "gpus[0].output_chunks: error: is 0; MSCCL++'s executor divides by it"},
    {"ut_get_fuse_r2", "gpus[0].output_chunks: error: is 0; MSCCL++'s executor divides by it"},
};

// Plans in which ops get their long names, because MSCCL++'s executor does not always run them
// rightly: which ops, and why.
const std::map<std::string, std::map<std::string, std::string>> kLongNames = {
    // port_packets: sends from a wrong place once a second plan is loaded
    {"da_ar_multinode_r4_tbg2", {{"put_packets", "ppkt"}}},
    // port_source: sends from a wrong place if the caller's buffer lies inside an allocation
    {"mn_ag_r4", {{"put_with_signal_and_flush", "pwsf"}}},
    {"mn_ag_tbg_r4", {{"put_with_signal_and_flush", "pwsf"}}},
    {"mn_rs_r4", {{"put_with_signal", "pws"}}},
    {"mn_send_recv_r4", {{"put_with_signal", "pws"}}},
};

// Plans whose remote buffers are listed in another order, which only their ids show: ours is that
// of the thread blocks, the DSL's that of the calls in the program.
const std::set<std::string> kReordered = {"da_ar_multinode_r4_tbg2", "mn_ag_pkt_r4"};

std::map<std::string, std::string> mscclpp_plans() {
  std::map<std::string, std::string> plans;
  for (const auto& entry : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    if (entry.path().extension() == ".json")
      plans[entry.path().stem()] = read_file(entry.path()).value();
  }
  return plans;
}

bool is_set(const std::string& op) {
  return op == "signal" || op == "wait" || op == "rlxsignal" || op == "rlxwait" || op == "flush";
}

/// Calls `apply(block, op)` for all ops, those in pipelines too.
template <class Apply>
void for_each_op(Json& plan, Apply apply) {
  for (Json& gpu : plan["gpus"]) {
    for (Json& block : gpu["threadblocks"]) {
      std::vector<Json*> lists = {&block["ops"]};
      while (!lists.empty()) {
        Json& ops = *lists.back();
        lists.pop_back();
        for (Json& op : ops) {
          apply(gpu, block, op);
          if (op.contains("ops")) lists.push_back(&op["ops"]);
        }
      }
    }
  }
}

/// Sorts what the format means as sets (MANIFEST.md, 'Comparing').
void sort_sets(Json& plan) {
  for_each_op(plan, [](Json&, Json&, Json& op) {
    if (is_set(op["name"])) std::sort(op["channel_ids"].begin(), op["channel_ids"].end());
  });
  for (Json& gpu : plan["gpus"]) {
    for (Json& buffer : gpu["remote_buffers"]) {
      std::sort(buffer["access_channel_types"].begin(), buffer["access_channel_types"].end());
    }
  }
}

/// Puts what they mean in the place of remote buffer ids, and drops the tables.
void resolve_remotes(Json& plan) {
  for_each_op(plan, [](Json& gpu, Json& block, Json& op) {
    for (const char* side : {"src_buff", "dst_buff"}) {
      if (!op.contains(side)) continue;
      for (Json& ref : op[side]) {
        if (!ref.contains("buffer_id")) continue;
        Json table = Json::array();
        for (const Json& refs : block["remote_buffer_refs"]) {
          if (refs["access_channel_type"] == op["channel_type"]) table = refs["remote_buffer_ids"];
        }
        const Json& buffer =
            gpu["remote_buffers"][table[ref["buffer_id"].get<size_t>()].get<size_t>()];
        ref["buffer_id"] = {buffer["rank"], buffer["type"]};
      }
    }
  });
  for (Json& gpu : plan["gpus"]) {
    std::sort(gpu["remote_buffers"].begin(), gpu["remote_buffers"].end());
    for (Json& block : gpu["threadblocks"]) block.erase("remote_buffer_refs");
  }
}

/// Gives ops with long names their wire names back. Returns the long names met.
std::set<std::string> rename_back(Json& plan, const std::map<std::string, std::string>& names) {
  std::set<std::string> met;
  for_each_op(plan, [&](Json&, Json&, Json& op) {
    const auto found = names.find(op["name"]);
    if (found == names.end()) return;
    met.insert(found->first);
    op["name"] = found->second;
  });
  return met;
}

std::set<std::string> keys_of(const std::map<std::string, std::string>& map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : map) keys.insert(key);
  return keys;
}

std::string peer_errors(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources());
}

}  // namespace

TEST_CASE("all plans of MSCCL++ are there") { CHECK(mscclpp_plans().size() == 45); }

TEST_CASE("plans of MSCCL++ that cannot run are refused with the reason") {
  const auto plans = mscclpp_plans();
  for (const auto& [name, message] : kRefused) {
    Diagnostics diagnostics;
    CHECK_FALSE(read_plan(plans.at(name), name, diagnostics));
    CHECK(peer_errors(diagnostics) == name + ": " + message + "\n");
  }
}

TEST_CASE("plans of MSCCL++ are written again with the same meaning") {
  for (const auto& [name, text] : mscclpp_plans()) {
    if (kRefused.count(name) > 0) continue;
    INFO(name);
    Diagnostics diagnostics;
    const auto program = read_plan(text, name, diagnostics);
    INFO(peer_errors(diagnostics));
    REQUIRE(program);
    CHECK(program->foreign);
    const auto written = write_plan(*program, *find_target("host", diagnostics), diagnostics);
    REQUIRE(written);

    const auto again = read_plan(*written, name, diagnostics);
    INFO(peer_errors(diagnostics));
    REQUIRE(again);
    CHECK(print_ir(*again) == print_ir(*program));
    CHECK(write_plan(*again, *find_target("host", diagnostics), diagnostics) == written);

    Json before = Json::parse(text), after = Json::parse(*written);
    CHECK(after.erase("mscclc") == 1);
    const auto long_names = kLongNames.find(name);
    if (long_names != kLongNames.end()) {
      CHECK(rename_back(after, long_names->second) == keys_of(long_names->second));
    }
    sort_sets(before);
    sort_sets(after);
    CHECK((before == after) == (kReordered.count(name) == 0));
    resolve_remotes(before);
    resolve_remotes(after);
    CHECK(before == after);
  }
}

TEST_CASE("the target of MSCCL++'s executor refuses exactly the plans with long names") {
  for (const auto& [name, text] : mscclpp_plans()) {
    if (kRefused.count(name) > 0) continue;
    INFO(name);
    Diagnostics diagnostics;
    const auto program = read_plan(text, name, diagnostics);
    REQUIRE(program);
    const auto written = write_plan(*program, *find_target("mscclpp", diagnostics), diagnostics);
    INFO(peer_errors(diagnostics));
    CHECK(written.has_value() == (kLongNames.count(name) == 0));
  }
}

TEST_CASE("an op with more operands than MSCCL++'s executor has room for") {
  const auto plans = mscclpp_plans();
  Diagnostics diagnostics;
  const auto program = read_plan(plans.at("ar_2pa_allpairs_r4"), "plan.json", diagnostics);
  REQUIRE(program);
  Program many = *program;
  // Twelve destinations in one op: the executor's arrays have room for ten.
  Op& op = *std::find_if(many.ranks[0].ops.begin(), many.ranks[0].ops.end(),
                         [](const Op& o) { return o.kind == OpKind::read_reduce_send; });
  std::vector<Operand> dsts(many.dsts(op).begin(), many.dsts(op).end());
  const std::vector<Operand> srcs(many.srcs(op).begin(), many.srcs(op).end());
  while (dsts.size() < 12) dsts.push_back(dsts.back());
  many.set_operands(op, dsts, srcs);
  const auto written = write_plan(many, *find_target("host", diagnostics), diagnostics);
  REQUIRE(written);
  CHECK(written->find("\"read_reduce_send\"") != std::string::npos);
  CHECK_FALSE(write_plan(many, *find_target("mscclpp", diagnostics), diagnostics));
}

}  // namespace mscclc
