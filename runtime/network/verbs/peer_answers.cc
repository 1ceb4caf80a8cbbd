#include "runtime/network/verbs/peer_answers.h"

namespace mscclc::verbs {

bool PeerAnswers::take(const ControlMessage& message) {
  const auto number = number_of(message);
  if (!number) return false;
  if (message.what == ControlMessage::noted) {
    if (!awaits_note() || *number != answered_notes_ + 1) return false;
    ++answered_notes_;
    return true;
  }
  // Messages are counted up: so no answer comes twice.
  if (message.what != ControlMessage::flushed || *number <= flushed_ || *number > asked_) {
    return false;
  }
  flushed_ = *number;
  return true;
}

}  // namespace mscclc::verbs
