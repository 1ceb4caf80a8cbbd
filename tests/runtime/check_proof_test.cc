// What is known of a plan before it is loaded, and where from.
#include "runtime/choice/proofs/check_proof.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "plans/format/target.h"
#include "runtime/choice/proofs/claims.h"
#include "runtime/choice/proofs/known_plans.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/choice/proofs/proof_cache.h"
#include "tests/helpers/plans/rehash.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;

/// An empty folder of this test's own.
std::string new_folder(const std::string& name) {
  const char* at = std::getenv("TEST_TMPDIR");
  const std::string folder = fmt::format("{}/{}.{}", at == nullptr ? "/tmp" : at, name, getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  ::chmod(folder.c_str(), 0700);
  return folder;
}

Environment environment(const std::string& cache) {
  return Environment(Environment::Values{{"MSCCLC_PROOF_CACHE", cache}});
}

Program program_of(std::string_view name, const char* ranks = "3") {
  CompiledWorld world(name, {{"R", ranks}});
  REQUIRE(world.errors() == "");
  return world.program();
}

PlanDigest digest_of(const Program& plan) {
  Diagnostics diagnostics;
  const auto digest = plan_digest(plan, diagnostics);
  REQUIRE(digest);
  return *digest;
}

std::string codes(const Diagnostics& diagnostics) {
  std::string all;
  for (const Diagnostic& d : diagnostics.all()) all += d.code + " ";
  return all;
}

/// One wait fewer at rank 0: it does not see that a peer is done.
void weaken(Program& plan) {
  auto& ops = plan.ranks[0].ops;
  for (size_t i = ops.size(); i > 0; --i) {
    if (ops[i - 1].kind != OpKind::wait) continue;
    ops[i - 1].kind = OpKind::sync;
    plan.set_operands(ops[i - 1], {}, {});
    return;
  }
  FAIL("the plan has no wait");
}

TEST_CASE("the library's plans are known to the binary") {
  const std::string folder = new_folder("library");
  REQUIRE(std::system(("tools/library_compiler library --library plans --ranks 2 -o " + folder +
                       " > " + folder + "/said")
                          .c_str()) == 0);
  uint32_t plans = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& file = entry.path();
    if (file.extension() != ".json" || file.filename() == "library.json") continue;
    INFO(file);
    Diagnostics diagnostics;
    std::optional<ProofRecord> record;
    const auto plan = read_shared_plan(read_file(file).value(), file, diagnostics, &record);
    REQUIRE(plan);
    const PlanDigest digest = digest_of(*plan);
    CHECK(plan_digest(plan, diagnostics) ==
          digest);  // as reading has found it, and as writing does
    const auto known = known_proof(digest);
    REQUIRE(known);
    CHECK(*known == record->proof);
    CHECK(check_claims(file, *plan, *record, *known, diagnostics));
    ++plans;
  }
  CHECK(plans > 100);
}

std::shared_ptr<const Program> read_shared(const std::string& json) {
  Diagnostics diagnostics;
  auto plan = read_shared_plan(json, "plan.json", diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(plan);
  return plan;
}

// The keys of a plan may come in another order. That names the plan otherwise, which shows here
// whether a digest comes from reading or from writing.
TEST_CASE("a plan that was read keeps its digest, and no other plan gets it") {
  Diagnostics diagnostics;
  const Program program = program_of("allgather_direct");
  const std::string text = *write_plan(program, builtin_targets().front(), diagnostics);
  const size_t first = text.find(",\"collective\"");
  REQUIRE(text.starts_with("{\"name\":"));
  const std::string name = text.substr(1, first - 1), key = ",\"protocol\"";
  std::string turned = "{" + text.substr(first + 1);
  turned.insert(turned.find(key), "," + name);
  const PlanDigest written = digest_of(program);
  const auto plan = read_shared(text), other = read_shared(testing::rehash(turned));
  CHECK(plan_digest(plan, diagnostics) == written);
  CHECK(digest_of(*other) == written);
  CHECK(plan_digest(other, diagnostics) != written);
  const std::shared_ptr<const Program> alias(other, &program), copy(new Program(*other));
  CHECK(plan_digest(alias, diagnostics) == written);
  CHECK(plan_digest(copy, diagnostics) == written);
}

// Nothing but the program of a plan of MSCCL++'s says what it is.
TEST_CASE("a plan without our extra key is named as it would be written") {
  Diagnostics diagnostics;
  const std::string text =
      *write_plan(program_of("allgather_direct"), builtin_targets().front(), diagnostics);
  const auto plan = read_shared(text.substr(0, text.rfind(",\"mscclc\":")) + "}");
  CHECK(plan->foreign);
  CHECK(plan_digest(plan, diagnostics) == digest_of(*plan));
}

TEST_CASE("a plan that is not right is refused, whatever its file says") {
  Program plan = program_of("allgather_direct");
  const PlanDigest right = digest_of(plan);
  Diagnostics diagnostics;
  CHECK(check_proof(plan, right, environment("/dev/null/none"), diagnostics));
  CHECK(codes(diagnostics) == "");
  weaken(plan);
  const PlanDigest weakened = digest_of(plan);
  CHECK(weakened != right);
  CHECK_FALSE(check_proof(plan, weakened, environment("/dev/null/none"), diagnostics));
  REQUIRE(diagnostics.all().size() >= 2);  // the prover's finding, then what comes of it
  CHECK(diagnostics.all().back().code == "not-proved");
  CHECK(diagnostics.all().back().message ==
        "the plan 'allgather_direct' is not proved right, so it is not loaded");
}

TEST_CASE("every claim that is not proved is false") {
  const Program plan = program_of("allgather_direct");
  Diagnostics diagnostics;
  const auto proved =
      check_proof(plan, digest_of(plan), environment("/dev/null/none"), diagnostics);
  REQUIRE(proved);
  const ProofRecord right = proof_record(plan, *find_target("host", diagnostics), *proved);
  CHECK(check_claims("plan.json", plan, right, *proved, diagnostics));
  const Proof less{.proved = true, .rounding = Rounding::once};
  const auto refused = [&](const ProofRecord& claimed, const Proof& of) {
    Diagnostics said;
    CHECK_FALSE(check_claims("plan.json", plan, claimed, of, said));
    CHECK(codes(said) == "false-claim ");
    return said.all().at(0).message.substr(
        std::string("'plan.json' claims what is not proved of it: it is not ").size());
  };
  ProofRecord claimed = right;
  claimed.proof = less;
  claimed.proof.orders.replicated = true;
  CHECK(refused(claimed, less) == "adding up alike on all ranks");
  claimed.proof = less;
  claimed.proof.orders.ranks = true;
  CHECK(refused(claimed, less) == "adding in rank order");
  claimed.proof = less;
  claimed.proof.orders.tree = true;
  CHECK(refused(claimed, less) == "adding along the tree");
  claimed.proof = less;
  claimed.proof.orders.exact = true;
  CHECK(refused(claimed, less) == "adding exactly");
  claimed.proof = less;
  claimed.proof.in_place = true;
  CHECK(refused(claimed, less) == "right in place");
  claimed.proof = less;
  claimed.proof.out_of_place = true;
  CHECK(refused(claimed, less) == "right out of place");
  claimed.proof = less;
  claimed.proof.rounding = Rounding::none;
  CHECK(refused(claimed, less) == "rounded as it says");
  claimed.proof = less;
  claimed.proof.sums = "x0 + x1";
  CHECK(refused(claimed, less) == "adding up 'x0 + x1', but otherwise");
  // Under MSCCL++'s executor the host counts calls: with packets a graph may not be replayed.
  const Program packets = program_of("allreduce_1shot");
  claimed.target = "mscclpp";
  claimed.graph_replay = true;
  claimed.proof = less;
  Diagnostics said;
  CHECK_FALSE(check_claims("plan.json", packets, claimed, less, said));
  CHECK(codes(said) == "false-claim ");
}

TEST_CASE("what sums are said to be is compared with what they are") {
  const Program ring = program_of("allreduce_ring");
  Diagnostics diagnostics;
  const auto proved =
      check_proof(ring, digest_of(ring), environment("/dev/null/none"), diagnostics);
  REQUIRE(proved);
  const std::string own = "[x(o) + x(o+1)] + x(o+2), o: which of 3 shares of the message";
  ProofRecord claimed = proof_record(ring, *find_target("host", diagnostics), *proved);
  for (const auto& [sums, right] : {std::pair{own, true}, {"", true}, {"x0 + x1 + x2", false}}) {
    claimed.proof.sums = sums;
    CHECK(check_claims("plan.json", ring, claimed, *proved, diagnostics) == right);
  }
}

TEST_CASE("what the user has proved before is not proved again") {
  const std::string folder = new_folder("cache") + "/mscclc/proofs";
  Program plan = program_of("allgather_direct", "5");
  Diagnostics diagnostics;
  const PlanDigest digest = digest_of(plan);
  const ProofCache cache(folder);
  CHECK_FALSE(cache.find(digest, diagnostics));
  const auto proved = check_proof(plan, digest, environment(folder), diagnostics);
  REQUIRE(proved);
  const auto found = cache.find(digest, diagnostics);
  REQUIRE(found);
  CHECK(*found == *proved);
  weaken(plan);
  CHECK_FALSE(cache.find(digest_of(plan), diagnostics));
  CHECK(codes(diagnostics) == "");
}

TEST_CASE("every claim comes back from the cache") {
  const ProofCache cache(new_folder("claims"));
  Diagnostics diagnostics;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto proof = unpack(static_cast<uint8_t>(byte));
    CHECK(proof.has_value() == ((byte >> 4 & 3) != 3 && byte >> 6 != 3));
    if (!proof) continue;
    const PlanDigest digest = {static_cast<uint8_t>(byte)};
    cache.keep(digest, *proof);
    REQUIRE(cache.find(digest, diagnostics));
    CHECK(*cache.find(digest, diagnostics) == *proof);
  }
}

TEST_CASE("a cache that others may write to is not used") {
  const std::string folder = new_folder("shared");
  const ProofCache cache(folder);
  const PlanDigest digest = {1, 2, 3};
  Diagnostics diagnostics;
  cache.keep(digest, {.proved = true});
  REQUIRE(cache.find(digest, diagnostics));
  for (const mode_t mode : {0770, 0707}) {
    ::chmod(folder.c_str(), mode);
    Diagnostics warned;
    CHECK_FALSE(cache.find(digest, warned));
    CHECK(codes(warned) == "proof-cache ");
    CHECK(warned.all()[0].severity == Severity::warning);
    cache.keep({4, 5, 6}, {.proved = true});
    CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("an entry of the cache that keep() did not write is none") {
  const std::string folder = new_folder("entries");
  const ProofCache cache(folder);
  const PlanDigest digest = {7};
  const std::string entry = folder + "/" + hex(digest);
  Diagnostics diagnostics;
  for (const char* text : {"", "mscclc proof", "mscclc proof xxxx\n", "mscclc proof ffff\n",
                           "mscclc proof 01\n", "mscclc proof 0001\n\n", "mscclc prooF 0001\n"}) {
    std::ofstream(entry) << text;
    INFO(text);
    CHECK_FALSE(cache.find(digest, diagnostics));
  }
  std::ofstream(entry) << "mscclc proof 0001\n";
  CHECK(cache.find(digest, diagnostics));
  fs::rename(entry, folder + "/other");
  fs::create_symlink(folder + "/other", entry);
  CHECK_FALSE(cache.find(digest, diagnostics));
}

TEST_CASE("an entry that is a pipe is not waited for") {
  const std::string folder = new_folder("pipes");
  const PlanDigest digest = {7};
  REQUIRE(::mkfifo((folder + "/" + hex(digest)).c_str(), 0600) == 0);
  Diagnostics diagnostics;
  CHECK_FALSE(ProofCache(folder).find(digest, diagnostics));
}

TEST_CASE("a home that is not there is not made") {
  const std::string home = new_folder("homeless") + "/home";
  Diagnostics diagnostics;
  for (const char* variable : {"HOME", "XDG_CACHE_HOME"}) {
    const auto cache =
        ProofCache::open(Environment(Environment::Values{{variable, home}}), diagnostics);
    REQUIRE(cache);
    cache->keep({9}, {.proved = true});
    CHECK_FALSE(fs::exists(home));
  }
}

TEST_CASE("where the cache is") {
  const auto find_in = [](Environment::Values values, const std::string& folder) {
    fs::create_directories(folder);
    ::chmod(folder.c_str(), 0700);
    Diagnostics diagnostics;
    ProofCache(folder).keep({9}, {.proved = true});
    const auto cache = ProofCache::open(Environment(std::move(values)), diagnostics);
    return cache && cache->find({9}, diagnostics).has_value();
  };
  const std::string at = new_folder("places");
  CHECK(find_in({{"MSCCLC_PROOF_CACHE", at + "/a"}, {"HOME", at}}, at + "/a"));
  CHECK(find_in({{"XDG_CACHE_HOME", at + "/b"}, {"HOME", at}}, at + "/b/mscclc/proofs"));
  CHECK(find_in({{"HOME", at}}, at + "/.cache/mscclc/proofs"));
  CHECK(find_in({{"XDG_CACHE_HOME", "relative"}, {"HOME", at}}, at + "/.cache/mscclc/proofs"));
  CHECK_FALSE(find_in({}, at + "/c"));
  Diagnostics diagnostics;
  CHECK_FALSE(ProofCache::open(environment("\n"), diagnostics));
  CHECK(codes(diagnostics) == "bad-variable ");
}

TEST_CASE("whether a proof is wanted") {
  Diagnostics diagnostics;
  const auto policy = [&](const char* value, std::optional<ProofPolicy> asked = {}) {
    return proof_policy(asked, Environment(Environment::Values{{"MSCCLC_PROOF", value}}),
                        diagnostics);
  };
  CHECK(policy("") == ProofPolicy::require);
  CHECK(policy("require") == ProofPolicy::require);
  CHECK(policy("skip") == ProofPolicy::skip);
  CHECK(policy("skip", ProofPolicy::require) == ProofPolicy::require);
  CHECK(policy("nonsense", ProofPolicy::skip) == ProofPolicy::skip);
  CHECK(codes(diagnostics) == "");
  CHECK_FALSE(policy("Skip"));
  CHECK(diagnostics.all().at(0).message ==
        "MSCCLC_PROOF is 'Skip'; allowed is 'require' or 'skip'");
}

}  // namespace
}  // namespace mscclc
