// Sets of plans: what they share, in which orders they are called, and what is not decided.
#include <deque>

#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::as_written;
using testing::kInCopies;
using testing::kPackets;
using testing::kWithAnswer;
using testing::packet_ring;
using testing::race;
using testing::reduction;

/// A set under test; plans are called p0, p1 …
class Set {
 public:
  Set& add(const std::string& text, std::vector<uint32_t> ranks = {}) {
    const Program& program = programs_.emplace_back(as_written(text));
    Diagnostics diagnostics;
    CHECK(prove(program, diagnostics).proved);
    for (uint32_t r = 0; ranks.size() < program.ranks.size(); ++r) ranks.push_back(r);
    plans_.push_back({&program, "p" + std::to_string(plans_.size()), std::move(ranks)});
    return *this;
  }
  /// "proved", or the first error: "code: message".
  std::string verdict(CallOrder call_order = CallOrder::own) {
    diagnostics_ = {};
    refused_ = {};
    const bool proved = prove_together(plans_, call_order, diagnostics_, &refused_);
    CHECK(proved != diagnostics_.has_errors());
    return proved ? "proved" : diagnostics_.all()[0].code + ": " + diagnostics_.all()[0].message;
  }
  /// The notes of the last error: the order of calls.
  std::string order() const {
    std::string text;
    for (const Note& note : diagnostics_.all().back().notes) text += note.text + "\n";
    return text;
  }

  /// What a witness is looked for in.
  const RefusedCalls& refused() const { return refused_; }

 private:
  std::deque<Program> programs_;
  std::vector<SharedPlan> plans_;
  Diagnostics diagnostics_;
  RefusedCalls refused_;
};

TEST_CASE("a plan together with itself is as it is alone") {
  CHECK(Set()
            .add(reduction("s[1] copies: 2", kInCopies))
            .add(reduction("s[1] copies: 2", kInCopies))
            .verdict() == "proved");
  CHECK(Set()
            .add(reduction("s[1] packets: LL16, copies: 2", kPackets))
            .add(reduction("s[1] packets: LL16, copies: 2", kPackets))
            .verdict() == "proved");
}

TEST_CASE("scratch is shared only by plans that say so") {
  const auto verdict = [](bool first, bool second) {
    return Set()
        .add(reduction("s[1] copies: 2", kInCopies, first))
        .add(reduction("s[1]", kWithAnswer, second))
        .verdict();
  };
  CHECK(verdict(false, false) == "proved");
  CHECK(verdict(true, false) == "proved");
  CHECK(verdict(false, true) == "proved");
  CHECK(verdict(true, true) ==
        "race: race at s[0] of rank 1: nothing orders it and what another plan does to the same "
        "bytes of scratch");
}

TEST_CASE("scratch of one layout is shared chunk by chunk") {
  // The same layout, other slots: nothing is in common.
  const std::string other =
      "put ch.s[1] <- input\nsync\nsignal ch\nwait ch\nsync\nreduce output <- input, s[1]\n";
  CHECK(Set()
            .add(reduction("s[2] copies: 2", kInCopies))
            .add(reduction("s[2] copies: 2", other))
            .verdict() == "proved");
}

TEST_CASE("data must not look like packets of another plan") {
  CHECK(Set()
            .add(reduction("s[1] packets: LL16, copies: 2", kPackets))
            .add(reduction("s[1]", kWithAnswer))
            .verdict() ==
        "shared-slots: 'p0' and 'p1' share scratch, where what one leaves may look like packets of "
        "the other: declare the same buffers, 'align' and largest size in both, or give one of "
        "them scratch of its own");
  const auto refused = [](const std::string& first, const std::string& second) {
    return Set()
        .add(reduction(first, kPackets))
        .add(reduction(second, kPackets))
        .verdict()
        .starts_with("shared-slots: ");
  };
  // Flags of LL8 and LL16 stand in the same words, but not for the same chunks.
  CHECK(refused("s[1] packets: LL16, copies: 2", "s[1] packets: LL8, copies: 2"));
  CHECK(refused("s[1] packets: LL16, copies: 2", "s[2] packets: LL16, copies: 2"));
  CHECK(refused("s[1] packets: sentinel, copies: 2", "s[1] packets: sentinel, copies: 3"));
}

TEST_CASE("scratch of another 'align' or largest message lies elsewhere") {
  const auto with = [](const std::string& line, const std::string& body = kInCopies,
                       const std::string& packets = "") {
    std::string text = reduction("s[1] " + packets + "copies: 2", body);
    return text.replace(text.find("launch "), 7, line);
  };
  const std::string plain = with("launch ");
  for (const std::string line : {"launch align: 32, ", "select sizes: 0..1MiB\nlaunch "}) {
    CHECK(Set().add(with(line)).add(with(line)).verdict() == "proved");
    CHECK(Set().add(plain).add(with(line)).verdict().starts_with("race: "));
    CHECK(Set()
              .add(with("launch ", kPackets, "packets: LL16, "))
              .add(with(line, kPackets, "packets: LL16, "))
              .verdict()
              .starts_with("shared-slots: "));
  }
  // Where only small messages begin does not matter.
  CHECK(Set().add(plain).add(with("select sizes: 1KiB..\nlaunch ")).verdict() == "proved");
}

TEST_CASE("the count of calls is one for all") {
  Set set;
  set.add(
         "program t\ncollective allgather(ranks: 3)\nrank r in 0..3 {\n  let others = 0..3 except "
         "r\n"
         "  buffer s[others] packets: LL16, copies: 2\n  channel ch[p in others] = memory(p)\n"
         "  tb 0 {\ncopy output[r] <- input\nfor p in others { put_packets ch[p].s[r] <- input }\n"
         "for p in others { unpack_packets output[p] <- s[p] }\n}\n}\n")
      .add(
          "program t\ncollective broadcast(ranks: 3, root: 0)\nrank 0 {\n"
          "  channel ch[p in 1..3] = memory(p)\n  tb 0 {\ncopy output <- input\n"
          "for p in 1..3 { wait ch[p] relaxed\nsync\nput ch[p].output <- input\nsync\n"
          "signal ch[p] }\n}\n}\nrank r in 1..3 {\n  channel ch = memory(0)\n  tb 0 {\n"
          "signal ch relaxed\nwait ch\n}\n}\n");
  CHECK(set.verdict().starts_with("race: race at s["));
  CHECK(set.order() == "every rank: p0, p1, p0\n");
}

TEST_CASE("a ring in two copies of sentinel slots, among other plans") {
  const std::string ring = packet_ring("3", "sentinel", 2, true);
  CHECK(Set().add(ring).add(ring).verdict() == "proved");
  CHECK(Set().add(ring).add(ring, {1, 2, 0}).verdict() == "proved");
  // A plan over two of its ranks: the third makes fewer calls, and takes other copies.
  const std::string two = reduction("s[1] packets: sentinel, copies: 2", kPackets, false);
  CHECK(Set().add(ring).add(two, {0, 1}).verdict(CallOrder::one) ==
        "call-counts: rank 1 makes calls of 'p1' and rank 2 does not, so that their counts of "
        "calls differ, by which 'p0' chooses copies");
}

TEST_CASE("marks of packets agree where ranks make the same calls") {
  // No op waits for these packets, so that in two calls nothing goes wrong.
  const std::string unread =
      "program t\ncollective custom(ranks: 2, input: 1, output: 1)\nrank 0 {\n"
      "  channel ch = memory(1)\n  tb 0 { put_packets ch.s[0] <- input[0] ; wait ch }\n}\n"
      "rank 1 {\n  buffer s[1] packets: LL16\n  channel ch = memory(0)\n"
      "  tb 0 { signal ch }\n}\n";
  const std::string alone =
      "program t\ncollective custom(ranks: 1, input: 1, output: 1)\nrank 0 {\n"
      "  tb 0 { copy output[0] <- input[0] }\n}\n";
  CHECK(Set().add(unread).add(unread).verdict() == "proved");
  CHECK(Set().add(unread).add(alone, {2}).verdict() == "proved");
  CHECK(Set().add(unread).add(alone, {1}).verdict() ==
        "call-counts: rank 1 makes calls of 'p1' and rank 0 does not, so that their counts of "
        "calls differ, by which 'p0' marks packets");
}

TEST_CASE("a wait that takes the signal of an earlier call may meet a relaxed one") {
  const auto plan = [](const std::string& rank_0, const std::string& rank_1) {
    const std::string head = " {\n  buffer box[1]\n  channel m = memory(";
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1)\n"
           "launch reuse_scratch: true\nrank 0" +
           head + "1)\n  channel net = port(1)\n  tb 0 {\n" + rank_0 + "  }\n}\nrank 1" + head +
           "0)\n  channel net = port(0) credits: 1\n  tb 0 {\n" + rank_1 + "  }\n}\n";
  };
  // The first fills the box, the second touches it: its wait takes the signal of the first, or of a
  // plan that has been called in between.
  const std::string fills = plan("wait m\nsync\nput net.box[0] <- input\nsignal net\nflush net\n",
                                 "wait net\nsync\nsignal m\n");
  const std::string touches = plan("signal net\n", "wait net\nsync\ncopy box[0] <- input\n");
  CHECK(Set().add(fills).add(touches).verdict() == "proved");
  const std::string between = plan("signal net\n", "wait net relaxed\n");
  CHECK(Set().add(fills).add(touches).add(between).verdict() == "proved");
  const std::string relaxed = plan("signal net relaxed\n", "wait net relaxed\n");
  CHECK(Set().add(fills).add(relaxed).add(touches).verdict() ==
        "shared-credits: plans share channel 'net' of rank 1, which begins with credits: its waits "
        "may take a relaxed signal of one plan or one of another that is not: make all 'relaxed', "
        "or none");
  CHECK(Set().add(relaxed).add(relaxed).verdict() == "proved");
}

TEST_CASE("a sentinel slot that a port sends on shares no place with another plan's chunks") {
  // Slot 1 of two copies lies where slot 2 of the other plan may lie.
  const auto plan = [](const std::string& buffers, const std::string& receiver,
                       const std::string& sender, const std::string& rank) {
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1)\nensure output[0] at " +
           rank + " = input[0] at 1\nselect dtypes: [f32]\nlaunch reuse_scratch: true\nrank 0 {\n" +
           buffers + "  channel ch = port(1)\n  channel m = memory(1)\n  tb 0 {\n" + receiver +
           "  }\n}\nrank 1 {\n" + buffers +
           "  channel ch = port(0)\n  channel m = memory(0)\n  tb 0 {\n" + sender + "  }\n}\n";
  };
  const std::string sends_on =
      plan("buffer s[1] packets: sentinel, copies: 2\n", "read_put_packets ch.s[0] <- s[0]\n",
           "put_packets m.s[0] <- input[0]\nunpack_packets output[0] <- s[0]\n", "1");
  const std::string takes =
      plan("buffer s[2] packets: sentinel\n", "unpack_packets output[0] <- s[1]\nsync\nsignal m\n",
           "put_packets m.s[1] <- input[0]\nwait m\nsync\n", "0");
  CHECK(Set().add(sends_on).add(takes).verdict().starts_with("shared-slots: "));
}

/// Every rank of a group hands something on to every other.
std::string exchange_of(uint32_t ranks) {
  return "program t\ncollective allgather(ranks: " + std::to_string(ranks) + ")\nrank r in 0.." +
         std::to_string(ranks) + " {\n  let others = 0.." + std::to_string(ranks) +
         " except r\n  channel ch[p in others] = memory(p)\n  tb 0 {\n"
         "copy output[r] <- input\nfor p in others { signal ch[p] relaxed }\n"
         "for p in others { wait ch[p] relaxed }\nsync\n"
         "for p in others { put ch[p].output[r] <- input }\nsync\n"
         "for p in others { signal ch[p] }\nfor p in others { wait ch[p] }\n}\n}\n";
}

TEST_CASE("groups of ranks that overlap in one way") {
  CHECK(Set().add(exchange_of(2), {0, 1}).add(exchange_of(2), {2, 3}).verdict() == "proved");
  CHECK(Set().add(exchange_of(2), {0, 1}).add(exchange_of(2), {1, 2}).verdict() == "proved");
  // The same ranks, numbered otherwise: all call them in one order.
  CHECK(Set().add(exchange_of(3), {0, 1, 2}).add(exchange_of(3), {2, 1, 0}).verdict() == "proved");
}

TEST_CASE("groups of ranks in a circle") {
  Set circle;
  circle.add(exchange_of(2), {0, 1}).add(exchange_of(2), {1, 2}).add(exchange_of(2), {2, 0});
  CHECK(circle.verdict() == "stuck: ranks wait for each other forever");
  CHECK(circle.order() == "rank 0: p2, p0\nrank 1: p0, p1\nrank 2: p1, p2\n");
  CHECK(circle.verdict(CallOrder::one) == "proved");
  // Two ranks in common are a circle, too.
  CHECK(Set().add(exchange_of(3), {0, 1, 2}).add(exchange_of(3), {1, 2, 3}).verdict() ==
        "stuck: ranks wait for each other forever");
}

TEST_CASE("a circle in which nothing goes wrong is not decided") {
  const std::string alone =
      "program t\ncollective sendrecv(ranks: 2, shift: 0)\n"
      "rank r in 0..2 {\n  tb 0 {\ncopy output <- input\n}\n}\n";
  CHECK(Set().add(alone, {0, 1}).add(alone, {1, 2}).verdict() == "proved");
  CHECK(
      Set().add(alone, {0, 1}).add(alone, {1, 2}).add(alone, {2, 0}).verdict() ==
      "undecided: not decided: groups of ranks overlap in more than one way: ranks may call these "
      "plans in orders that do not agree");
}

TEST_CASE("plans over the same ranks are called in one order, even where others are not") {
  const std::string alone =
      "program t\ncollective sendrecv(ranks: 2, shift: 0)\n"
      "rank r in 0..2 {\n  tb 0 {\ncopy output <- input\n}\n}\n";
  // Over one channel these two would take each other's signals.
  CHECK(Set()
            .add(exchange_of(2), {0, 1})
            .add(exchange_of(2), {1, 0})
            .add(alone, {1, 2})
            .add(alone, {2, 0})
            .verdict()
            .starts_with("undecided: "));
}

TEST_CASE("what is refused is named by rank, call and op of the plan") {
  Set set;
  set.add(reduction("s[1] copies: 2", kInCopies)).add(reduction("s[1]", kWithAnswer));
  CHECK(set.verdict().starts_with("race: "));
  const RefusedCalls& refused = set.refused();
  CHECK(refused.order == std::vector<std::vector<uint32_t>>{{0, 1, 0}, {0, 1, 0}});
  REQUIRE(refused.unordered.size() == 2);
  const auto text = [](const Unordered::OpInCall& p) {
    return "rank " + std::to_string(p.rank) + " call " + std::to_string(p.call) + " op " +
           std::to_string(p.op);
  };
  // The put of p1 in call 1, and the reduction of p0 in call 0, which the other rank does.
  const Unordered &a = refused.unordered[0], &b = refused.unordered[1];
  REQUIRE(a.second);
  REQUIRE(b.second);
  CHECK(text(a.first) + ", " + text(*a.second) == "rank 0 call 1 op 0, rank 1 call 0 op 5");
  CHECK(text(b.first) + ", " + text(*b.second) == "rank 0 call 0 op 5, rank 1 call 1 op 0");
}

TEST_CASE("too many orders of calls are not looked at") {
  Set set;
  const std::string copies = reduction("s[1] copies: 13", kInCopies, false);
  CHECK(set.add(copies).verdict() == "proved");
  CHECK(set.add(copies).verdict() ==
        "undecided: not decided: 2 plans with 13 copies of scratch have too many orders of calls");
}

/// Rank 0 hands its input to rank 1 through a box of so many copies, and may be as many calls ahead
/// as it has credits.
std::string hand_over(uint32_t copies, uint32_t credits) {
  return "program t\ncollective broadcast(ranks: 2, root: 0, inplace: false)\n"
         "launch reuse_scratch: true\n"
         "rank 0 {\n  buffer box[1] copies: " +
         std::to_string(copies) + "\n  channel net = port(1) credits: " + std::to_string(credits) +
         "\n  tb 0 {\ncopy box[0] <- input\nsync\nput net.box[0] <- box[0]\nsignal net\n"
         "copy output <- input\nwait net relaxed\n}\n}\n"
         "rank 1 {\n  buffer box[1] copies: " +
         std::to_string(copies) +
         "\n  channel net = port(0)\n  tb 0 {\nsignal net relaxed\nwait net\nsync\n"
         "copy output <- box[0]\n}\n}\n";
}

TEST_CASE("channels with credits: what a plan's wait takes another plan may have given") {
  CHECK(Set().add(hand_over(3, 1)).add(hand_over(3, 1)).verdict() == "proved");
  CHECK(Set().add(hand_over(4, 2)).add(hand_over(4, 2)).verdict() == "proved");
  // Nothing in the calls of the other plan says that rank 1 has read the box of the call before.
  const std::string other =
      "program t\ncollective custom(ranks: 2, input: 1, output: 1)\nlaunch reuse_scratch: true\n"
      "rank r in 0..2 {\n  buffer box[1] copies: 3\n  tb 0 { copy output <- input }\n}\n";
  CHECK(Set().add(hand_over(3, 1)).add(other).verdict().starts_with("race: "));
}

TEST_CASE("plans that begin a channel with different credits") {
  const std::string other =
      "program t\ncollective custom(ranks: 2, input: 1, output: 1)\nrank r in 0..2 {\n"
      "  channel also = port(1 - r)\n  tb 0 {\nsignal also relaxed\nwait also relaxed\n}\n}\n";
  CHECK(Set().add(hand_over(3, 1)).add(other).verdict() ==
        "shared-credits: plans share channel 'also' of rank 0, which begins with credits: 1 in one "
        "of them, and with credits: 0 in another");
  CHECK(Set().add(hand_over(3, 0)).add(other).verdict() == "proved");
}

TEST_CASE("sentinel slots of two widths are empty in two ways") {
  const auto with = [](const std::string& dtypes) {
    std::string text = reduction("s[1] packets: sentinel, copies: 2", kPackets);
    return text.insert(text.find("launch"), "select dtypes: [" + dtypes + "]\n");
  };
  CHECK(Set().add(with("f32")).add(with("f32")).verdict() == "proved");
  CHECK(Set().add(with("f16")).add(with("bf16")).verdict() == "proved");
  CHECK(Set().add(with("f32")).add(with("f16")).verdict() ==
        "shared-slots: 'p0' and 'p1' share sentinel slots, which are empty in another way for "
        "elements of 2 and of 4 bytes: 'select dtypes' of one width in both, or give one of them "
        "scratch of its own");
  CHECK(Set().add(with("f32, f16")).add(with("f32")).verdict().starts_with("shared-slots: "));
}

}  // namespace
}  // namespace mscclc
