#include "passes/prove/processes/counters.h"

#include <algorithm>
#include <utility>

#include "ir/program/signal_counts.h"
#include "ir/support/precondition.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

Token TokenQueue::take() {
  precondition(!empty());
  Token token = std::move(tokens_[first_++]);
  if (2 * first_ > tokens_.size()) {  // the room is used again
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
  return token;
}

Counters::Counters(const System& system, ThreadBlocks& blocks, Knowledge& knowledge,
                   FindingList& findings)
    : system_(system),
      program_(system.program()),
      blocks_(blocks),
      knowledge_(knowledge),
      findings_(findings),
      ends_(system.ends()),
      semaphores_(system.semaphores()) {
  for (uint32_t r = 0; r < system.ranks(); ++r) {
    const Rank& rank = program_.ranks[r];
    for (uint32_t s = 0; s < rank.semaphores.size(); ++s) {
      semaphores_[system.semaphore(r, s)].free = rank.semaphores[s].initial;
    }
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      if (rank.channels[c].credits != 0) ends_[system.end(r, c)].free = rank.channels[c].credits;
    }
  }
}

/// Lemma K1: threads that have not met do what they do in any order. So a signal that publishes is
/// the `first` at its end only if they meet before a relaxed one, which may be taken in its place;
/// and a relaxed wait if they meet before one that learns. `met`: of the first.
void Counters::keep_turn(uint32_t process, uint64_t& met, bool first) {
  const uint64_t meeting = meeting_of(process);
  if (first) met = meeting;
  if (premise(Premise::ends_are_used_in_turn, first || met != meeting)) return;
  findings_.add_undecided(
      process, blocks_[process].op,
      "threads of the block may do this before an op that comes ahead of it at the same "
      "end of a channel, of which one is 'relaxed' and one is not: put a 'sync' between "
      "them");
}

/// Lemma K1: a thread that is ahead may take what another was to take, which then waits for the
/// next. That must not hang on what the block has done in between.
void Counters::take_in_turn(uint32_t process, Counter& counter) {
  const uint64_t met = std::exchange(counter.took, meeting_of(process));
  const uint32_t acts = std::exchange(counter.acts, blocks_[process].acts);
  if (premise(Premise::counts_are_taken_in_turn, met != counter.took || acts == counter.acts))
    return;
  findings_.add_undecided(
      process, blocks_[process].op,
      "a thread of the block may take this before an op that comes ahead of it has taken "
      "its own, and leave that waiting: put a 'sync' between them");
}

bool Counters::take(uint32_t process, const Op& op, bool semaphores) {
  ThreadBlock& block = blocks_[process];
  const std::span<const Operand> targets = program_.dsts(op);
  for (; block.operand < targets.size(); ++block.operand) {
    const Operand& o = targets[block.operand];
    Counter& counter = semaphores ? semaphores_[system_.semaphore(block.rank, o.first)]
                                  : ends_[system_.end(block.rank, o.channel)];
    if (counter.free == 0 && counter.tokens.empty()) {
      counter.waiting = process;
      return false;
    }
    --counter.balance;
    if (!semaphores) keep_turn(process, counter.relaxed, op.relaxed);
    take_in_turn(process, counter);
    if (counter.by_releaser.size() > 1) {
      take_shared(counter, system_.semaphore(block.rank, o.first), block);
    } else if (counter.free > 0) {
      --counter.free;
    } else {
      const Token token = counter.tokens.take();
      block.gains.push_back(premise(Premise::relaxed_waits_learn_less, !op.relaxed) ? token.strong
                                                                                    : token.weak);
    }
  }
  block.operand = 0;
  return true;
}

/// Of several releasers it is not known whose release came first. But if so many have been taken
/// that the count cannot have been reached without a certain release, that one is certainly over.
void Counters::take_shared(Counter& counter, uint32_t semaphore, ThreadBlock& block) {
  if (counter.free > 0) {
    --counter.free;
  } else {
    counter.tokens.take();
  }
  uint32_t& taken = counter.taken;
  ++taken;
  const SharedSemaphore& shared = shared_[semaphore];
  if (!premise(Premise::several_release_outside_rounds, !shared.in_loop))
    return;  // what is certain would depend on the number of rounds (lemma R2)
  for (size_t i = 0; i < counter.by_releaser.size(); ++i) {
    const std::vector<Token>& given = counter.by_releaser[i];
    const uint64_t certain = std::min<uint64_t>(
        certain_gives(premise(Premise::several_releases_are_counted, taken, taken + 1),
                      shared.initial, shared.total, shared.releases[i]),
        given.size());
    if (certain > 0) block.gains.push_back(given[certain - 1].strong);
  }
}

void Counters::give(Counter& counter, Token token) {
  ++counter.balance;
  counter.tokens.give(std::move(token));
  if (counter.waiting == kNone) return;
  blocks_.wake(counter.waiting);
  counter.waiting = kNone;
}

void Counters::signal(uint32_t process, const Operand& target, bool relaxed) {
  const ThreadBlock& block = blocks_[process];
  const Channel& channel = program_.ranks[block.rank].channels[target.channel];
  Token token{knowledge_.strong_news(process), knowledge_.weak_news(process)};
  if (channel.kind == ChannelKind::port) {  // the proxy signals when it has done what came before
    const uint32_t id = system_.port_writer(block.rank, target.channel);
    token.strong.port = id;
    token.strong.port_done = knowledge_.posted(id);
  }
  if (!premise(Premise::relaxed_signals_publish_less, !relaxed)) token.strong = token.weak;
  if (channel.partner == kNone) return;
  const uint32_t back = system_.back(system_.turns_of(channel.peer));
  Counter& end = ends_[system_.end(channel.peer % system_.ranks(), channel.partner)];
  // At a port one thread posts all.
  if (channel.kind == ChannelKind::memory) keep_turn(process, end.published, !relaxed);
  give(end, {system_.turned(token.strong, back), system_.turned(token.weak, back)});
}

void Counters::release(uint32_t process, const Operand& target) {
  const uint32_t id = system_.semaphore(blocks_[process].rank, target.first);
  Counter& counter = semaphores_[id];
  const Token token{knowledge_.strong_news(process), {}};
  if (const auto shared = shared_.find(id); shared != shared_.end()) {
    const auto& releasers = shared->second.releasers;
    const size_t i = std::ranges::find(releasers, process) - releasers.begin();
    counter.by_releaser.resize(releasers.size());
    counter.by_releaser[i].push_back(token);
  }
  give(counter, token);
}

void Counters::flush(uint32_t process, uint32_t channel) {
  ThreadBlock& block = blocks_[process];
  const uint32_t id = system_.port_reader(block.rank, channel);
  block.gains.push_back({.port = premise(Premise::a_flush_shows_reads, id, id + 1),
                         .port_done = knowledge_.posted(id)});
}

void Counters::publish_move(uint32_t process, const Op& op, const OpInfo& row) {
  if (!row.has(kSignals)) return;
  for (const Operand& o : program_.dsts(op)) signal(process, o, false);
  if (!row.has(kFlushes)) return;
  for (const Operand& o : program_.dsts(op)) flush(process, o.channel);
}

void Counters::end_call(uint32_t rank) {
  for (uint32_t s = 0; s < program_.ranks[rank].semaphores.size(); ++s) {
    Counter& counter = semaphores_[system_.semaphore(rank, s)];
    counter.by_releaser.clear();
    counter.taken = 0;
  }
}

void Counters::report_balance(int64_t calls) const {
  const auto report = [&](const Counter& counter, uint32_t rank, uint32_t channel,
                          uint32_t semaphore) {
    if (premise(Premise::counts_return, counter.balance == 0)) return;
    Finding& finding = findings_.add(Finding::Kind::unbalanced);
    finding.rank = rank;
    finding.channel = channel;
    finding.semaphore = semaphore;
    finding.surplus = counter.balance / calls;
  };
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    const Rank& rank = program_.ranks[r];
    for (uint32_t c = 0; c < rank.channels.size(); ++c) {
      report(ends_[system_.end(r, c)], r, c, kNone);
    }
    for (uint32_t s = 0; s < rank.semaphores.size(); ++s) {
      report(semaphores_[system_.semaphore(r, s)], r, kNone, s);
    }
  }
}

}  // namespace mscclc::proof
