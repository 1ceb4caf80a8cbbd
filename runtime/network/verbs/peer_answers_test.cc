#include "runtime/network/verbs/peer_answers.h"

#include <catch2/catch.hpp>
#include <cstring>

namespace mscclc::verbs {
namespace {

ControlMessage answer_of(ControlMessage::What what, uint64_t number) {
  ControlMessage made{.what = what, .body = Bytes(sizeof number)};
  std::memcpy(made.body.data(), &number, sizeof number);
  return made;
}

TEST_CASE("a peer answers how many messages it has carried out, once each") {
  PeerAnswers answers;
  CHECK(answers.has_carried_out(0));
  CHECK_FALSE(answers.take(answer_of(ControlMessage::flushed, 1)));  // not asked
  CHECK(answers.ask_flush(3));
  CHECK_FALSE(answers.ask_flush(3));
  CHECK(answers.ask_flush(5));
  CHECK(answers.take(answer_of(ControlMessage::flushed, 3)));
  CHECK(answers.has_carried_out(3));
  CHECK_FALSE(answers.has_carried_out(4));
  CHECK_FALSE(answers.take(answer_of(ControlMessage::flushed, 3)));
  CHECK_FALSE(answers.take(answer_of(ControlMessage::flushed, 6)));
  CHECK(answers.take(answer_of(ControlMessage::flushed, 5)));
  CHECK(answers.has_carried_out(5));
}

TEST_CASE("a peer answers notes in their order") {
  PeerAnswers answers;
  CHECK_FALSE(answers.awaits_note());
  CHECK_FALSE(answers.take(answer_of(ControlMessage::noted, 1)));
  answers.ask_note();
  answers.ask_note();
  CHECK_FALSE(answers.take(answer_of(ControlMessage::noted, 2)));
  CHECK(answers.take(answer_of(ControlMessage::noted, 1)));
  CHECK(answers.awaits_note());
  CHECK(answers.take(answer_of(ControlMessage::noted, 2)));
  CHECK_FALSE(answers.awaits_note());
  CHECK_FALSE(answers.take(answer_of(ControlMessage::noted, 3)));
}

TEST_CASE("what is no answer, or has no number, answers nothing") {
  PeerAnswers answers;
  CHECK(answers.ask_flush(1));
  CHECK_FALSE(answers.take(answer_of(ControlMessage::note, 1)));
  CHECK_FALSE(answers.take({.what = ControlMessage::flushed, .body = Bytes(3)}));
  CHECK_FALSE(answers.has_carried_out(1));
}

}  // namespace
}  // namespace mscclc::verbs
