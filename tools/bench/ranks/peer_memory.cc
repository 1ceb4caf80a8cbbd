#include "tools/bench/ranks/peer_memory.h"

#include <fmt/format.h>

#include "ir/diagnostics/first_message.h"
#include "runtime/support/memory/handle.h"

namespace mscclc::bench {
namespace {

constexpr size_t kMaxText = 2000;

std::string reason(const Diagnostics& diagnostics) {
  return first_message(diagnostics, "it does not say why").substr(0, kMaxText);
}

}  // namespace

std::optional<Error> any_unable(Communicator& communicator, bool able, const Diagnostics& own) {
  const std::string text = able ? "" : "!" + reason(own);
  std::vector<uint8_t> message(text.begin(), text.end());
  std::vector<std::vector<uint8_t>> all;
  Diagnostics diagnostics;
  if (!communicator.bootstrap().all_gather(message, "able", all, diagnostics)) {
    return Error{reason(diagnostics)};
  }
  for (uint32_t r = 0; r < all.size(); ++r) {
    if (all[r].empty()) continue;
    return Error{fmt::format("rank {}: {}", r, std::string(all[r].begin() + 1, all[r].end()))};
  }
  return std::nullopt;
}

std::unique_ptr<PeerMemory> PeerMemory::share(Communicator& communicator, uint8_t* address,
                                              uint64_t bytes, Diagnostics& diagnostics) {
  const uint32_t ranks = communicator.size(), rank = communicator.rank();
  if (ranks > PeerPointers::kMaxRanks) {
    diagnostics.error(
        "too-many-ranks", {},
        fmt::format("kernels without a plan take {} ranks at most", PeerPointers::kMaxRanks));
    return nullptr;
  }
  std::vector<uint8_t> message;
  const auto own = communicator.device().export_memory(address, bytes, diagnostics);
  if (own) encode(*own, message);
  std::vector<std::vector<uint8_t>> all;
  if (!communicator.bootstrap().all_gather(message, "handles", all, diagnostics)) return nullptr;
  auto made = std::make_unique<PeerMemory>();
  made->rank_ = rank;
  made->ranks_ = ranks;
  made->mapped_.resize(ranks);
  bool able = own.has_value();
  for (uint32_t r = 0; able && r < ranks; ++r) {
    made->pointers_.of[r] = address;
    if (r == rank) continue;
    std::span<const uint8_t> text = all[r];
    const auto handle = decode_handle(text, diagnostics);
    if (handle) made->mapped_[r] = communicator.device().import_memory(*handle, diagnostics);
    able = made->mapped_[r] != nullptr;
    if (able) made->pointers_.of[r] = made->mapped_[r]->data();
  }
  // Handles are good while `own` lives: until all have mapped them.
  const auto unable = any_unable(communicator, able, diagnostics);
  if (!unable) return made;
  if (!diagnostics.has_errors()) diagnostics.error("peer-failed", {}, unable->text());
  return nullptr;
}

}  // namespace mscclc::bench
