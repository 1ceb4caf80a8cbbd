#include "runtime/core/communicator/call/call_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "ir/support/precondition.h"
#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

using Placement = CallFacts::Placement;

constexpr size_t kMaxName = 256;

Placement placement_of(const CallRecord& record) {
  return static_cast<Placement>(record.placement);
}

constexpr const char* kPlaces = "where registered buffers lie";

/// What two calls differ in; nullptr: they are the same.
const char* difference(const CallRecord& a, const CallRecord& b) {
  if (a.executable != b.executable) return "the plan";
  if (a.call != b.call) return "the number of the call";
  if (a.bytes != b.bytes) return "the message size";
  if (a.counts != b.counts) return "the counts";
  if (a.row_pitch != b.row_pitch) return "where rows begin";
  if (a.dtype != b.dtype) return "the type";
  if (a.reduce != b.reduce) return "the reduction";
  if (a.accumulate != b.accumulate) return "the type to add up in";
  if (a.buffer != b.buffer || a.offset != b.offset) return kPlaces;
  if (a.bind != b.bind) return "when they were bound";
  if (placement_of(a) == Placement::free || placement_of(b) == Placement::free) return nullptr;
  return a.placement == b.placement ? nullptr : "whether it is in place";
}

std::string text_of(const CallFacts& facts) {
  const CallRecord& call = facts.record;
  if (call.is_load != 0) {
    return fmt::format("call {} of a plan that is still to be loaded (load {})", call.call,
                       call.executable);
  }
  const auto reduce = static_cast<ReduceOp>(call.reduce);
  std::string text =
      fmt::format("call {} of {} (load {}), {} bytes of {}", call.call, mscclc::quoted(facts.plan),
                  call.executable, call.bytes, info(static_cast<Dtype>(call.dtype)).name);
  if (call.row_pitch != 0) text += fmt::format(", rows {} bytes apart", call.row_pitch);
  if (reduce != ReduceOp::call) {
    text += fmt::format(", {} in {}", name(reduce), info(static_cast<Dtype>(call.accumulate)).name);
  }
  for (const size_t side : {kInput, kOutput}) {
    if (call.buffer[side] == 0) continue;
    text +=
        fmt::format(", {} at byte {} of registered buffer {}", side == kInput ? "input" : "output",
                    call.offset[side], call.buffer[side] - 1);
  }
  if (call.bind != 0) text += fmt::format(", bound as number {}", call.bind);
  if (placement_of(call) == Placement::free) return text;
  return text + (placement_of(call) == Placement::in_place ? ", in place" : ", out of place");
}

/// Which two buffers of the rank hold what its call names; nullopt: no two do, or on all ranks.
std::optional<std::string> lies_in_two(uint32_t rank, const CallRecord& call,
                                       const BufferOverlaps& overlaps) {
  for (const size_t side : {kInput, kOutput}) {
    if (call.buffer[side] == 0) continue;
    const uint64_t buffer = call.buffer[side] - 1;
    const auto both = overlaps.find(rank, buffer, call.offset[side], call.bytes);
    if (!both) continue;
    return fmt::format(
        "byte {} of registered buffer {} is byte {} of registered buffer {} as well on rank {}, "
        "and not on all ranks: a rank takes such a place for one of the buffer that it has "
        "registered last",
        both->offset, buffer, both->other.offset, both->other.buffer, rank);
  }
  return std::nullopt;
}

constexpr uint8_t kDtypes = 0
#define DTYPE(...) +1
#include "ir/ops/dtypes.def"
#undef DTYPE
    ;

}  // namespace

// A buffer's number grows with each registration: it stays small.
void place_in(CallRecord& record, Side side, const BufferPlace& place) {
  precondition(place.kind != BufferPlace::Kind::own);
  const size_t at = side == Side::input ? kInput : kOutput;
  record.offset[at] = place.offset;
  record.buffer[at] = static_cast<uint32_t>(place.buffer) + 1;
}

// A word at a time: there are as many as pairs of ranks.
std::array<uint8_t, 3> digest_of_counts(std::span<const uint64_t> counts) {
  if (std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end()) return {};
  uint64_t digest = 0xcbf29ce484222325u;
  for (const uint64_t count : counts) {
    digest = (digest ^ count) * 0x100000001b3u;
    digest ^= digest >> 32;
  }
  return {static_cast<uint8_t>(digest | 1), static_cast<uint8_t>(digest >> 8),
          static_cast<uint8_t>(digest >> 16)};
}

// Which bind it is, ranks learn by its number.
void encode(const CallFacts& facts, std::vector<uint8_t>& to) {
  const std::string_view plan = std::string_view(facts.plan).substr(0, kMaxName);
  CallRecord record = facts.record;
  record.bind = 0;
  record.is_load = 0;
  const auto bytes = std::bit_cast<std::array<uint8_t, sizeof record>>(record);
  to.insert(to.end(), bytes.begin(), bytes.end());
  ByteWriter(to).number(static_cast<uint16_t>(plan.size())).text(plan);
}

bool decode(std::span<const uint8_t>& from, CallFacts& facts) {
  if (from.size() < sizeof facts.record) return false;
  std::memcpy(&facts.record, from.data(), sizeof facts.record);
  ByteReader reader(from.subspan(sizeof facts.record));
  facts.plan = reader.text(reader.number<uint16_t>());
  from = reader.rest();
  return reader.good() && is_possible(facts.record);
}

bool is_possible(const CallRecord& record) {
  return record.dtype < kDtypes && record.accumulate < kDtypes &&
         record.reduce <= static_cast<uint8_t>(ReduceOp::avg) &&
         record.placement <= static_cast<uint8_t>(Placement::in_place) && record.is_load <= 1;
}

void report_differing_calls(const DifferingCalls& calls, std::string_view doing,
                            const BufferOverlaps& overlaps, Diagnostics& diagnostics) {
  const auto& [rank, call, other_rank, other] = calls;
  const char* const what = difference(call.record, other.record);
  Diagnostic& d = diagnostics.error(
      "call-differs", {},
      fmt::format("ranks {} different calls, which differ in {}: rank {} has {}; rank {} has {}",
                  doing, what == nullptr ? "nothing" : what, rank, text_of(call), other_rank,
                  text_of(other)));
  auto cause = what == kPlaces ? lies_in_two(rank, call.record, overlaps) : std::nullopt;
  if (!cause && what == kPlaces) cause = lies_in_two(other_rank, other.record, overlaps);
  if (!cause) {
    d.notes.push_back({.text = "all ranks must make the same calls, in the same order"});
    return;
  }
  d.notes.push_back({.text = *cause});
  d.notes.push_back({.text = "register memory once, or so that buffers overlap alike on all ranks, "
                             "or deregister one of the two on all ranks"});
}

bool same_calls(const std::vector<CallFacts>& by_rank, std::string_view doing,
                const BufferOverlaps& overlaps, Diagnostics& diagnostics) {
  // Ranks whose buffers cannot lie in each other say nothing of the placement: the first that does
  // stands for all others.
  size_t placed = 0;
  while (placed < by_rank.size() && placement_of(by_rank[placed].record) == Placement::free) {
    ++placed;
  }
  for (size_t r = 1; r < by_rank.size(); ++r) {
    size_t other = 0;
    const char* what = difference(by_rank[0].record, by_rank[r].record);
    if (what == nullptr && placed < r) {
      other = placed;
      what = difference(by_rank[placed].record, by_rank[r].record);
    }
    if (what == nullptr) continue;
    report_differing_calls(
        {static_cast<uint32_t>(other), by_rank[other], static_cast<uint32_t>(r), by_rank[r]}, doing,
        overlaps, diagnostics);
    return false;
  }
  return true;
}

}  // namespace mscclc
