// The hub's decisions, without sockets and without waiting.
#include "runtime/bootstrap/meeting.h"

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
    const auto refused = admit({.rank = rank, .size = size}, "process 1 on here", now);
    return refused ? refused->why : "";
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
      wire::FrameReader reader(wire::kMostFromHub);
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

TEST_CASE("who does not belong here is refused, and the job goes on") {
  TestMeeting meeting(4);
  CHECK(meeting.come(1, 4) == "");
  CHECK(meeting.come(1, 4) ==
        "rank 1 has come already (process 1 on here); process 1 on here says that it is the same "
        "rank");
  CHECK(meeting.come(2, 5) == "the job has 4 ranks, rank 2 (process 1 on here) says 5");
  CHECK(meeting.come(4, 4) == "there is no rank 4 in a job of 4 ranks");
  CHECK(meeting.come(0, 0) == "a job has 1 to 65536 ranks, rank 0 says 0");
  CHECK(meeting.come(0, 65537) == "a job has 1 to 65536 ranks, rank 0 says 65537");
  CHECK_FALSE(meeting.failure());
  for (const uint32_t r : {0, 2, 3}) CHECK(meeting.come(r, 4) == "");
  CHECK(meeting.complete());
}

TEST_CASE("without a size, the first rank says it") {
  TestMeeting meeting(0);
  CHECK(meeting.come(3, 2) == "there is no rank 3 in a job of 2 ranks");
  CHECK(meeting.come(1, 2) == "");
  CHECK(meeting.come(0, 3) == "the job has 2 ranks, rank 0 (process 1 on here) says 3");
  CHECK(meeting.come(0, 2) == "");
  CHECK(meeting.complete());
}

TEST_CASE("a step gives everyone the bytes of all, in rank order") {
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
  meeting.tick(kStart + 1000s);  // nobody waits yet
  CHECK(meeting.come(2, 4) == "");
  meeting.tick(kStart + 29s);
  CHECK_FALSE(meeting.failure());
  meeting.tick(kStart + 30s);
  CHECK(meeting.sent() ==
        failed({2}, "ranks 0, 1 and 3 did not come to the bootstrap within 30 s (1 of 4 did)"));
  CHECK(meeting.come(1, 4) == "");  // it comes too late, and is told so
  CHECK(meeting.sent() ==
        failed({1}, "ranks 0, 1 and 3 did not come to the bootstrap within 30 s (1 of 4 did)"));
  CHECK(meeting.come(1, 4).starts_with("rank 1 has come already"));
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
        failed({0, 1, 2}, "rank 1 did not come to 'connect' within 30 s, as rank 0 has"));
}

TEST_CASE("ranks at different steps") {
  TestMeeting meeting(3);
  meeting.all_come(3);
  meeting.give(0, 0, "connect");
  meeting.give(2, 0, "load");
  CHECK(meeting.sent() ==
        failed({0, 1, 2}, "rank 2 is at 'load' (step 0), but rank 0 is at 'connect' (step 0)"));
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
  SECTION("is nobody's failure as long as nobody needs it") {
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
  CHECK(meeting.sent() == failed({0}, "rank 1 has left before all ranks had come"));
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
  SECTION("a step that is not the next") {
    meeting.all_come(2);
    meeting.give(1, 1, "x");
    CHECK(meeting.why() == why);
  }
}

TEST_CASE("lists of ranks") {
  CHECK(list_ranks({3}) == "rank 3");
  CHECK(list_ranks({0, 2}) == "ranks 0 and 2");
  std::vector<uint32_t> many(100);
  for (uint32_t r = 0; r < 100; ++r) many[r] = r;
  CHECK(list_ranks(many) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
}

TEST_CASE("times") {
  CHECK(seconds_text(30s) == "30 s");
  CHECK(seconds_text(1500ms) == "1.5 s");
}

}  // namespace
}  // namespace mscclc
