// The hub's part of a bootstrap without its sockets: which ranks have joined, at which step each
// is, and what is to be said to which rank. Frames and the clock come from outside (hub.h), so
// tests need neither.
//
// A meeting fails as a whole, once, and then for good: a rank dies, gives up, is late, or is at
// another step than the others. All ranks that are still there learn of it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bootstrap/wait_graph.h"
#include "runtime/bootstrap/wire/frames.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

class RankMeeting {
 public:
  struct Options {
    uint32_t size = 0;                     ///< 0: what the first rank says
    uint32_t hub_rank = wire::kNoRank;     ///< in whose process the hub runs
    uint32_t hub_process = 0;              ///< the only one that may come as that rank; 0: any
    std::chrono::milliseconds timeout{0};  ///< of every step: no rank waits longer
  };
  /// A frame for a rank.
  struct Message {
    uint32_t rank;
    std::shared_ptr<const wire::Bytes> frame;
  };

  explicit RankMeeting(const Options& options) : options_(options) {
    members_.resize(options.size);
  }

  /// Takes in a rank that has proved that it knows the secret. `where`: for messages, "process 12
  /// on 10.0.0.1". false: there is no such rank in this job, or it is here already; the meeting has
  /// failed, as a process that knows the secret is part of the job.
  [[nodiscard]] bool admit(const wire::Hello& hello, const std::string& where, SteadyTime now);
  /// Why a rank has no place that comes when all have come. nullopt: it may be for another hub:
  /// this job is at its end, or the rank's process is here already, and now makes its next
  /// bootstrap. REQUIRES: complete().
  std::optional<wire::Failure> too_late(const wire::Hello& hello, const std::string& where) const;
  /// A rank has heard that it comes too late.
  void turned_away() { ++heard_; }
  void gather(uint32_t rank, const wire::Gather& gather, SteadyTime now);
  void give_up(uint32_t rank, const std::string& why);
  /// Blocks of the rank have given up. The first such report asks all ranks for theirs; the meeting
  /// fails when they have come, or when the patience with those that do not answer is at its end.
  void waits(uint32_t rank, const WaitReport& report, SteadyTime now);
  /// It has heard the question.
  void answer(uint32_t rank);
  /// There can be no such job. The hub's own rank says so: it knows, and does not come.
  void refuse_all(const std::string& why);
  /// The same, as there are two jobs of one name: the ranks of both are to hear it.
  void refuse_both(const std::string& why);
  /// The hub's process cannot go on.
  void give_up_hub(const std::string& why);
  /// The rank said goodbye.
  void leave(uint32_t rank);
  /// Its connection broke, without a goodbye.
  void lose(uint32_t rank, const std::string& why);
  /// It sent what no rank sends.
  void misbehave(uint32_t rank);
  /// What came over its connection is not what it had sent.
  void distrust(uint32_t rank, const std::string& why);
  void tick(SteadyTime now);
  /// How long this rank waits for the others at a step.
  std::chrono::milliseconds patience(const wire::Hello& hello) const;

  /// All ranks have come, whatever became of them.
  bool complete() const { return !members_.empty() && admitted_ == members_.size(); }
  /// As many ranks as the job has, or both jobs have, have come, right or wrong ones, or know
  /// without coming.
  bool all_heard() const { return !members_.empty() && heard_ >= jobs_ * members_.size(); }
  /// All ranks but one have come.
  bool lacks_one() const { return members_.size() > 1 && admitted_ + 1 == members_.size(); }
  /// There is a deadline that tick() must see.
  bool waiting() const { return (deadline_ || graph_) && !failure_; }
  const std::optional<wire::Failure>& failure() const { return failure_; }
  /// Until when the ranks that have come wait for the others. nullopt: none waits, or none did when
  /// the meeting failed.
  std::optional<SteadyTime> deadline() const { return deadline_; }
  /// What is to be sent, in order.
  std::vector<Message> take_messages() { return std::exchange(messages_, {}); }

 private:
  enum class State : uint8_t { absent, present, left, lost };
  struct Member {
    State state = State::absent;
    std::string where;
    uint32_t process = 0;
    std::chrono::milliseconds patience{0};
    bool given = false;     ///< has come to the present step
    bool reported = false;  ///< has said for which ranks it waits
    wire::Bytes data;
  };

  void send_all(const wire::Bytes& frame);
  void fail(wire::FailureKind kind, std::string why);
  void await_others(const Member& member, SteadyTime now);
  void finish_step();
  std::optional<std::string> misfit(const wire::Hello& hello, const std::string& where) const;
  void judge(SteadyTime now);
  std::string describe(uint32_t rank) const;
  std::string missing(std::string_view verb) const;

  const Options options_;
  std::vector<Member> members_;
  uint32_t admitted_ = 0, heard_ = 0;
  uint32_t jobs_ = 1;                   ///< whose ranks come here
  std::optional<SteadyTime> deadline_;  ///< of the present step, once a rank has come to it
  std::chrono::milliseconds limit_{0};  ///< how long that one waits
  uint64_t step_ = 0;
  std::string step_name_;
  uint32_t first_ = 0, given_ = 0;  ///< which rank came first, and how many have come
  uint64_t bytes_ = 0;
  std::optional<uint32_t> left_;    ///< one that has left
  std::optional<WaitGraph> graph_;  ///< since blocks of a rank have given up
  SteadyTime asked_;                ///< when that was
  std::optional<wire::Failure> failure_;
  std::vector<Message> messages_;
};

/// Why an end of a connection that has looked at nothing for so long counts as dead.
std::string asleep_text(SteadyTime::duration time);

/// "30 s", "1.5 s".
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace mscclc
