#include "runtime/core/collectives/call_pieces.h"

#include <algorithm>

#include "ir/support/precondition.h"
#include "runtime/core/collectives/arguments.h"

namespace mscclc {

std::vector<CallRange> ranges_of(const CollectiveCall& planned, uint64_t at_once) {
  precondition(at_once > 0);
  std::vector<CallRange> ranges;
  for (uint64_t first = 0; first < planned.count; first += at_once) {
    ranges.push_back({first, std::min(at_once, planned.count - first)});
  }
  return ranges;
}

CollectiveCall piece_of(const CollectiveCall& planned, const CallRange& range, uint32_t ranks) {
  const uint64_t width = info(planned.dtype).bytes;
  CollectiveCall piece = planned;
  piece.count = range.count;
  if (piece.input != nullptr) {
    piece.input = static_cast<const uint8_t*>(piece.input) + range.first * width;
  }
  if (piece.output != nullptr) {
    piece.output = static_cast<uint8_t*>(piece.output) + range.first * width;
  }
  piece.bytes = message_bytes(piece, ranks);
  const bool apart = has_rows(planned.kind) && range.count < planned.count;
  piece.row_pitch = apart ? planned.count * width : 0;
  return piece;
}

void add_row_copies(const CollectiveCall& call, const CallRange& range, const OwnRows& rows,
                    uint32_t rank, uint32_t ranks, ReadyPiece& ready) {
  const uint64_t width = info(call.dtype).bytes, row = range.count * width;
  const auto in_range = [&](uint64_t count) {
    return std::min(count - std::min(count, range.first), range.count);
  };
  uint64_t next_in = 0, next_out = 0;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    const uint64_t out = call.counts[rank * ranks + peer], in = call.counts[peer * ranks + rank];
    const uint64_t from = call.input_offsets.empty() ? next_in : call.input_offsets[peer];
    const uint64_t to = call.output_offsets.empty() ? next_out : call.output_offsets[peer];
    if (const uint64_t some = in_range(out); some > 0) {
      ready.before.push_back(
          {rows.sent + peer * row,
           static_cast<const uint8_t*>(call.input) + (from + range.first) * width, some * width});
    }
    if (const uint64_t some = in_range(in); some > 0) {
      ready.after.push_back({static_cast<uint8_t*>(call.output) + (to + range.first) * width,
                             rows.received + peer * row, some * width});
    }
    next_in += out;
    next_out += in;
  }
}

}  // namespace mscclc
