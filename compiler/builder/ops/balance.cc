#include "compiler/builder/ops/balance.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "compiler/builder/draft/texts.h"

namespace mscclc {
namespace {

/// "signals 'ch[0]' 3 times", "never waits", "waits twice".
std::string deed(std::string_view verb, int64_t n, std::string_view object = {}) {
  const std::string what =
      object.empty() ? std::string(verb) : fmt::format("{} '{}'", verb, object);
  return n == 0 ? "never " + what : fmt::format("{} {}", what, times(n));
}

}  // namespace

void Balance::check(uint32_t rank) const {
  const Rank& r = draft_.program.ranks[rank];
  for (uint32_t c = 0; c < r.channels.size(); ++c) {
    if (r.channels[c].partner != kNone) channel(rank, c, r.channels[c]);
  }
  for (uint32_t i = 0; i < r.semaphores.size(); ++i) semaphore(rank, i);
}

void Balance::note_rounds(Diagnostic& d, uint32_t rounds) const {
  if (rounds != 0) d.notes.push_back({places_.rounds_text(rounds), d.span});
}

/// The classes of rounds in which the partner takes more than is given.
std::vector<uint32_t> Balance::taken_elsewhere(const Tally& signals, uint64_t signal_key,
                                               const Tally& waits, uint64_t wait_key) const {
  std::vector<uint32_t> found;
  each_class(signals, waits, [&](uint32_t rounds) {
    if (tallies_.count(waits, wait_key, rounds) > tallies_.count(signals, signal_key, rounds)) {
      found.push_back(rounds);
    }
  });
  return found;
}

void Balance::note_elsewhere(Diagnostic& d, uint32_t peer, uint32_t rounds) const {
  d.notes.push_back({fmt::format("rank {} waits {}; how many rounds a pipeline has depends on "
                                 "the size of the message",
                                 peer, places_.rounds_text(rounds)),
                     d.span});
}

/// Compares the signals of an end with the waits of its partner.
void Balance::channel(uint32_t r, uint32_t c, const Channel& channel) const {
  const Tally& signals = tallies_.channel(r, c).signals;
  const Tally& waits = tallies_.channel(channel.peer, channel.partner).waits;
  const uint64_t signal_key = tally_key(r, c);
  const uint64_t wait_key = tally_key(channel.peer, channel.partner) | kWaitTally;
  each_class(signals, waits, [&](uint32_t rounds) {
    const int64_t given = tallies_.count(signals, signal_key, rounds);
    const int64_t taken = tallies_.count(waits, wait_key, rounds);
    if (given == taken) return;
    const std::string mine = draft_.label(r, c),
                      theirs = draft_.label(channel.peer, channel.partner);
    std::vector<uint32_t> elsewhere;
    if (given > taken) elsewhere = taken_elsewhere(signals, signal_key, waits, wait_key);
    const bool other = taken == 0 && !elsewhere.empty();
    Diagnostic& d =
        reports_.fail("unbalanced", members_.mark(r, DeclKind::channel, c),
                      fmt::format("rank {} {}, rank {} {}", r, deed("signals", given, mine),
                                  channel.peer, other ? "waits elsewhere" : deed("waits", taken)));
    reports_.note(d, members_.mark(channel.peer, DeclKind::channel, channel.partner),
                  fmt::format("the other end is '{}' of rank {}", theirs, channel.peer));
    note_rounds(d, rounds);
    for (const uint32_t there : elsewhere) note_elsewhere(d, channel.peer, there);
  });
}

void Balance::semaphore(uint32_t r, uint32_t i) const {
  const SemaphoreUse& sem = tallies_.semaphore(r, i);
  const uint64_t key = tally_key(r, i) | kSemaphoreTally;
  each_class(sem.releases, sem.acquires, [&](uint32_t rounds) {
    const int64_t given = tallies_.count(sem.releases, key, rounds);
    const int64_t taken = tallies_.count(sem.acquires, key | kWaitTally, rounds);
    if (given == taken) return;
    Diagnostic& d =
        reports_.fail("unbalanced", members_.mark(r, DeclKind::semaphore, i),
                      fmt::format("'{}' of rank {} is {}, {}",
                                  draft_.program.text(draft_.program.ranks[r].semaphores[i].label),
                                  r, given == 0 ? "never released" : "released " + times(given),
                                  taken == 0 ? "never acquired" : "acquired " + times(taken)));
    note_rounds(d, rounds);
  });
}

}  // namespace mscclc
