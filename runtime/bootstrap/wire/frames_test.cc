// Frames as bytes: what is written is read; nothing else is, and no length is believed.
#include "runtime/bootstrap/wire/frames.h"

#include <catch2/catch.hpp>

namespace mscclc::wire {
namespace {

using Next = FrameReader::Next;

Payload bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// The payload of one whole frame.
Bytes payload_of(const Bytes& frame, FrameKind kind) {
  FrameReader reader(kMaxFromHub);
  reader.feed(frame);
  REQUIRE(reader.next() == Next::frame);
  CHECK(reader.kind() == kind);
  const Bytes payload(reader.payload().begin(), reader.payload().end());
  CHECK(reader.next() == Next::more);
  return payload;
}

Hello hello() {
  Hello h{.rank = 3, .size = 8, .process = 1234, .began = 99, .timeout_ms = 500};
  h.nonce.fill(7);
  h.key.fill(8);
  h.from.fill(3);
  h.to.fill(4);
  h.proof.fill(9);
  return h;
}

/// Every shorter payload, and a longer one, is refused.
template <class Read>
void check_length(const Bytes& payload, Read read) {
  CHECK(read(payload));
  for (size_t n = 0; n < payload.size(); ++n) CHECK_FALSE(read(Payload(payload).first(n)));
  Bytes longer = payload;
  longer.push_back(0);
  CHECK_FALSE(read(longer));
}

TEST_CASE("each frame is read back, and only whole") {
  Challenge challenge;
  challenge.nonce.fill(5);
  challenge.key.fill(6);
  const Bytes c = payload_of(frame(challenge), FrameKind::challenge);
  CHECK(read_challenge(c)->nonce == challenge.nonce);
  CHECK(read_challenge(c)->key == challenge.key);
  check_length(c, read_challenge);

  const Bytes h = payload_of(frame(hello()), FrameKind::hello);
  CHECK(h.size() <= kMaxHello);
  const auto back = read_hello(h);
  REQUIRE(back);
  CHECK(back->rank == 3);
  CHECK(back->size == 8);
  CHECK(back->process == 1234);
  CHECK(back->began == 99);
  CHECK(back->timeout_ms == 500);
  CHECK(back->nonce == hello().nonce);
  CHECK(back->key == hello().key);
  CHECK(back->from == hello().from);
  CHECK(back->to == hello().to);
  CHECK(back->proof == hello().proof);
  check_length(h, read_hello);

  Welcome welcome{
      .timeout_ms = 30000, .silence_ms = 40000, .hub_rank = 2, .process = 77, .began = 88};
  welcome.proof.fill(1);
  const Bytes w = payload_of(frame(welcome), FrameKind::welcome);
  CHECK(read_welcome(w)->timeout_ms == 30000);
  CHECK(read_welcome(w)->silence_ms == 40000);
  CHECK(read_welcome(w)->hub_rank == 2);
  CHECK(read_welcome(w)->process == 77);
  CHECK(read_welcome(w)->began == 88);
  CHECK(read_welcome(w)->proof == welcome.proof);
  check_length(w, read_welcome);

  const Bytes r = payload_of(frame(Refused{Refusal::other_ends}), FrameKind::refused);
  CHECK(read_refused(r)->code == Refusal::other_ends);
  check_length(r, read_refused);

  const Bytes x = payload_of(frame(WaitReport{{1, 7}, "why"}), FrameKind::waits);
  CHECK(read_waits(x)->awaited == std::vector<uint32_t>{1, 7});
  CHECK(read_waits(x)->why == "why");
  check_length(x, read_waits);

  const Bytes f = payload_of(frame(Failure{FailureKind::left, "gone"}), FrameKind::failed);
  CHECK(read_failure(f)->kind == FailureKind::left);
  CHECK(read_failure(f)->why == "gone");
  check_length(f, read_failure);

  const Bytes u = payload_of(give_up_frame("enough"), FrameKind::give_up);
  CHECK(*read_give_up(u) == "enough");
  check_length(u, read_give_up);

  const Bytes g =
      payload_of(frame(Gathered{4, {bytes("a"), {}, bytes("ccc")}}), FrameKind::gathered);
  const auto gathered = read_gathered(g);
  REQUIRE(gathered);
  CHECK(gathered->step == 4);
  REQUIRE(gathered->all.size() == 3);
  CHECK(gathered->all[1].empty());
  CHECK(gathered->all[2].size() == 3);
  check_length(g, read_gathered);

  CHECK(payload_of(frame(FrameKind::goodbye), FrameKind::goodbye).empty());
}

TEST_CASE("a rank's bytes are the rest of the payload") {
  const Bytes g = payload_of(frame(Gather{.step = 9, .name = "load", .data = bytes("data")}),
                             FrameKind::gather);
  const auto gather = read_gather(g);
  REQUIRE(gather);
  CHECK(gather->step == 9);
  CHECK(gather->name == "load");
  CHECK(std::string(gather->data.begin(), gather->data.end()) == "data");
  for (size_t n = 0; n < 16; ++n) CHECK_FALSE(read_gather(Payload(g).first(n)));
}

TEST_CASE("other magic numbers, versions and codes are refused") {
  Bytes c = payload_of(frame(Challenge{}), FrameKind::challenge);
  c[0] ^= 1;
  CHECK_FALSE(read_challenge(c));
  Bytes h = payload_of(frame(hello()), FrameKind::hello);
  h[8] ^= 1;
  CHECK_FALSE(read_hello(h));
  Bytes r = payload_of(frame(Refused{Refusal::other_ends}), FrameKind::refused);
  ++r[0];
  CHECK_FALSE(read_refused(r));
  Bytes f = payload_of(frame(Failure{FailureKind::hang, ""}), FrameKind::failed);
  ++f[0];
  CHECK_FALSE(read_failure(f));
}

TEST_CASE("lengths inside payloads are not believed") {
  Bytes u = payload_of(give_up_frame("enough"), FrameKind::give_up);
  u[3] = 0xff;
  CHECK_FALSE(read_give_up(u));
  Bytes g = payload_of(frame(Gather{.step = 0, .name = "load", .data = {}}), FrameKind::gather);
  g[9] = 0xff;
  CHECK_FALSE(read_gather(g));
  Bytes all = payload_of(frame(Gathered{0, {bytes("a")}}), FrameKind::gathered);
  Bytes ranks = all, length = all;
  ranks[8] = ranks[9] = 0xff;
  CHECK_FALSE(read_gathered(ranks));
  length[14] = 0xff;
  CHECK_FALSE(read_gathered(length));
  Bytes waits = payload_of(frame(WaitReport{{1}, ""}), FrameKind::waits);
  waits[2] = 0xff;
  CHECK_FALSE(read_waits(waits));
}

TEST_CASE("texts that say why are truncated, not refused") {
  const Bytes u = payload_of(give_up_frame(std::string(5000, 'x')), FrameKind::give_up);
  CHECK(read_give_up(u)->size() == kMaxReason);
}

TEST_CASE("what follows a frame can be taken, and is forgotten") {
  FrameReader reader(kMaxHello);
  Bytes stream = frame(FrameKind::ready);
  stream.insert(stream.end(), {1, 2, 3});
  reader.feed(stream);
  REQUIRE(reader.next() == Next::frame);
  CHECK(reader.take_rest() == Bytes{1, 2, 3});
  CHECK(reader.next() == Next::more);
  CHECK(reader.held().empty());
}

TEST_CASE("a stream is split into frames, however it comes") {
  Bytes stream;
  for (const Bytes& f : {frame(hello()), frame(FrameKind::heartbeat), give_up_frame("why")}) {
    stream.insert(stream.end(), f.begin(), f.end());
  }
  for (size_t at_once = 1; at_once <= stream.size(); ++at_once) {
    FrameReader reader(kMaxHello);
    std::vector<FrameKind> kinds;
    for (size_t at = 0; at < stream.size(); at += at_once) {
      reader.feed(Payload(stream).subspan(at, std::min(at_once, stream.size() - at)));
      while (reader.next() == Next::frame) kinds.push_back(reader.kind());
    }
    CHECK(kinds ==
          std::vector<FrameKind>{FrameKind::hello, FrameKind::heartbeat, FrameKind::give_up});
  }
}

// If each moved all that follow it to the front, this would take minutes.
TEST_CASE("frames that come all at once cost no more than one after the other") {
  constexpr size_t kFrames = 2 << 20;
  const Bytes one = frame(FrameKind::heartbeat), last = give_up_frame("why");
  Bytes stream;
  stream.reserve(kFrames * one.size() + last.size());
  for (size_t i = 0; i < kFrames; ++i) stream.insert(stream.end(), one.begin(), one.end());
  stream.insert(stream.end(), last.begin(), last.end());
  FrameReader reader(kMaxHello);
  reader.feed(stream);
  size_t taken = 0;
  while (reader.next() == Next::frame && reader.kind() == FrameKind::heartbeat) ++taken;
  CHECK(taken == kFrames);
  CHECK(read_give_up(reader.payload()) == "why");
  CHECK(reader.held().size() == last.size());
}

TEST_CASE("a frame that is too long or of an unknown kind ends the stream at its head") {
  const auto next = [](const Bytes& head) {
    FrameReader reader(100);
    reader.feed(head);
    return reader.next();
  };
  CHECK(next({2, 0, 0, 0, 100, 0, 0, 0}) == Next::more);
  CHECK(next({2, 0, 0, 0, 101, 0, 0, 0}) == Next::bad);
  CHECK(next({2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}) == Next::bad);
  CHECK(next({0, 0, 0, 0, 0, 0, 0, 0}) == Next::bad);
  CHECK(next({17, 0, 0, 0, 0, 0, 0, 0}) == Next::bad);
  CHECK(next({2, 1, 0, 0, 0, 0, 0, 0}) == Next::bad);
  CHECK(next({'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}) == Next::bad);
}

}  // namespace
}  // namespace mscclc::wire
