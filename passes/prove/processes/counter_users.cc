#include "passes/prove/processes/counter_users.h"

#include <algorithm>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

/// Looks at all ops.
class UserSearch {
 public:
  UserSearch(const System& system, FindingList& findings)
      : system_(system),
        findings_(findings),
        ends_(system.ends()),
        semaphores_(system.semaphores()) {}

  SharedSemaphores run() {
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      const std::vector<Op>& ops = system_.program().ranks[r].ops;
      for (uint32_t i = 0; i < ops.size(); ++i) {
        for (const Operand& o : system_.program().dsts(ops[i])) look_at(r, i, o);
      }
    }
    return std::move(shared_);
  }

 private:
  struct Users {
    uint32_t gives = kNone, takes = kNone;
  };

  void use(uint32_t& user, uint32_t rank, uint32_t op, const char* what) {
    const uint32_t process =
        system_.block_process(rank, system_.program().ranks[rank].ops[op].block);
    if (user == kNone) user = process;
    // Blocks of different plans are never there at once; those of one have been looked at alone.
    if (user == process || system_.joint()) return;
    Finding* finding = findings_.add_undecided(process, op, what);
    if (finding == nullptr) return;
    finding->first = {user, 0, kNone, 0};
    finding->rank = rank;
  }

  void look_at(uint32_t r, uint32_t i, const Operand& o) {
    const Rank& rank = system_.program().ranks[r];
    const OpInfo& row = info(rank.ops[i].kind);
    const bool port = o.channel != kNone && rank.channels[o.channel].kind == ChannelKind::port;
    if (row.has(kSignals) || (row.moves_data() && port)) {
      if (premise(Premise::one_block_sends, false)) return;
      use(ends_[system_.end(r, o.channel)].gives, r, i,
          "several thread blocks send through one end of a channel");
    } else if (row.has(kFlushes)) {  // what another block posts may come before it or after
      if (premise(Premise::the_poster_flushes, false)) return;
      use(ends_[system_.end(r, o.channel)].gives, r, i,
          "several thread blocks send through, or flush, one port");
    }
    if (row.has(kWaits) && !premise(Premise::one_block_waits, false)) {
      use(ends_[system_.end(r, o.channel)].takes, r, i,
          "several thread blocks wait at one end of a channel");
    }
    if (row.has(kAcquires) && !premise(Premise::one_block_acquires, false)) {
      use(semaphores_[system_.semaphore(r, o.first)].takes, r, i,
          "several thread blocks acquire one semaphore");
    }
    if (row.has(kReleases)) note_release(r, i, o.first);
  }

  void note_release(uint32_t r, uint32_t i, uint32_t semaphore) {
    const Rank& rank = system_.program().ranks[r];
    const uint32_t process = system_.block_process(r, rank.ops[i].block);
    const uint32_t id = system_.semaphore(r, semaphore);
    Users& users = semaphores_[id];
    if (users.gives == kNone) users.gives = process;
    if (users.gives != process) shared_[id].initial = rank.semaphores[semaphore].initial;
  }

  const System& system_;
  FindingList& findings_;
  std::vector<Users> ends_, semaphores_;
  SharedSemaphores shared_;
};

void count_release(SharedSemaphore& shared, uint32_t process, uint32_t times) {
  const auto releaser = std::ranges::find(shared.releasers, process);
  const size_t i = releaser - shared.releasers.begin();
  if (releaser == shared.releasers.end()) {
    shared.releasers.push_back(process);
    shared.releases.push_back(0);
  }
  shared.releases[i] += times;
  shared.total += times;
}

/// How often each releaser of a shared semaphore releases it in a call.
void count_releases(const System& system, const Cuts& cuts, SharedSemaphores& all) {
  for (uint32_t r = 0; r < system.ranks(); ++r) {
    for (const Op& op : system.program().ranks[r].ops) {
      if (!info(op.kind).has(kReleases)) continue;
      const uint32_t times = op.loop == kNone ? 1 : cuts.rounds(op.loop);
      for (const Operand& o : system.program().dsts(op)) {
        const auto entry = all.find(system.semaphore(r, o.first));
        if (entry == all.end()) continue;
        entry->second.in_loop |= op.loop != kNone;
        count_release(entry->second, system.block_process(r, op.block), times);
      }
    }
  }
}

}  // namespace

SharedSemaphores find_shared(const System& system, const Cuts& cuts, FindingList& findings) {
  SharedSemaphores shared = UserSearch(system, findings).run();
  if (!shared.empty()) count_releases(system, cuts, shared);
  return shared;
}

}  // namespace mscclc::proof
