// What the prover says of MSCCL++'s plans, and that each refusal is deserved: a schedule on the
// simulator shows it. docs/design/verification.md gives the reasons.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "executor/simulator/schedules/witness.h"
#include "ir/support/read_file.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"

namespace mscclc {
namespace {

const std::set<std::string> kRefused = {
    "ag_nvls_zero_copy_r4_i2", "ag_ring_r4_i2",      "ar_nvls_zero_copy_r4",
    "da_rs_multinode_r4",      "mn_rs_r4",           "mn_send_recv_r4",
    "repo_et_reduce_nvls",     "repo_et_reduce_tbg", "repo_et_reduce_nvls_pipeline",
};

/// By name, those that can be read.
std::map<std::string, Program> mscclpp_plans() {
  std::map<std::string, Program> plans;
  for (const auto& entry : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    if (entry.path().extension() != ".json") continue;
    Diagnostics diagnostics;
    auto program = read_plan(read_file(entry.path()).value(), entry.path(), diagnostics);
    if (program) plans.emplace(entry.path().stem(), std::move(*program));
  }
  return plans;
}

std::vector<Suspect> suspects_of(const std::vector<Unordered>& unordered) {
  std::vector<Suspect> suspects;
  for (const Unordered& pair : unordered) {
    Suspect& s =
        suspects.emplace_back(Suspect{{pair.first.rank, pair.first.op, pair.first.call}, {}});
    if (pair.second) s.second = {pair.second->rank, pair.second->op, pair.second->call};
  }
  return suspects;
}

}  // namespace

TEST_CASE("MSCCL++'s plans are refused for reasons that a witness demonstrates") {
  std::set<std::string> refused;
  for (const auto& [name, program] : mscclpp_plans()) {
    INFO(name);
    Diagnostics diagnostics;
    std::vector<Unordered> unordered;
    if (prove(program, diagnostics, {.unordered = &unordered}).proved) continue;
    refused.insert(name);
    const auto witness = find_witness(program, suspects_of(unordered), {.seconds = 60});
    CHECK(witness);
    if (!witness) continue;
    const RunStatus again = simulate(program, witness->schedule.spec, diagnostics).status;
    CHECK(again == witness->status);
  }
  CHECK(refused == kRefused);
}

}  // namespace mscclc
