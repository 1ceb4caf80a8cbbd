// The order of sums: the explorer finds in all schedules the bits that the proof claims, and
// refuses mutants that swap two addends, move a rounding, or add up the end of the data in another
// way.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>

#include "passes/prove/prove_test_text.h"
#include "plans/format/library_call.h"
#include "tests/explore/explore.h"
#include "tests/orders/random_sums.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 4;
constexpr SumOrder kOrders[] = {SumOrder::replicated, SumOrder::ranks, SumOrder::tree,
                                SumOrder::exact};

/// All ranks get two chunks of all, as x and z, and add them up: `sums`; rank 1: `sums_of_1`.
std::string two_chunks(const std::string& sums, const std::string& sums_of_1) {
  return fmt::format(R"(program sums
collective allreduce(ranks: {0}, chunks: 2)
rank r in 0..{0} {{
  let others = 0..{0} except r
  buffer s[2 * {0}] packets: LL16, copies: 2
  buffer x[{0}]
  buffer z[{0}]
  buffer y[2]
  channel ch[p in others] = memory(p)
  tb 0 {{
    for p in others {{
      put_packets ch[p].s[2 * r] <- input[0]
      put_packets ch[p].s[2 * r + 1] <- input[1]
    }}
    copy x[r] <- input[0]
    copy z[r] <- input[1]
    for p in others {{
      unpack_packets x[p] <- s[2 * p]
      unpack_packets z[p] <- s[2 * p + 1]
    }}
    sync
    if r == 1 {{
      {2}
    }} else {{
      {1}
    }}
    sync
  }}
}}
)",
                     kRanks, sums, sums_of_1);
}

/// The contracts that the explorer finds kept, in f32 and in bf16; of each it and the prover agree.
std::string kept_by(const Program& program) {
  Diagnostics diagnostics;
  const Proof proof = prove(program, diagnostics);
  INFO(render_text(diagnostics, Sources{}));
  REQUIRE(proof.proved);
  std::string text;
  for (const SumOrder order : kOrders) {
    const LibraryCall call{.kind = CollectiveKind::allreduce,
                           .ranks = static_cast<uint32_t>(program.ranks.size()),
                           .dtype = Dtype::bf16,
                           .order = order};
    const Exploration found = explore(program, {.order = order, .reduced = true});
    INFO(name(order) << ": " << found.reason);
    CHECK((found.verdict == Verdict::right || found.verdict == Verdict::wrong_data));
    const bool keeps = found.verdict == Verdict::right;
    CHECK(keeps == keeps_order(proof, call));
    if (keeps) text += (text.empty() ? "" : " ") + std::string(name(order));
  }
  return text;
}
std::string kept(const std::string& sums, const std::string& sums_of_1) {
  INFO(sums << "\n" << sums_of_1);
  return kept_by(testing::as_written(two_chunks(sums, sums_of_1)));
}
std::string kept(const std::string& sums) { return kept(sums, sums); }

const std::string kFirst = "reduce output[0] <- x[0], x[1], x[2], x[3]\n";
const std::string kTail = "reduce output[1] <- z[0], z[1], z[2], z[3]\n";

TEST_CASE("explorer: sums have the bits that their order gives") {
  CHECK(kept(kFirst + kTail) == "replicated ranks");
  CHECK(kept("reduce output[0] <- x[0], x[1], x[2], x[3] tree\n"
             "reduce output[1] <- z[0], z[1], z[2], z[3] tree\n") == "replicated tree");
  CHECK(kept("reduce output[0] <- x[0], x[1], x[2], x[3] exact\n"
             "reduce output[1] <- z[3], z[1], z[2], z[0] exact\n") == "replicated exact");
}

TEST_CASE("explorer: two addends that change places") {
  const std::string first = "reduce output[0] <- x[1], x[0], x[2], x[3]\n";  // the same bits
  const std::string later = "reduce output[0] <- x[0], x[2], x[1], x[3]\n";
  CHECK(kept(first + kTail) == "replicated ranks");
  CHECK(kept(first + kTail, kFirst + kTail) == "replicated ranks");
  CHECK(kept(later + kTail) == "replicated");
  CHECK(kept(kFirst + kTail, later + kTail) == "");
}

TEST_CASE("explorer: a rounding that is moved") {
  const std::string apart =
      "reduce y[0] <- x[0], x[1]\nsync\nreduce output[0] <- y[0], x[2], x[3]\n";
  CHECK(kept(apart + kTail) == "replicated");
  CHECK(kept(kFirst + kTail, apart + kTail) == "");
}

TEST_CASE("explorer: the end of the data, added up in another way") {
  CHECK(kept(kFirst + "reduce output[1] <- z[0], z[1], z[2], z[3] tree\n") == "replicated");
  CHECK(kept(kFirst + "reduce output[1] <- z[0], z[1], z[2], z[3] exact\n") == "replicated");
  CHECK(kept(kFirst + "reduce y[1] <- z[0], z[1], z[2]\nsync\nreduce output[1] <- y[1], z[3]\n") ==
        "replicated");
  CHECK(kept(kFirst + kTail, kFirst + "reduce output[1] <- z[3], z[2], z[1], z[0]\n") == "");
}

TEST_CASE("explorer: random sums") {
  std::map<std::string, uint32_t> found;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    const std::string text = testing::random_sums(3 + static_cast<uint32_t>(dice.below(2)), dice);
    INFO(text);
    ++found[kept_by(testing::as_written(text))];
  }
  CHECK(found[""] > 10);
  CHECK(found["replicated"] > 10);
  CHECK(found.size() > 4);
}

}  // namespace
}  // namespace mscclc
