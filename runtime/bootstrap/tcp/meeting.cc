#include "runtime/bootstrap/tcp/meeting.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {
namespace {

using wire::FailureKind;

}  // namespace

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

std::string asleep_text(SteadyTime::duration time) {
  return fmt::format("it was stopped, or its machine was, for {}, and the others take it for dead",
                     seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(time)));
}

/// Why a rank is not of this job; nullopt: it is.
std::optional<std::string> RankMeeting::misfit(const wire::Hello& hello,
                                               const std::string& where) const {
  const std::string name = fmt::format("rank {} ({})", hello.rank, where);
  if (hello.size == 0 || hello.size > wire::kMaxRanks) {
    return fmt::format("a job has 1 to {} ranks, {} says {}", wire::kMaxRanks, name, hello.size);
  }
  if (!members_.empty() && hello.size != members_.size()) {
    return fmt::format("the job has {} ranks, {} says {}", members_.size(), name, hello.size);
  }
  if (hello.rank >= hello.size) {
    return fmt::format("there is no {} in a job of {} ranks", name, hello.size);
  }
  if (!members_.empty() && members_[hello.rank].state != State::absent) {
    return fmt::format("{} has joined twice: {} says that it is the same rank",
                       describe(hello.rank), where);
  }
  // Of a second rank 0 that comes before the hub's own.
  if (hello.rank == options_.hub_rank && options_.hub_process != 0 &&
      hello.process != options_.hub_process) {
    return fmt::format(
        "rank {} (process {}), which runs the bootstrap's hub, is there already: {} "
        "says that it is the same rank",
        hello.rank, options_.hub_process, where);
  }
  return std::nullopt;
}

bool RankMeeting::admit(const wire::Hello& hello, const std::string& where, SteadyTime now) {
  ++heard_;
  if (auto why = misfit(hello, where)) {
    fail(FailureKind::refused, std::move(*why));
    return false;
  }
  members_.resize(hello.size);
  Member& member = members_[hello.rank];
  member.state = State::present;
  member.where = where;
  member.process = hello.process;
  member.patience = patience(hello);
  ++admitted_;
  if (failure_) {  // a late rank hears the same as the others
    messages_.push_back({hello.rank, std::make_shared<const wire::Bytes>(wire::frame(*failure_))});
    return true;
  }
  await_others(member, now);
  if (complete()) {
    deadline_.reset();
    send_all(wire::frame(wire::FrameKind::ready));
  }
  return true;
}

// Processes are distinguished by their numbers: with two of one number nothing is said, which is
// safe.
std::optional<wire::Failure> RankMeeting::too_late(const wire::Hello& hello,
                                                   const std::string& where) const {
  if (failure_ && jobs_ > 1) return failure_;
  const auto is_here = [](const Member& m) { return m.state == State::present; };
  if (failure_ || !std::all_of(members_.begin(), members_.end(), is_here)) return std::nullopt;
  const bool known = hello.size == members_.size() && hello.rank < members_.size();
  if (known && members_[hello.rank].process == hello.process) return std::nullopt;
  return wire::Failure{FailureKind::refused,
                       fmt::format("all {} ranks of the job have joined already: {}",
                                   members_.size(), misfit(hello, where).value_or(""))};
}

void RankMeeting::refuse_all(const std::string& why) {
  if (failure_) return;
  const uint32_t own = options_.hub_rank;
  const bool came = own < members_.size() && members_[own].state != State::absent;
  if (own != wire::kNoRank && !came) ++heard_;
  fail(FailureKind::refused, why);
}

void RankMeeting::refuse_both(const std::string& why) {
  jobs_ = 2;
  refuse_all(why);
}

void RankMeeting::gather(uint32_t rank, const wire::Gather& gather, SteadyTime now) {
  if (failure_) return;
  Member& member = members_[rank];
  const bool first_with_wrong_step = given_ == 0 && gather.step != step_;
  if (!complete() || member.given || member.state != State::present || first_with_wrong_step) {
    return misbehave(rank);
  }
  if (given_ == 0) {
    first_ = rank;
    step_name_ = gather.name;
  }
  if (gather.step != step_ || gather.name != step_name_) {
    return fail(
        FailureKind::mismatch,
        fmt::format("ranks make different calls: rank {} is at '{}' (step {}), rank {} at '{}' "
                    "(step {})",
                    rank, gather.name, gather.step, first_, step_name_, step_));
  }
  await_others(member, now);
  member.given = true;
  ++given_;
  bytes_ += gather.data.size();
  if (bytes_ > wire::kMaxGathered) {
    return fail(FailureKind::too_long,
                fmt::format("all ranks' bytes at '{}' are more than {} MiB together", step_name_,
                            wire::kMaxGathered >> 20));
  }
  member.data.assign(gather.data.begin(), gather.data.end());
  if (left_) {
    return fail(FailureKind::left,
                fmt::format("rank {} has left, but rank {} is at '{}'", *left_, rank, step_name_));
  }
  if (given_ == members_.size()) finish_step();
  if (graph_) judge(now);
}

std::chrono::milliseconds RankMeeting::patience(const wire::Hello& hello) const {
  const std::chrono::milliseconds own(hello.timeout_ms);
  return own.count() == 0 ? options_.timeout : std::min(own, options_.timeout);
}

/// A rank has come to the present step. The first that has waited long enough ends it for all.
void RankMeeting::await_others(const Member& member, SteadyTime now) {
  if (deadline_ && *deadline_ <= now + member.patience) return;
  deadline_ = now + member.patience;
  limit_ = member.patience;
}

void RankMeeting::finish_step() {
  wire::Gathered gathered{.step = step_, .all = {}};
  for (const Member& member : members_) gathered.all.push_back(member.data);
  send_all(wire::frame(gathered));
  for (Member& member : members_) {
    member.given = false;
    wire::Bytes().swap(member.data);
  }
  ++step_;
  given_ = 0;
  bytes_ = 0;
  deadline_.reset();
}

void RankMeeting::give_up(uint32_t rank, const std::string& why) {
  fail(FailureKind::gave_up, fmt::format("{} has given up: {}", describe(rank), why));
}

void RankMeeting::waits(uint32_t rank, const WaitReport& report, SteadyTime now) {
  if (failure_) return;
  if (!complete() || std::exchange(members_[rank].reported, true)) return misbehave(rank);
  if (!graph_) {
    graph_.emplace(static_cast<uint32_t>(members_.size()));
    asked_ = now;
    send_all(wire::frame(wire::FrameKind::asked));
  }
  graph_->report(rank, report);
  judge(now);
}

void RankMeeting::answer(uint32_t rank) {
  if (graph_ && !failure_) graph_->answer(rank);
}

void RankMeeting::judge(SteadyTime now) {
  std::vector<std::string> names;
  for (uint32_t r = 0; r < members_.size(); ++r) {
    const Member& member = members_[r];
    if (member.given) graph_->elsewhere(r, fmt::format("is at '{}'", step_name_));
    if (member.state == State::left) graph_->elsewhere(r, "has left");
    names.push_back(describe(r));
  }
  if (!graph_->complete() && now - asked_ < kReportTime) return;
  fail(FailureKind::hang, graph_->verdict(names));
}

void RankMeeting::give_up_hub(const std::string& why) {
  const std::string name =
      options_.hub_rank == wire::kNoRank
          ? "the process of the bootstrap's hub"
          : fmt::format("rank {}, which runs the bootstrap's hub,", options_.hub_rank);
  fail(FailureKind::gave_up, name + " cannot continue: " + why);
}

void RankMeeting::leave(uint32_t rank) {
  members_[rank].state = State::left;
  left_ = rank;
  if (given_ > 0 && !members_[rank].given) {
    fail(FailureKind::left,
         fmt::format("rank {} has left, but rank {} is at '{}'", rank, first_, step_name_));
  } else if (graph_ && !failure_) {
    // judge() hears of it
  } else if (!complete()) {
    fail(FailureKind::left, fmt::format("rank {} has left before all ranks had arrived", rank));
  }
}

void RankMeeting::lose(uint32_t rank, const std::string& why) {
  members_[rank].state = State::lost;
  fail(FailureKind::died, fmt::format("{} has died: {}", describe(rank), why));
}

void RankMeeting::misbehave(uint32_t rank) {
  fail(FailureKind::protocol, fmt::format("{} has sent what no rank sends here", describe(rank)));
}

void RankMeeting::distrust(uint32_t rank, const std::string& why) {
  fail(FailureKind::protocol, fmt::format("{}: {}", describe(rank), why));
}

void RankMeeting::tick(SteadyTime now) {
  if (graph_ && !failure_) judge(now);
  if (failure_ || !deadline_ || now < *deadline_) return;
  const std::string limit = seconds_text(limit_);
  if (complete()) {
    fail(FailureKind::timeout, missing(fmt::format("did not reach '{}' within {}, as rank {} did",
                                                   step_name_, limit, first_)));
  } else {
    fail(FailureKind::timeout,
         missing(fmt::format("did not reach the bootstrap within {}", limit)) +
             fmt::format(" ({} of {} did)", admitted_, members_.size()));
  }
}

/// "ranks 1 and 2 `verb`".
std::string RankMeeting::missing(std::string_view verb) const {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < members_.size(); ++r) {
    const Member& m = members_[r];
    if (complete() ? !m.given : m.state == State::absent) ranks.push_back(r);
  }
  return fmt::format("{} {}", list_ranks(ranks), verb);
}

std::string RankMeeting::describe(uint32_t rank) const {
  return fmt::format("rank {} ({})", rank, members_[rank].where);
}

void RankMeeting::fail(FailureKind kind, std::string why) {
  if (failure_) return;
  failure_ = wire::Failure{kind, std::move(why)};
  send_all(wire::frame(*failure_));
}

void RankMeeting::send_all(const wire::Bytes& frame) {
  const auto shared = std::make_shared<const wire::Bytes>(frame);
  for (uint32_t r = 0; r < members_.size(); ++r) {
    if (members_[r].state == State::present) messages_.push_back({r, shared});
  }
}

}  // namespace mscclc
