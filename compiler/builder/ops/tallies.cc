#include "compiler/builder/ops/tallies.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {

void Tallies::seal() {
  channels_.resize(draft_.ranks());
  semaphores_.resize(draft_.ranks());
  for (uint32_t r = 0; r < draft_.ranks(); ++r) {
    channels_[r].resize(draft_.program.ranks[r].channels.size());
    semaphores_[r].resize(draft_.program.ranks[r].semaphores.size());
  }
}

/// Notes what uses a side of a channel's end, and counts signals and waits.
void Tallies::use_channels(const OpInfo& info, std::span<const Ref> refs) {
  const uint32_t owner = places_.owner();
  for (const Ref& ref : refs) {
    const uint32_t c = ref.operand.channel;
    ChannelUse& end = channels_[draft_.rank][c];
    const uint64_t key = tally_key(draft_.rank, c);
    const bool waits = info.has(kWaits);
    uint32_t& side = waits ? end.waiter : end.sender;
    if (side != owner) claim(side, owner, waits ? "wait" : "signal", ref);
    if (waits) {
      add(end.waits, key | kWaitTally);
    } else if (info.has(kSignals)) {
      add(end.signals, key);
    }
  }
}

void Tallies::use_semaphores(const OpInfo& info, std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    SemaphoreUse& count = semaphores_[draft_.rank][ref.operand.first];
    const uint64_t key = tally_key(draft_.rank, ref.operand.first) | kSemaphoreTally;
    if (info.has(kReleases)) {
      add(count.releases, key);
    } else {
      add(count.acquires, key | kWaitTally);
    }
  }
}

void Tallies::claim(uint32_t& side, uint32_t owner, std::string_view verb, const Ref& ref) {
  if (owner == kNone) return;
  if (side == kNone || draft_.program.foreign) {
    side = owner;
    return;
  }
  Diagnostic& d = reports_.fail(
      "channel-shared", ref.mark,
      fmt::format("{} and {} both {} at '{}'", places_.owner_text(side), places_.owner_text(owner),
                  verb, draft_.label(draft_.rank, ref.operand.channel)));
  reports_.note(
      d, members_.mark(draft_.rank, DeclKind::channel, ref.operand.channel),
      fmt::format("each side of a channel serves one block or group; '{}' is declared here",
                  draft_.name(draft_.out->channels[ref.operand.channel].label.name)));
}

/// What the channels and semaphores of an op are used for.
void Tallies::use(const OpInfo& info, std::span<const Ref> dsts) {
  if (info.effects & (kSignals | kWaits | kFlushes)) {
    use_channels(info, dsts);
  } else if (info.effects & (kReleases | kAcquires)) {
    use_semaphores(info, dsts);
  } else if (!dsts.empty() && (dsts[0].traits & uint32_t{kPort} << 16) != 0) {
    use_channels(info, dsts);
  }
}

int64_t Tallies::count(const Tally& tally, uint64_t key, uint32_t rounds) const {
  if (tally.count > 0 && tally.rounds == rounds) return tally.count;
  const auto more = more_.find({key, rounds});
  return more == more_.end() ? 0 : more->second;
}

uint32_t Tallies::more_classes() const {
  uint32_t end = 0;
  for (const auto& [key, count] : more_) end = std::max(end, key.second + 1);
  return end;
}

void Tallies::take(Tallies& part, RankRange of, const std::vector<uint32_t>& classes) {
  const auto translate = [&](Tally& tally) { tally.rounds = classes[tally.rounds]; };
  for (uint32_t r = of.begin; r < of.end; ++r) {
    for (ChannelUse& use : part.channels_[r]) {
      translate(use.signals);
      translate(use.waits);
    }
    for (SemaphoreUse& use : part.semaphores_[r]) {
      translate(use.releases);
      translate(use.acquires);
    }
    channels_[r].swap(part.channels_[r]);
    semaphores_[r].swap(part.semaphores_[r]);
  }
  for (const auto& [key, count] : part.more_) more_[{key.first, classes[key.second]}] = count;
}

}  // namespace mscclc
