// The hub's decisions, without sockets and without waiting.
#include "runtime/bootstrap/tcp/meeting.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using wire::FrameKind;

const SteadyTime kStart{};

struct Sent {
  uint32_t rank;
  FrameKind kind;
  std::string why;                    ///< failed
  std::vector<std::string> gathered;  ///< gathered
  bool operator==(const Sent&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sent& sent) {
  return out << "{" << sent.rank << ", kind " << static_cast<int>(sent.kind) << ", " << sent.why
             << "}";
}

wire::Payload bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct TestMeeting : RankMeeting {
  explicit TestMeeting(uint32_t size) : RankMeeting({.size = size, .timeout = 30s}) {}

  std::string come(uint32_t rank, uint32_t size, SteadyTime now = kStart) {
    const bool in = admit({.rank = rank, .size = size}, "process 1 on here", now);
    return in ? "" : failure()->why;
  }
  void all_come(uint32_t size) {
    for (uint32_t r = 0; r < size; ++r) CHECK(come(r, size) == "");
    take_messages();
  }
  void give(uint32_t rank, uint64_t step, std::string_view name, std::string_view data = "",
            SteadyTime now = kStart) {
    gather(rank, {.step = step, .name = name, .data = bytes(data)}, now);
  }
  std::vector<Sent> sent() {
    std::vector<Sent> out;
    for (const Message& message : take_messages()) {
      wire::FrameReader reader(wire::kMaxFromHub);
      reader.feed(*message.frame);
      REQUIRE(reader.next() == wire::FrameReader::Next::frame);
      Sent sent{.rank = message.rank, .kind = reader.kind(), .why = {}, .gathered = {}};
      if (const auto failure = wire::read_failure(reader.payload());
          failure && reader.kind() == FrameKind::failed) {
        sent.why = failure->why;
      }
      if (reader.kind() == FrameKind::gathered) {
        const auto gathered = wire::read_gathered(reader.payload());
        REQUIRE(gathered);
        for (const wire::Payload& data : gathered->all) {
          sent.gathered.emplace_back(data.begin(), data.end());
        }
      }
      out.push_back(std::move(sent));
    }
    return out;
  }
  std::string why() const { return failure() ? failure()->why : ""; }
};

std::vector<Sent> failed(const std::vector<uint32_t>& ranks, const std::string& why) {
  std::vector<Sent> out;
  for (const uint32_t r : ranks) out.push_back({r, FrameKind::failed, why, {}});
  return out;
}

TEST_CASE("when all ranks have come, all hear of it") {
  TestMeeting meeting(2);
  CHECK(meeting.come(1, 2) == "");
  CHECK_FALSE(meeting.complete());
  CHECK(meeting.sent().empty());
  CHECK(meeting.come(0, 2) == "");
  CHECK(meeting.complete());
  CHECK(meeting.sent() ==
        std::vector<Sent>{{0, FrameKind::ready, "", {}}, {1, FrameKind::ready, "", {}}});
  CHECK_FALSE(meeting.waiting());
}

/// Rank 1 of 4 has come, and then this one: what all hear.
std::string misfit(uint32_t rank, uint32_t size) {
  TestMeeting meeting(4);
  CHECK(meeting.come(1, 4) == "");
  const std::string why = meeting.come(rank, size);
  CHECK(meeting.sent() == failed({1}, why));
  CHECK(meeting.failure()->kind == wire::FailureKind::refused);
  CHECK(meeting.come(2, 4) == "");  // a later rank hears it too
  CHECK(meeting.sent() == failed({2}, why));
  CHECK(meeting.come(9, 1) == why);
  return why;
}

TEST_CASE("a rank that cannot be ends the job at once, for all") {
  CHECK(misfit(1, 4) ==
        "rank 1 (process 1 on here) has joined twice: process 1 on here says that it is the same "
        "rank");
  CHECK(misfit(2, 5) == "the job has 4 ranks, rank 2 (process 1 on here) says 5");
  CHECK(misfit(4, 4) == "there is no rank 4 (process 1 on here) in a job of 4 ranks");
  CHECK(misfit(0, 0) == "a job has 1 to 65536 ranks, rank 0 (process 1 on here) says 0");
  CHECK(misfit(0, 65537) == "a job has 1 to 65536 ranks, rank 0 (process 1 on here) says 65537");
}

TEST_CASE("the rank whose process runs the hub is in no other process, even if that comes first") {
  RankMeeting meeting({.size = 2, .hub_rank = 0, .hub_process = 7, .timeout = 30s});
  CHECK_FALSE(meeting.admit({.rank = 0, .size = 2, .process = 8}, "process 8 on here", kStart));
  CHECK(meeting.failure()->why ==
        "rank 0 (process 7), which runs the bootstrap's hub, is there already: process 8 on here "
        "says "
        "that it is the same rank");
  RankMeeting own({.size = 2, .hub_rank = 0, .hub_process = 7, .timeout = 30s});
  CHECK(own.admit({.rank = 0, .size = 2, .process = 7}, "process 7 on here", kStart));
}

TEST_CASE("of two jobs of one name the ranks of both hear it") {
  TestMeeting meeting(2);
  CHECK(meeting.come(0, 2) == "");
  CHECK(meeting.lacks_one());
  meeting.refuse_both("two jobs");
  CHECK(meeting.come(1, 2) == "");
  CHECK(meeting.complete());
  CHECK_FALSE(meeting.all_heard());
  for (const uint32_t rank : {0, 1}) {
    const auto late =
        meeting.too_late({.rank = rank, .size = 2, .process = 9}, "process 9 on here");
    REQUIRE(late);
    CHECK(late->why == "two jobs");
    meeting.turned_away();
  }
  CHECK(meeting.all_heard());
}

TEST_CASE("without a size, the first rank says it") {
  TestMeeting meeting(0);
  CHECK(meeting.come(1, 2) == "");
  CHECK(meeting.come(0, 2) == "");
  CHECK(meeting.complete());
  TestMeeting other(0);
  CHECK(other.come(1, 2) == "");
  CHECK(other.come(0, 3) == "the job has 2 ranks, rank 0 (process 1 on here) says 3");
}

TEST_CASE("a job that cannot be") {
  TestMeeting meeting(3);
  meeting.refuse_all("no such job");
  CHECK(meeting.come(1, 3) == "");
  CHECK(meeting.sent() == failed({1}, "no such job"));
  CHECK(meeting.come(0, 3) == "");
  CHECK_FALSE(meeting.all_heard());
  CHECK(meeting.come(2, 3) == "");
  CHECK(meeting.all_heard());
}

TEST_CASE("the first rank that has waited as long as it would ends the step for all") {
  TestMeeting meeting(3);
  CHECK(meeting.admit({.rank = 0, .size = 3}, "here", kStart));
  CHECK(meeting.deadline() == kStart + 30s);
  CHECK(meeting.admit({.rank = 1, .size = 3, .timeout_ms = 5000}, "here", kStart + 1s));
  CHECK(meeting.deadline() == kStart + 6s);
  meeting.tick(kStart + 5999ms);
  CHECK_FALSE(meeting.failure());
  meeting.tick(kStart + 6s);
  REQUIRE(meeting.failure());
  CHECK(meeting.failure()->why == "rank 2 did not reach the bootstrap within 5 s (2 of 3 did)");
}

TEST_CASE("no rank makes the others wait longer than the hub says") {
  TestMeeting meeting(2);
  CHECK(meeting.admit({.rank = 0, .size = 2, .timeout_ms = 90'000}, "here", kStart));
  CHECK(meeting.deadline() == kStart + 30s);
}

TEST_CASE("a rank that says itself that there is no job is not waited for") {
  RankMeeting meeting({.size = 2, .hub_rank = 0, .timeout = 30s});
  for (int i = 0; i < 2; ++i) meeting.refuse_all("no such job");
  CHECK_FALSE(meeting.all_heard());
  CHECK(meeting.admit({.rank = 1, .size = 2}, "here", kStart));
  CHECK(meeting.all_heard());
}

TEST_CASE("blocks of several ranks have given up: the reports of all make one verdict") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  meeting.waits(0, {{1}, "two blocks waited"}, kStart);
  CHECK(meeting.sent() == std::vector<Sent>{{0, FrameKind::asked, "", {}},
                                            {1, FrameKind::asked, "", {}},
                                            {2, FrameKind::asked, "", {}}});
  CHECK(meeting.waiting());
  meeting.answer(0);
  meeting.answer(1);
  SECTION("all say what they wait for") {
    meeting.waits(1, {{2}, "one block waited"}, kStart + 1s);
    CHECK_FALSE(meeting.failure());
    meeting.give(2, 0, "load a plan");
    CHECK(meeting.failure()->kind == wire::FailureKind::hang);
    CHECK(meeting.why() ==
          "rank 2 (process 1 on here) has not sent what rank 1 waits for\n"
          "rank 0 waits for rank 1: two blocks waited\n"
          "rank 1 waits for rank 2: one block waited\n"
          "rank 2 is at 'load a plan'");
  }
  SECTION("one does not answer") {
    meeting.waits(1, {{2}, "one block waited"}, kStart + 6s);
    meeting.tick(kStart + 9s);  // rank 2 may be stopped for a while
    CHECK_FALSE(meeting.failure());
    meeting.tick(kStart + kReportTime);
    CHECK(meeting.why().starts_with(
        "rank 2 (process 1 on here) does not answer; rank 1 waits for it\n"));
    CHECK(meeting.sent().size() == 3);
  }
  SECTION("one lives and says nothing") {
    meeting.answer(2);
    meeting.tick(kStart + 9s);
    CHECK_FALSE(meeting.failure());
    meeting.tick(kStart + 10s);
    CHECK(meeting.why().starts_with("rank 1 (process 1 on here) has not sent what rank 0 waits"));
  }
  SECTION("one dies meanwhile") {
    meeting.lose(2, "its connection was closed");
    CHECK(meeting.why() == "rank 2 (process 1 on here) has died: its connection was closed");
  }
  SECTION("one leaves in peace") {
    meeting.waits(1, {{2}, "one block waited"}, kStart);
    meeting.leave(2);
    meeting.tick(kStart);
    CHECK(meeting.why().starts_with("rank 2 (process 1 on here) has not sent what rank 1 waits"));
  }
}

TEST_CASE("a hub that cannot go on says so to all") {
  TestMeeting meeting(2);
  meeting.come(1, 2);
  meeting.give_up_hub("no room");
  CHECK(meeting.sent() ==
        failed({1}, "the process of the bootstrap's hub cannot continue: no room"));
}

TEST_CASE("a step gives every rank the bytes of all, in rank order") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  for (uint64_t step = 0; step < 3; ++step) {
    meeting.give(2, step, "x", "two");
    meeting.give(0, step, "x", "");
    CHECK(meeting.sent().empty());
    meeting.give(1, step, "x", "one");
    const std::vector<std::string> all = {"", "one", "two"};
    CHECK(meeting.sent() == std::vector<Sent>{{0, FrameKind::gathered, "", all},
                                              {1, FrameKind::gathered, "", all},
                                              {2, FrameKind::gathered, "", all}});
    CHECK_FALSE(meeting.waiting());
  }
}

TEST_CASE("ranks that do not come are named") {
  TestMeeting meeting(4);
  meeting.tick(kStart + 1000s);  // no rank waits yet
  CHECK(meeting.come(2, 4) == "");
  meeting.tick(kStart + 29s);
  CHECK_FALSE(meeting.failure());
  meeting.tick(kStart + 30s);
  CHECK(meeting.sent() ==
        failed({2}, "ranks 0, 1 and 3 did not reach the bootstrap within 30 s (1 of 4 did)"));
  CHECK(meeting.come(1, 4) == "");  // it comes too late, and hears it
  CHECK(meeting.sent() ==
        failed({1}, "ranks 0, 1 and 3 did not reach the bootstrap within 30 s (1 of 4 did)"));
}

TEST_CASE("ranks that do not come to a step are named") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  meeting.tick(kStart + 1000s);  // between steps, ranks may compute for as long as they like
  CHECK_FALSE(meeting.failure());
  meeting.give(0, 0, "connect", "", kStart + 1000s);
  meeting.give(2, 0, "connect", "", kStart + 1020s);
  CHECK(meeting.waiting());
  meeting.tick(kStart + 1029s);
  CHECK_FALSE(meeting.failure());
  meeting.tick(kStart + 1030s);
  CHECK(meeting.sent() ==
        failed({0, 1, 2}, "rank 1 did not reach 'connect' within 30 s, as rank 0 did"));
}

TEST_CASE("ranks at different steps") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  meeting.give(0, 0, "connect");
  meeting.give(2, 0, "load");
  CHECK(meeting.sent() == failed({0, 1, 2},
                                 "ranks make different calls: rank 2 is at 'load' (step 0), rank 0 "
                                 "at 'connect' (step 0)"));
  CHECK(meeting.failure()->kind == wire::FailureKind::mismatch);
}

TEST_CASE("a rank that dies, at any time") {
  TestMeeting meeting(3);
  SECTION("before all have come") {
    meeting.come(0, 3);
    meeting.come(1, 3);
    meeting.lose(1, "its connection was closed");
    CHECK(meeting.sent() ==
          failed({0}, "rank 1 (process 1 on here) has died: its connection was closed"));
  }
  SECTION("between steps") {
    meeting.all_come(3);
    meeting.lose(1, "its connection was closed");
    CHECK(meeting.sent() ==
          failed({0, 2}, "rank 1 (process 1 on here) has died: its connection was closed"));
  }
  SECTION("in a step, and then another") {
    meeting.all_come(3);
    meeting.give(0, 0, "x");
    meeting.give(1, 0, "x");
    meeting.lose(1, "its connection was closed");
    meeting.lose(2, "its connection was closed");
    CHECK(meeting.sent() ==
          failed({0, 2}, "rank 1 (process 1 on here) has died: its connection was closed"));
    meeting.give(0, 0, "x");
    CHECK(meeting.sent().empty());
  }
}

TEST_CASE("a rank that gives up says why") {
  TestMeeting meeting(2);
  meeting.all_come(2);
  meeting.give_up(1, "no memory");
  CHECK(meeting.sent() == failed({0, 1}, "rank 1 (process 1 on here) has given up: no memory"));
}

TEST_CASE("a rank that leaves in peace") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  SECTION("is no failure as long as no rank needs it") {
    meeting.leave(1);
    CHECK(meeting.sent().empty());
    meeting.tick(kStart + 1000s);
    CHECK_FALSE(meeting.failure());
    meeting.give(2, 0, "x");
    CHECK(meeting.sent() == failed({0, 2}, "rank 1 has left, but rank 2 is at 'x'"));
  }
  SECTION("while others wait for it") {
    meeting.give(2, 0, "x");
    meeting.leave(1);
    CHECK(meeting.sent() == failed({0, 2}, "rank 1 has left, but rank 2 is at 'x'"));
  }
}

TEST_CASE("a rank that leaves before all have come") {
  TestMeeting meeting(3);
  meeting.come(0, 3);
  meeting.come(1, 3);
  meeting.leave(1);
  CHECK(meeting.sent() == failed({0}, "rank 1 has left before all ranks had arrived"));
}

TEST_CASE("what no rank sends") {
  TestMeeting meeting(2);
  const std::string why = "rank 1 (process 1 on here) has sent what no rank sends here";
  SECTION("a step before all have come") {
    meeting.come(1, 2);
    meeting.give(1, 0, "x");
    CHECK(meeting.why() == why);
  }
  SECTION("the same step twice") {
    meeting.all_come(2);
    meeting.give(1, 0, "x");
    meeting.give(1, 0, "x");
    CHECK(meeting.why() == why);
  }
  SECTION("for which ranks it waits, twice") {
    meeting.all_come(2);
    meeting.waits(1, {{0}, "a block waited"}, kStart);
    CHECK(meeting.why() == "");
    meeting.waits(1, {{0}, "a block waited"}, kStart);
    CHECK(meeting.why() == why);
  }
  SECTION("a step that is not the next") {
    meeting.all_come(2);
    meeting.give(1, 1, "x");
    CHECK(meeting.why() == why);
  }
}

TEST_CASE("times") {
  CHECK(seconds_text(30s) == "30 s");
  CHECK(seconds_text(1500ms) == "1.5 s");
}

}  // namespace
}  // namespace mscclc
