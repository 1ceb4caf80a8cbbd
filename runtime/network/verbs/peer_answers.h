// What a lane has asked its far end over their connection (control.h), and what that has answered:
// each question has one answer, and nothing else is answered.
#pragma once

#include <cstdint>

#include "runtime/network/verbs/control.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class PeerAnswers {
 public:
  /// A note has been sent.
  void ask_note() { ++notes_; }
  /// Some note is still to be answered.
  bool awaits_note() const { return answered_notes_ < notes_; }
  /// Have the lane's first `messages` been carried out?
  bool has_carried_out(uint64_t messages) const { return flushed_ >= messages; }
  /// False: the peer has been asked that before.
  bool ask_flush(uint64_t messages) {
    if (asked_ >= messages) return false;
    asked_ = messages;
    return true;
  }
  /// Takes an answer. False: it answers nothing that was asked.
  [[nodiscard]] bool take(const ControlMessage& message);

 private:
  /// Messages that the peer was asked about; known to be carried out.
  uint64_t asked_ = 0, flushed_ = 0;
  uint64_t notes_ = 0, answered_notes_ = 0;
};

}  // namespace mscclc::verbs
