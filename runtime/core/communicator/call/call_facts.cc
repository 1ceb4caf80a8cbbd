#include "runtime/core/communicator/call/call_facts.h"

#include <fmt/format.h>

#include "runtime/support/bytes.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

using Placement = CallFacts::Placement;

constexpr size_t kMaxName = 256;

const BufferPlace& place_of(const CallFacts& facts, Side side) {
  return facts.symmetric.side[side == Side::input ? 0 : 1];
}

/// What two calls differ in; nullptr: they are the same.
const char* difference(const CallFacts& a, const CallFacts& b) {
  if (a.executable != b.executable) return "the plan";
  if (a.number != b.number) return "the number of the call";
  if (a.bytes != b.bytes) return "the message size";
  if (a.row_pitch != b.row_pitch) return "where rows begin";
  if (a.dtype != b.dtype) return "the type";
  if (a.reduce != b.reduce) return "the reduction";
  if (a.accumulate != b.accumulate) return "the type to add up in";
  for (const Side side : {Side::input, Side::output}) {
    if (place_of(a, side) != place_of(b, side)) return "where registered buffers lie";
  }
  if (a.bind != b.bind) return "when they were bound";
  if (a.placement == Placement::free || b.placement == Placement::free) return nullptr;
  return a.placement == b.placement ? nullptr : "whether it is in place";
}

std::string text_of(const CallFacts& facts) {
  if (facts.is_load) {
    return fmt::format("call {} of a plan that is still to be loaded (load {})", facts.number,
                       facts.executable);
  }
  std::string text = fmt::format("call {} of {} (load {}), {} bytes of {}", facts.number,
                                 mscclc::quoted(facts.plan), facts.executable, facts.bytes,
                                 info(facts.dtype).name);
  if (facts.row_pitch != 0) text += fmt::format(", rows {} bytes apart", facts.row_pitch);
  if (facts.reduce != ReduceOp::call) {
    text += fmt::format(", {} in {}", name(facts.reduce), info(facts.accumulate).name);
  }
  for (const Side side : {Side::input, Side::output}) {
    const BufferPlace& place = place_of(facts, side);
    if (place.kind != BufferPlace::Kind::registered) continue;
    text += fmt::format(", {} at byte {} of registered buffer {}",
                        side == Side::input ? "input" : "output", place.offset, place.buffer);
  }
  if (facts.bind != 0) text += fmt::format(", bound as number {}", facts.bind);
  if (facts.placement == Placement::free) return text;
  return text + (facts.placement == Placement::in_place ? ", in place" : ", out of place");
}

/// A number below `end` as an enum.
template <class Enum>
bool choice(ByteReader& reader, uint8_t end, Enum& out) {
  const auto number = reader.number<uint8_t>();
  if (number >= end) return false;
  out = static_cast<Enum>(number);
  return true;
}

constexpr uint8_t kDtypes = 0
#define DTYPE(...) +1
#include "ir/ops/dtypes.def"
#undef DTYPE
    ;

}  // namespace

void encode(const CallFacts& facts, std::vector<uint8_t>& to) {
  const std::string_view plan = std::string_view(facts.plan).substr(0, kMaxName);
  ByteWriter(to)
      .number(facts.number)
      .number(facts.executable)
      .number(facts.bytes)
      .number(facts.row_pitch)
      .number(static_cast<uint8_t>(facts.dtype))
      .number(static_cast<uint8_t>(facts.reduce))
      .number(static_cast<uint8_t>(facts.accumulate))
      .number(static_cast<uint8_t>(facts.placement))
      .number(static_cast<uint16_t>(plan.size()))
      .text(plan);
  encode(facts.symmetric, to);
}

bool decode(std::span<const uint8_t>& from, CallFacts& facts) {
  ByteReader reader(from);
  facts.number = reader.number<uint64_t>();
  facts.executable = reader.number<uint64_t>();
  facts.bytes = reader.number<uint64_t>();
  facts.row_pitch = reader.number<uint64_t>();
  if (!choice(reader, kDtypes, facts.dtype) ||
      !choice(reader, static_cast<uint8_t>(ReduceOp::avg) + 1, facts.reduce) ||
      !choice(reader, kDtypes, facts.accumulate) ||
      !choice(reader, static_cast<uint8_t>(Placement::in_place) + 1, facts.placement)) {
    return false;
  }
  facts.plan = reader.text(reader.number<uint16_t>());
  from = reader.rest();
  return reader.good() && decode(from, facts.symmetric);
}

// A buffer's number grows with each registration, and a call's with each bind: both stay small.
CallRecord record_of(const CallFacts& facts) {
  CallRecord record;
  record.bytes = facts.bytes;
  record.row_pitch = facts.row_pitch;
  for (const size_t side : {0, 1}) {
    const BufferPlace& place = facts.symmetric.side[side];
    if (place.kind != BufferPlace::Kind::registered) continue;
    record.offset[side] = place.offset;
    record.buffer[side] = static_cast<uint32_t>(place.buffer) + 1;
  }
  record.bind = static_cast<uint32_t>(facts.bind);
  record.executable = static_cast<uint32_t>(facts.executable);
  record.dtype = static_cast<uint8_t>(facts.dtype);
  record.reduce = static_cast<uint8_t>(facts.reduce);
  record.accumulate = static_cast<uint8_t>(facts.accumulate);
  record.placement = static_cast<uint8_t>(facts.placement);
  record.is_load = facts.is_load ? 1 : 0;
  return record;
}

bool is_possible(const CallRecord& record) {
  return record.dtype < kDtypes && record.accumulate < kDtypes &&
         record.reduce <= static_cast<uint8_t>(ReduceOp::avg) &&
         record.placement <= static_cast<uint8_t>(Placement::in_place) && record.is_load <= 1;
}

CallFacts facts_of(const CallRecord& record, const std::string& plan) {
  CallFacts facts;
  facts.number = record.call;
  facts.executable = record.executable;
  facts.plan = plan;
  facts.bytes = record.bytes;
  facts.row_pitch = record.row_pitch;
  facts.dtype = static_cast<Dtype>(record.dtype);
  facts.reduce = static_cast<ReduceOp>(record.reduce);
  facts.accumulate = static_cast<Dtype>(record.accumulate);
  facts.placement = static_cast<Placement>(record.placement);
  facts.bind = record.bind;
  facts.is_load = record.is_load != 0;
  for (const size_t side : {0, 1}) {
    if (record.buffer[side] == 0) continue;
    facts.symmetric.side[side] = {BufferPlace::Kind::registered, record.buffer[side] - 1u,
                                  record.offset[side]};
  }
  return facts;
}

void report_differing_calls(uint32_t rank, const CallFacts& call, uint32_t other_rank,
                            const CallFacts& other, std::string_view doing,
                            Diagnostics& diagnostics) {
  const char* const what = difference(call, other);
  diagnostics
      .error("call-differs", {},
             fmt::format("ranks {} different calls, which differ in {}: rank {} has {}; rank {} "
                         "has {}",
                         doing, what == nullptr ? "nothing" : what, rank, text_of(call), other_rank,
                         text_of(other)))
      .notes.push_back({.text = "all ranks must make the same calls, in the same order"});
}

bool same_calls(const std::vector<CallFacts>& by_rank, std::string_view doing,
                Diagnostics& diagnostics) {
  // Ranks whose buffers cannot lie in each other say nothing of the placement: the first that does
  // stands for all others.
  size_t placed = 0;
  while (placed < by_rank.size() && by_rank[placed].placement == Placement::free) ++placed;
  for (size_t r = 1; r < by_rank.size(); ++r) {
    size_t other = 0;
    const char* what = difference(by_rank[0], by_rank[r]);
    if (what == nullptr && placed < r) {
      other = placed;
      what = difference(by_rank[placed], by_rank[r]);
    }
    if (what == nullptr) continue;
    report_differing_calls(static_cast<uint32_t>(other), by_rank[other], static_cast<uint32_t>(r),
                           by_rank[r], doing, diagnostics);
    return false;
  }
  return true;
}

}  // namespace mscclc
