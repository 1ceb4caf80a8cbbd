// Sets of plans on the simulator: what the prover refuses is shown wrong there by a schedule,
// which can be written and read again, and what it proves no schedule shows wrong. So both have the
// same notion of what plans share, and of the orders in which they may be called.
#include <deque>

#include "executor/simulator/schedules/witness.h"
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::as_written;
using testing::kInCopies;
using testing::kPackets;
using testing::kWithAnswer;
using testing::packet_ring;
using testing::reduction;

/// A set under test; plans are called p0, p1 …
class Set {
 public:
  Set& add(const std::string& text, std::vector<uint32_t> ranks = {}) {
    const Program& program = programs_.emplace_back(as_written(text));
    for (uint32_t r = 0; ranks.size() < program.ranks.size(); ++r) ranks.push_back(r);
    const std::string name = "p" + std::to_string(plans_.size());
    plans_.push_back({&program, name, ranks});
    placed_.push_back({&program, name, ranks});
    return *this;
  }
  /// What the prover says, "proved" or the code of the first error; and what the simulator
  /// shows, "right", "wrong" or "hung".
  std::string verdict(CallOrder call_order = CallOrder::own) const {
    Diagnostics diagnostics;
    RefusedCalls refused;
    const bool proved = prove_together(plans_, call_order, diagnostics, &refused);
    return (proved ? "proved" : diagnostics.all()[0].code) + ", " + shown(refused);
  }

 private:
  std::string shown(const RefusedCalls& refused) const {
    std::vector<Suspect> suspects;
    for (const Unordered& pair : refused.unordered) {
      const auto place = [](const Unordered::OpInCall& p) {
        return Suspect::OpOfCall{p.rank, p.op, p.call};
      };
      suspects.push_back({place(pair.first), {}});
      if (pair.second) suspects.back().second = place(*pair.second);
    }
    const auto witness = find_witness(placed_, refused.order, suspects, {.seeds = 40});
    if (!witness) return "right";
    const std::string text = write_schedule(witness->schedule);
    Diagnostics diagnostics;
    const auto back = read_schedule(text, "s.json", placed_, diagnostics);
    INFO(text << render_text(diagnostics, Sources()));
    REQUIRE(back);
    CHECK(Simulator(placed_).run(back->spec, diagnostics).status == witness->status);
    return witness->status == RunStatus::hung ? "hung" : "wrong";
  }

  std::deque<Program> programs_;
  std::vector<SharedPlan> plans_;
  std::vector<PlacedPlan> placed_;
};

TEST_CASE("scratch that is not laid out alike") {
  const auto verdict = [](bool first, bool second) {
    return Set()
        .add(reduction("s[1] copies: 2", kInCopies, first))
        .add(reduction("s[1]", kWithAnswer, second))
        .verdict();
  };
  CHECK(verdict(false, false) == "proved, right");
  CHECK(verdict(true, false) == "proved, right");
  CHECK(verdict(true, true) == "race, wrong");
}

TEST_CASE("scratch that is laid out alike") {
  const std::string other =
      "put ch.s[1] <- input\nsync\nsignal ch\nwait ch\nsync\nreduce output <- input, s[1]\n";
  const std::string buffer = "s[2] copies: 2";
  CHECK(Set().add(reduction(buffer, kInCopies)).add(reduction(buffer, other)).verdict() ==
        "proved, right");
  CHECK(Set().add(reduction("s[1]", kWithAnswer)).add(reduction("s[1]", kWithAnswer)).verdict() ==
        "proved, right");
}

TEST_CASE("data that looks like packets of another plan") {
  // One fills a slot with what it reduces, the other has put no packets there yet.
  CHECK(Set()
            .add(reduction("s[1] packets: sentinel, copies: 2", kPackets))
            .add(reduction("s[1]", kWithAnswer))
            .verdict() == "shared-slots, wrong");
  CHECK(Set()
            .add(reduction("s[1] packets: LL16, copies: 2", kPackets))
            .add(reduction("s[1] packets: LL8, copies: 2", kPackets))
            .verdict() == "shared-slots, hung");
}

/// Ranks 0 to 2 swap packets in two copies of their slots.
const std::string kGather =
    "program t\ncollective allgather(ranks: 3)\nrank r in 0..3 {\n  let others = 0..3 except r\n"
    "  buffer s[others] packets: LL16, copies: 2\n  channel ch[p in others] = memory(p)\n"
    "  tb 0 {\ncopy output[r] <- input\nfor p in others { put_packets ch[p].s[r] <- input }\n"
    "for p in others { unpack_packets output[p] <- s[p] }\n}\n}\n";

TEST_CASE("the count of calls is one for all") {
  const std::string broadcast =
      "program t\ncollective broadcast(ranks: 3, root: 0)\nrank 0 {\n"
      "  channel ch[p in 1..3] = memory(p)\n  tb 0 {\ncopy output <- input\n"
      "for p in 1..3 { wait ch[p] relaxed\nsync\nput ch[p].output <- input\nsync\n"
      "signal ch[p] }\n}\n}\nrank r in 1..3 {\n  channel ch = memory(0)\n  tb 0 {\n"
      "signal ch relaxed\nwait ch\n}\n}\n";
  CHECK(Set().add(kGather).add(broadcast).verdict() == "race, hung");
}

/// Every rank of a group hands something on to every other, over channels of some kind.
std::string exchange_of(uint32_t ranks, const std::string& kind = "memory") {
  const std::string flush = kind == "port" ? "for p in others { flush ch[p] }\n" : "";
  return "program t\ncollective allgather(ranks: " + std::to_string(ranks) + ")\nrank r in 0.." +
         std::to_string(ranks) + " {\n  let others = 0.." + std::to_string(ranks) +
         " except r\n  channel ch[p in others] = " + kind +
         "(p)\n  tb 0 {\n"
         "copy output[r] <- input\nfor p in others { signal ch[p] relaxed }\n"
         "for p in others { wait ch[p] relaxed }\nsync\n"
         "for p in others { put ch[p].output[r] <- input }\nsync\n"
         "for p in others { signal ch[p] }\nfor p in others { wait ch[p] }\n" +
         flush + "}\n}\n";
}

TEST_CASE("channels are shared") {
  for (const std::string kind : {"memory", "port"}) {
    const std::string text = exchange_of(3, kind);
    CHECK(Set().add(text, {0, 1, 2}).add(text, {2, 1, 0}).verdict() == "proved, right");
    CHECK(Set().add(exchange_of(2, kind), {0, 1}).add(text, {0, 1, 2}).verdict(CallOrder::one) ==
          "proved, right");
  }
  CHECK(Set().add(exchange_of(2), {0, 1}).add(exchange_of(2, "port"), {0, 1}).verdict() ==
        "proved, right");
}

/// Rank 0 hands its input to rank 1 through three boxes, a call ahead of it by a credit; or rank 1
/// says nothing, as if the credit were for every call.
std::string ahead(bool answers) {
  const std::string take = answers ? "wait net relaxed\n" : "";
  const std::string give = answers ? "signal net relaxed\n" : "";
  return "program t\ncollective broadcast(ranks: 2, root: 0, inplace: false)\n"
         "launch reuse_scratch: true\n"
         "rank 0 {\n  buffer box[1] copies: 3\n  channel net = port(1) credits: 1\n  tb 0 {\n"
         "copy box[0] <- input\nsync\nput net.box[0] <- box[0]\nsignal net\n"
         "copy output <- input\n" +
         take + "}\n}\nrank 1 {\n  buffer box[1] copies: 3\n  channel net = port(0)\n  tb 0 {\n" +
         give + "wait net\nsync\ncopy output <- box[0]\n}\n}\n";
}

TEST_CASE("channels with credits are shared") {
  CHECK(Set().add(ahead(true)).add(ahead(true)).verdict() == "proved, right");
  CHECK(Set().add(ahead(true)).add(ahead(false)).verdict() == "race, wrong");
}

TEST_CASE("groups of ranks in a circle") {
  Set circle;
  circle.add(exchange_of(2), {0, 1}).add(exchange_of(2), {1, 2}).add(exchange_of(2), {2, 0});
  CHECK(circle.verdict() == "stuck, hung");
  CHECK(circle.verdict(CallOrder::one) == "proved, right");
  CHECK(Set().add(exchange_of(3), {0, 1, 2}).add(exchange_of(3), {1, 2, 3}).verdict() ==
        "stuck, hung");
}

TEST_CASE("a ring in two copies of sentinel slots") {
  const std::string ring = packet_ring("3", "sentinel", 2, true);
  CHECK(Set().add(ring).add(ring).verdict() == "proved, right");
  CHECK(Set().add(ring).add(ring, {1, 2, 0}).verdict() == "proved, right");
}

TEST_CASE("packets of a group, of which one rank makes more calls than the others") {
  CHECK(Set().add(kGather, {0, 1, 2}).add(exchange_of(2), {2, 3}).verdict() == "call-counts, hung");
}

TEST_CASE("what is not decided has no witness") {
  const std::string alone =
      "program t\ncollective sendrecv(ranks: 2, shift: 0)\n"
      "rank r in 0..2 {\n  tb 0 {\ncopy output <- input\n}\n}\n";
  CHECK(Set().add(alone, {0, 1}).add(alone, {1, 2}).add(alone, {2, 0}).verdict() ==
        "undecided, right");
}

}  // namespace
}  // namespace mscclc
