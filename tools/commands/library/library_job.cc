#include "tools/commands/library/library_job.h"

#include <algorithm>

#include "runtime/api/collectives.h"
#include "runtime/api/pick_for_job.h"
#include "tools/commands/library/open_registry.h"

namespace mscclc {
namespace {

std::vector<uint64_t> cuts() { return sizes_at_once(CollectivesOptions().piece_bytes); }

/// The table's range without what follows its first bytes up to `end`, which are returned.
LibraryRange take_front(LibraryRange& range, uint64_t end) {
  LibraryRange front = range;
  front.max = std::min(range.max, end);
  range.min = front.max + 1;
  return front;
}

/// The table's ranges for the call's type and placement, so that nowhere inside one a cut begins.
std::vector<LibraryRange> uncut_ranges(const LibraryTable& table, const LibraryCall& call) {
  const InPlace other = call.in_place ? InPlace::no : InPlace::yes;
  std::vector<LibraryRange> all;
  for (LibraryRange range : table.ranges(call)) {
    const bool for_type = std::ranges::find(range.dtypes, call.dtype) != range.dtypes.end();
    if (range.in_place == other || !for_type) continue;
    for (const uint64_t cut : cuts()) {
      if (range.min <= cut && cut < range.max) all.push_back(take_front(range, cut));
    }
    all.push_back(std::move(range));
  }
  return all;
}

}  // namespace

const LibraryChoice* LibraryJob::choice_of(LibraryCall call, const PickedPlan& picked) const {
  if (call.kind == CollectiveKind::sendrecv) call.shift = receiver_of_0(call.shift, call.ranks);
  for (const LibraryRow& row : library_.table.rows()) {
    const LibraryChoice& choice = row.choice;
    if (row.kind != call.kind) continue;
    const std::string name = choice.plan.empty() ? choice.name(call) : choice.plan;
    if (library_.folder + name == picked.name) return &choice;
  }
  return library_.table.choose(call);  // its blocks were too many, and are fewer now
}

std::optional<LibraryPick> LibraryJob::pick(const LibraryCall& call, Diagnostics& diagnostics) {
  const LibraryChoice* first = library_.table.choose(call);
  if (first == nullptr || call.bytes <= cuts().front()) return LibraryPick{first, call.bytes};
  if (registry_ == nullptr) registry_ = open_registry(library_.folder, false, diagnostics);
  if (registry_ == nullptr) return std::nullopt;
  Diagnostics found;
  const JobChoice choice = pick_for_job(*registry_, {.call = call}, nullptr, found);
  for (const Diagnostic& d : found.all()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  if (choice.picked == nullptr) return LibraryPick{};
  return LibraryPick{choice_of(call, *choice.picked), choice.bytes};
}

std::optional<std::vector<PickedRange>> LibraryJob::ranges(LibraryCall call,
                                                           Diagnostics& diagnostics) {
  std::vector<PickedRange> all;
  for (const LibraryRange& range : uncut_ranges(library_.table, call)) {
    call.bytes = range.min;
    const auto picked = pick(call, diagnostics);
    if (!picked) return std::nullopt;
    if (picked->choice == nullptr) continue;
    std::optional<uint64_t> piece;
    if (picked->bytes < call.bytes) piece = picked->bytes;
    const bool follows = !all.empty() && all.back().max + 1 == range.min;
    if (follows && *all.back().choice == *picked->choice && all.back().piece == piece) {
      all.back().max = range.max;
    } else {
      all.push_back({range.min, range.max, picked->choice, piece});
    }
  }
  return all;
}

}  // namespace mscclc
