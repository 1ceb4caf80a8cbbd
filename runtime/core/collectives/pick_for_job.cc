#include "runtime/api/pick_for_job.h"

#include <algorithm>
#include <iterator>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"

namespace mscclc {
namespace {

/// Scratch of a plan, at most, in messages that it does at once.
constexpr uint64_t kMaxScratch = 2;
/// Pieces are not made smaller than so many to an undivided one, whatever scratch they take.
constexpr uint64_t kMaxDivided = 16;

/// Bytes of a message of so many elements.
uint64_t bytes_of(const LibraryCall& call, uint64_t count) {
  return count * info(call.dtype).bytes * (has_rows(call.kind) ? call.ranks : 1);
}

}  // namespace

uint64_t most_at_once(const Program& plan, uint64_t piece_bytes, bool zero_copy) {
  LoadOptions options{.max_bytes = piece_bytes, .zero_copy = zero_copy};
  const auto needed = memory_of(plan, options);
  options.max_bytes *= 2;
  const auto more = memory_of(plan, options);
  if (!needed || !more || !takes_pieces(plan, options)) return ~uint64_t{0};
  if (needed->scratch == more->scratch && needed->staging == more->staging) return ~uint64_t{0};
  for (options.max_bytes = piece_bytes; options.max_bytes > piece_bytes / kMaxDivided;
       options.max_bytes /= 2) {
    const auto taken = memory_of(plan, options);
    if (taken && taken->scratch <= kMaxScratch * piece_bytes) break;
  }
  return options.max_bytes;
}

std::vector<uint64_t> sizes_at_once(uint64_t piece_bytes) {
  std::vector<uint64_t> sizes;
  for (uint64_t parts = kMaxDivided; parts > 0; parts /= 2) sizes.push_back(piece_bytes / parts);
  return sizes;
}

uint64_t count_within(const LibraryCall& call, uint64_t bytes) {
  constexpr uint64_t kLine = 128;
  const uint64_t row = bytes / (has_rows(call.kind) ? call.ranks : 1);
  const uint64_t whole = row < kLine ? row : row / kLine * kLine;
  return std::max<uint64_t>(1, whole / info(call.dtype).bytes);
}

JobChoice pick_for_job(PlanProvider& provider, const PlanRequest& request, const PieceRules& rules,
                       std::vector<PassedOver>* passed_over, Diagnostics& diagnostics) {
  const LibraryCall& call = request.call;
  const auto within = [&](uint64_t bytes) {
    return std::min(call.bytes, bytes_of(call, count_within(call, bytes)));
  };
  std::vector<PassedOver> over, over_piece;
  const auto answer = [&](JobChoice choice, std::vector<PassedOver>& lines) {
    if (passed_over != nullptr) std::ranges::move(lines, std::back_inserter(*passed_over));
    return choice;
  };
  const auto ask = [&](const PlanRequest& asked, std::vector<PassedOver>& lines,
                       Diagnostics& problems) {
    return provider.pick(asked, passed_over != nullptr ? &lines : nullptr, problems);
  };
  auto picked = ask(request, over, diagnostics);
  const uint64_t at_once = picked != nullptr ? rules.most_at_once(*picked) : 0;
  if (picked == nullptr || call.bytes <= at_once) return answer({picked, call.bytes}, over);
  if (picked->serves_pieces) return answer({picked, within(at_once)}, over);
  PlanRequest piece = request;
  piece.call.bytes = within(rules.bytes);
  Diagnostics problems;
  auto of_piece = ask(piece, over_piece, problems);
  for (const Diagnostic& d : problems.all()) diagnostics.add(d);
  if (problems.has_errors()) return answer({}, over_piece);
  if (of_piece == nullptr) return answer({picked, within(at_once)}, over);
  const uint64_t bytes = within(std::min(rules.bytes, rules.most_at_once(*of_piece)));
  return answer({std::move(of_piece), bytes}, over_piece);
}

JobChoice pick_for_job(PlanProvider& provider, const PlanRequest& request,
                       std::vector<PassedOver>* passed_over, Diagnostics& diagnostics) {
  const uint64_t bytes = CollectivesOptions().piece_bytes;
  const bool zero_copy = request.registered && !has_root(request.call.kind);
  const auto most = [&](const PickedPlan& picked) {
    return most_at_once(*picked.plan, bytes, zero_copy);
  };
  return pick_for_job(provider, request, {bytes, most}, passed_over, diagnostics);
}

}  // namespace mscclc
