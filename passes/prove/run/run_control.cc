// Ops that move no data: who learns what from whom.
#include <algorithm>
#include <set>

#include "ir/program/signal_counts.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

// What a block publishes: what all its threads have done and know, as of their last meeting. A
// thread that signals alone knows no more about the others.
News Run::strong_news(uint32_t process) const {
  const Block& block = blocks_[process];
  return {block.known, process,
          premise(Premise::signals_publish_the_last_meeting, block.settled, block.now)};
}

// Without release and acquire nothing of this call is ordered. But the block is in this call: all
// that its rank did and knew in earlier ones was over when their kernels ended.
// A barrier is about control, not data: a block that signals when it has seen that others are in
// this call publishes that they are.
News Run::weak_news(uint32_t process) const {
  const Block& block = blocks_[process];
  News news{premise(Premise::weak_news_are_of_the_entry, block.entry, block.known), process,
            block.entry_time};
  const Part& part = part_of(block.rank, calls_[block.rank]);
  if (!premise(Premise::control_orders_barriers_only,
               part.contract().kind == CollectiveKind::barrier))
    return news;
  for (const uint32_t q : part.world) {
    const uint32_t caller = system_.caller_process(q);
    const uint32_t calls = block.known[caller];
    if (calls > news.known[caller]) news.known.raise(caller, calls, system_.clock());
  }
  return news;
}

/// The threads of the block meet: what each has done and seen, all have.
void Run::meet(uint32_t process) {
  Block& block = blocks_[process];
  // Knowing of this meeting is knowing what was learned at it: one that learns something has a
  // count of its own.
  if (block.settled == block.now && !block.gains.empty()) ++block.now;
  block.settled = block.now;
  block.settled_nodes = block.nodes.size();
  rows_.clear();
  for (const News& news : block.gains) {
    if (rows_.empty() || !rows_.back().same(news.known)) rows_.push_back(news.known);
  }
  joins_.join(block.known, rows_);
  for (const News& news : block.gains) {
    if (news.process != kNone) block.known.raise(news.process, news.done, system_.clock());
    if (news.port == kNone) continue;
    learn_of_port(process, news.port, news.port_done);
    // What a port has delivered it has read.
    const bool writer = system_.processes()[news.port].kind == ProcessKind::port_writer;
    if (writer) learn_of_port(process, news.port - 1, news.port_done);
  }
  block.gains.clear();
}

/// Notes it of the port that stands for this one: the block is turned back as far.
void Run::learn_of_port(uint32_t process, uint32_t port, uint32_t done) {
  const uint32_t back = system_.back(system_.turns_of(system_.processes()[port].rank));
  arrivals_.add(system_.turned(port, back) - system_.width(), system_.turned(process, back), done,
                blocks_[process].settled);
}

Run::Token Run::Counter::take() {
  Token token = std::move(tokens[first++]);
  if (2 * first > tokens.size()) {  // the room is used again
    tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(first));
    first = 0;
  }
  return token;
}

bool Run::do_control(uint32_t process, const Op& op, const OpInfo& row) {
  if (row.has(kMeets)) return arrive(process, op);
  if (row.has(kSyncs)) meet(process);
  if (row.has(kWaits)) return take(process, op, false);
  if (row.has(kAcquires)) return take(process, op, true);
  for (const Operand& o : program_.dsts(op)) {
    if (row.has(kSignals)) signal(process, o, op.relaxed);
    if (row.has(kFlushes)) flush(process, o.channel);
    if (row.has(kReleases)) release(process, o);
  }
  return true;
}

/// Takes one from each counter of the op; false if the block must wait for one.
bool Run::take(uint32_t process, const Op& op, bool semaphores) {
  Block& block = blocks_[process];
  const std::span<const Operand> targets = program_.dsts(op);
  for (; block.operand < targets.size(); ++block.operand) {
    const Operand& o = targets[block.operand];
    Counter& counter = semaphores ? semaphores_[system_.semaphore(block.rank, o.first)]
                                  : ends_[system_.end(block.rank, o.channel)];
    if (counter.free == 0 && counter.empty()) {
      counter.waiting = process;
      return false;
    }
    --counter.balance;
    if (counter.by_releaser.size() > 1) {
      take_shared(counter, block.rank, o.first, block);
    } else if (counter.free > 0) {
      --counter.free;
    } else {
      const Token token = counter.take();
      block.gains.push_back(premise(Premise::relaxed_waits_learn_less, !op.relaxed) ? token.strong
                                                                                    : token.weak);
    }
  }
  block.operand = 0;
  return true;
}

/// Of several releasers it is not known whose release came first. But if so many have been taken
/// that the count cannot have been reached without a certain release, that one is certainly over.
void Run::take_shared(Counter& counter, uint32_t rank, uint32_t semaphore, Block& block) {
  if (counter.free > 0) {
    --counter.free;
  } else {
    counter.take();
  }
  uint32_t& taken = counter.taken;
  ++taken;
  const Shared& shared = shared_[system_.semaphore(rank, semaphore)];
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

void Run::give(Counter& counter, Token token) {
  ++counter.balance;
  counter.tokens.push_back(std::move(token));
  if (counter.waiting == kNone) return;
  wake(counter.waiting);
  counter.waiting = kNone;
}

void Run::signal(uint32_t process, const Operand& target, bool relaxed) {
  const Block& block = blocks_[process];
  const Channel& channel = program_.ranks[block.rank].channels[target.channel];
  Token token{strong_news(process), weak_news(process)};
  if (channel.kind == ChannelKind::port) {  // the proxy signals when it has done what came before
    const uint32_t id = system_.port_writer(block.rank, target.channel);
    token.strong.port = id;
    token.strong.port_done = posted_[id - system_.width()];
  }
  if (!premise(Premise::relaxed_signals_publish_less, !relaxed)) token.strong = token.weak;
  if (channel.partner == kNone) return;
  const uint32_t back = system_.back(system_.turns_of(channel.peer));
  give(ends_[system_.end(channel.peer % system_.ranks(), channel.partner)],
       {system_.turned(token.strong, back), system_.turned(token.weak, back)});
}

void Run::release(uint32_t process, const Operand& target) {
  const uint32_t id = system_.semaphore(blocks_[process].rank, target.first);
  Counter& counter = semaphores_[id];
  const Token token{strong_news(process), {}};
  if (const auto shared = shared_.find(id); shared != shared_.end()) {
    const auto& who = shared->second.releasers;
    const size_t i = std::find(who.begin(), who.end(), process) - who.begin();
    counter.by_releaser.resize(who.size());
    counter.by_releaser[i].push_back(token);
  }
  give(counter, token);
}

/// The sources of all puts so far have been read. Nothing is said of the far end.
void Run::flush(uint32_t process, uint32_t channel) {
  Block& block = blocks_[process];
  const uint32_t id = system_.port_reader(block.rank, channel);
  block.gains.push_back({.port = premise(Premise::a_flush_shows_reads, id, id + 1),
                         .port_done = posted_[id - system_.width()]});
}

bool Run::arrive(uint32_t process, const Op& op) {
  Block& block = blocks_[process];
  std::vector<uint32_t> members;
  for (const Operand& o : program_.dsts(op)) members.push_back(o.first);
  std::sort(members.begin(), members.end());
  std::vector<Barrier>& barriers = barriers_[block.rank];
  auto barrier = std::find_if(barriers.begin(), barriers.end(),
                              [&](const Barrier& b) { return b.blocks == members; });
  if (barrier == barriers.end()) barrier = barriers.insert(barrier, {members, {}});
  barrier->arrived.push_back(process);
  if (barrier->arrived.size() <
      premise(Premise::barriers_wait_for_all, barrier->blocks.size(), barrier->blocks.size() - 1)) {
    return false;
  }
  const std::vector<uint32_t> arrived = std::exchange(barrier->arrived, {});
  Row all;
  for (const uint32_t p : arrived) {
    meet(p);
    learn(all, strong_news(p), system_.clock());
  }
  for (const uint32_t p : arrived) {
    blocks_[p].known = all;
    if (p == process) continue;
    next_op(p);
    wake(p);
  }
  return true;
}

/// Counters must have one process that gives and one that takes; then the k-th taken is the k-th
/// given, whatever the schedule. Semaphores with several releasers are decided by counting.
void Run::find_sharing() {
  struct Users {
    uint32_t gives = kNone, takes = kNone;
  };
  std::vector<Users> ends(system_.ends()), semaphores(system_.semaphores());
  const auto use = [&](uint32_t& user, uint32_t process, uint32_t rank, uint32_t op,
                       const char* what) {
    if (user == kNone) user = process;
    // Blocks of different plans are never there at once; those of one have been looked at alone.
    if (user == process || system_.joint() || !may_report(uint64_t{process} << 32 | op)) return;
    Finding& finding = add_finding(Finding::Kind::undecided);
    finding.first = {user, 0, kNone, 0};
    finding.second = {process, 0, op, 0};
    finding.rank = rank;
    finding.text = what;
  };
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    const Rank& rank = program_.ranks[r];
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const Op& op = rank.ops[i];
      const OpInfo& row = info(op.kind);
      const uint32_t p = system_.block_process(r, op.block);
      for (const Operand& o : program_.dsts(op)) {
        const bool port = o.channel != kNone && rank.channels[o.channel].kind == ChannelKind::port;
        if (row.has(kSignals) || (row.moves_data() && port)) {
          if (premise(Premise::one_block_sends, false)) continue;
          use(ends[system_.end(r, o.channel)].gives, p, r, i,
              "several thread blocks send through one end of a channel");
        } else if (row.has(kFlushes)) {  // what another block posts may come before it or after
          if (premise(Premise::the_poster_flushes, false)) continue;
          use(ends[system_.end(r, o.channel)].gives, p, r, i,
              "several thread blocks send through, or flush, one port");
        }
        if (row.has(kWaits) && !premise(Premise::one_block_waits, false)) {
          use(ends[system_.end(r, o.channel)].takes, p, r, i,
              "several thread blocks wait at one end of a channel");
        }
        if (row.has(kAcquires) && !premise(Premise::one_block_acquires, false)) {
          use(semaphores[system_.semaphore(r, o.first)].takes, p, r, i,
              "several thread blocks acquire one semaphore");
        }
        if (row.has(kReleases)) {
          Users& users = semaphores[system_.semaphore(r, o.first)];
          const uint32_t id = system_.semaphore(r, o.first);
          if (users.gives == kNone) users.gives = p;
          if (users.gives != p) shared_[id].initial = rank.semaphores[o.first].initial;
        }
      }
    }
  }
  count_shared_releases();
}

/// How often each releaser of a shared semaphore releases it in a call.
void Run::count_shared_releases() {
  if (shared_.empty()) return;
  for (uint32_t r = 0; r < system_.ranks(); ++r) {
    for (const Op& op : program_.ranks[r].ops) {
      if (!info(op.kind).has(kReleases)) continue;
      const uint32_t p = system_.block_process(r, op.block);
      const uint32_t times = op.loop == kNone ? 1 : cuts_.rounds(op.loop);
      for (const Operand& o : program_.dsts(op)) {
        const auto entry = shared_.find(system_.semaphore(r, o.first));
        if (entry == shared_.end()) continue;
        Shared& shared = entry->second;
        shared.in_loop |= op.loop != kNone;
        const auto who = std::find(shared.releasers.begin(), shared.releasers.end(), p);
        const size_t i = who - shared.releasers.begin();
        if (who == shared.releasers.end()) {
          shared.releasers.push_back(p);
          shared.releases.push_back(0);
        }
        shared.releases[i] += times;
        shared.total += times;
      }
    }
  }
}

}  // namespace mscclc::proof
