#include "runtime/core/communicator/call/beside.h"

#include <fmt/format.h>

#include <bit>

#include "runtime/core/communicator/call/call_facts.h"

namespace mscclc {
namespace {

bool is_over(const RankGroup& group, RankPatience& patience, uint32_t rank, uint64_t calls) {
  return group.failure->happened() || patience.is_over(rank, calls, RankPatience::Clock::now());
}

CallFacts facts_in(const RankGroup& group, CallRecord record, uint64_t number) {
  record.call = number;
  return {record, group.records.plan_names.find(record.executable)};
}

/// Reports why a call is not launched, and ends the communicator; false.
bool refuse_call(RankGroup& group, const CallBoard::Refusal& refusal, const CallRecord& call,
                 const std::string& text, Diagnostics& diagnostics) {
  if (group.failure->report(diagnostics) != nullptr) return false;
  if (refusal.other) {
    report_differing_calls({group.rank(), facts_in(group, call, call.call), refusal.rank,
                            facts_in(group, *refusal.other, call.call)},
                           "launch", group.buffers.overlaps(), diagnostics);
    group.note_call(text, diagnostics);
  } else {
    diagnostics.error(
        "rank-behind", {},
        fmt::format("rank {} has launched {} calls, and this rank {}, {} of which were other "
                    "ones than the call before: no rank may be further ahead, and that one has "
                    "launched none for {} s",
                    refusal.rank, refusal.calls, call.call - 1, CallBoard::kRoom,
                    std::chrono::duration<double>(group.timeout).count()));
  }
  group.fail(diagnostics);
  return false;
}

}  // namespace

bool same_beside(RankGroup& group, CallBoard& board, CallRecord call, Diagnostics& diagnostics) {
  RankPatience wait{group.timeout};  // not in the function, which would be allocated
  const auto refusal = board.next(
      call, [&](uint32_t late, uint64_t calls) { return is_over(group, wait, late, calls); });
  return !refusal || refuse_call(group, *refusal, call, "", diagnostics);
}

namespace {

/// Reports it; the text.
std::string refuse_far(RankGroup& group, const FarCalls::Difference& found,
                       Diagnostics& diagnostics) {
  report_differing_calls({group.rank(), facts_in(group, found.own, found.other.call), found.rank,
                          facts_in(group, found.other, found.other.call)},
                         "launch", group.buffers.overlaps(), diagnostics);
  std::string text = diagnostics.all().back().message;
  group.fail(diagnostics);
  return text;
}

static_assert(sizeof(CallRecord) == sizeof(LaneNote));

}  // namespace

bool same_far(RankGroup& group, FarCalls& calls, CallRecord call, std::optional<LaneNote>& note,
              Diagnostics& diagnostics) {
  bool changed = false;
  if (const auto found = calls.next(call, changed)) {
    refuse_far(group, *found, diagnostics);
    return false;
  }
  if (changed) note = std::bit_cast<LaneNote>(call);
  return true;
}

// The bytes are a peer's, and may be anything: a type that there is not has no name.
std::string take_far_note(RankGroup& group, FarCalls& calls, uint32_t rank, const LaneNote& note) {
  const auto call = std::bit_cast<CallRecord>(note);
  if (!is_possible(call)) return "a note that describes no call";
  const auto found = calls.noted(rank, call);
  Diagnostics diagnostics;
  return found ? refuse_far(group, *found, diagnostics) : "";
}

/// To far ranks, over the lanes that there are: those of this plan come with it.
void LoadBeside::note_far() const {
  if (group_.compared.far == nullptr || ahead_ == 0 || !group_.compared.note_far) return;
  CallRecord call{.call = group_.compared.far->calls() + ahead_, .executable = executable_};
  call.is_load = 1;
  group_.compared.note_far(std::bit_cast<LaneNote>(call));
}

bool LoadBeside::begin(Diagnostics& diagnostics) {
  note_far();
  if (group_.compared.board == nullptr || ahead_ == 0) return true;
  begun_ = true;
  CallRecord call{.call = group_.compared.board->calls() + ahead_, .executable = executable_};
  call.is_load = 1;
  RankPatience wait{group_.timeout};
  const auto refusal = group_.compared.board->begin_load(
      call, [&](uint32_t late, uint64_t calls) { return is_over(group_, wait, late, calls); });
  return !refusal || refuse_call(group_, *refusal, call, call_, diagnostics);
}

void LoadBeside::end() {
  if (group_.compared.far != nullptr) group_.compared.far->loads(executable_);
  if (begun_) group_.compared.board->end_load();
  begun_ = false;
}

}  // namespace mscclc
