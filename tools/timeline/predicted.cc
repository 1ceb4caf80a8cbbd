#include "tools/timeline/predicted.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cost/critical_path.h"
#include "executor/cost/explanation.h"
#include "executor/cost/model.h"

namespace mscclc::timeline {
namespace {

Slice slice_of(const cost::StepRecord& r, uint32_t record) {
  Slice s = step_of(r, record);
  s.begin = r.begin;
  s.work = std::clamp(r.work, r.begin, r.end);
  s.idle = s.back = r.end;
  if (r.arrived > r.done && r.done >= s.work) {
    s.idle = r.done;
    s.back = std::min(r.arrived, r.end);
  }
  s.end = r.end;
  return s;
}

/// Did the receiver have to wait for it? Packets are awaited until the first have come, and again
/// where the last come after the step has done all else.
bool was_awaited(const cost::Arrow& arrow, const cost::StepRecord& receiver, const Slice& slice) {
  if (!arrow.packets) return arrow.came > slice.begin;
  const bool first = slice.work > slice.begin && receiver.waited == arrow.from;
  return first || (slice.back > slice.idle && arrow.came > slice.idle);
}

}  // namespace

std::optional<cost::Timeline> predict(const Program& program, const Call& call,
                                      const Machine& machine, Diagnostics& diagnostics) {
  cost::Model model(program);
  auto timeline = model.predict(call, machine, diagnostics, cost::Detail::arrows);
  if (timeline && timeline->records.size() > kMaxSlices) {
    diagnostics.error("too-large", {},
                      fmt::format("the call has {} steps, and a timeline shows {} at most; take a "
                                  "smaller message, or fewer ranks",
                                  timeline->records.size(), kMaxSlices));
    return std::nullopt;
  }
  return timeline;
}

Slice step_of(const cost::StepRecord& r, uint32_t record) {
  return {.rank = r.rank,
          .block = r.block,
          .source = r.source,
          .round = r.round,
          .record = record,
          .kind = r.kind,
          .bytes = r.bytes};
}

Trace predicted_trace(const cost::Timeline& timeline, const Machine& machine) {
  Trace trace;
  trace.predicted = true;
  trace.how = fmt::format("predicted for {} ({})", machine.name,
                          machine.measured ? "measured figures" : "published figures");
  trace.end = timeline.alone_ns;
  for (uint32_t r = 0; r < timeline.records.size(); ++r) {
    trace.slices.push_back(slice_of(timeline.records[r], r));
  }
  for (const cost::Arrow& a : timeline.arrows) {
    const Slice& to = trace.slices[a.to];
    if (!was_awaited(a, timeline.records[a.to], to)) continue;
    trace.arrows.push_back({a.from, a.to, a.packets, a.sent, std::min(a.came, to.end)});
  }
  for (const std::vector<uint32_t>& met : timeline.meetings) {
    const uint32_t last = *std::ranges::max_element(
        met, {}, [&](uint32_t record) { return trace.slices[record].begin; });
    const double at = trace.slices[last].begin;
    for (const uint32_t record : met) {
      if (trace.slices[record].begin < at) trace.arrows.push_back({last, record, false, at, at});
    }
  }
  for (const cost::PathPart& part : cost::critical_path(timeline)) {
    trace.path.push_back({part.record == cost::kNoRecord ? kNone : part.record,
                          cost::kCauseNames[static_cast<size_t>(part.cause)], part.begin,
                          part.end});
  }
  return trace;
}

std::string title_of(const Program& program, const Call& call) {
  const Chunking chunking(program.contract, call.part_bytes, program.launch.align);
  return fmt::format("{}: {} of {} ({}) over {} ranks", program.name, name(program.contract.kind),
                     cost::exact_size_text(chunking.message_bytes()), info(call.dtype).name,
                     program.ranks.size());
}

}  // namespace mscclc::timeline
