#include "passes/prove/processes/knowledge.h"

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

Knowledge::Knowledge(const System& system, const CallOrder& calls, ThreadBlocks& blocks)
    : system_(system),
      calls_(calls),
      blocks_(blocks),
      posted_(2 * system.ports()),
      arrivals_(2 * system.ports()),
      caller_(system.ranks()),
      pages_(system.clock()),
      joins_(system.clock(), pages_) {}

News Knowledge::strong_news(uint32_t process) const {
  const ThreadBlock& block = blocks_[process];
  return {block.known, process,
          premise(Premise::signals_publish_the_last_meeting, block.settled, block.now)};
}

// Without release and acquire nothing of this call is ordered. But the block is in this call: all
// that its rank did and knew in earlier ones was over when their kernels ended.
// A barrier is about control, not data: a block that signals when it has seen that others are in
// this call publishes that they are.
News Knowledge::weak_news(uint32_t process) const {
  const ThreadBlock& block = blocks_[process];
  News news{premise(Premise::weak_news_are_of_the_entry, block.entry, block.known), process,
            block.entry_time};
  const Part& part = calls_.part(block.rank, calls_.now(block.rank));
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

void Knowledge::meet(uint32_t process, bool surely) {
  ThreadBlock& block = blocks_[process];
  // Knowing of this meeting is knowing what was learned at it: one that learns something has a
  // count of its own.
  if (block.settled == block.now && !block.gains.empty()) ++block.now;
  block.settled = block.now;
  if (surely) block.settled_nodes = block.nodes.size();
  rows_.clear();
  for (const News& news : block.gains) {
    if (rows_.empty() || !rows_.back().same(news.known)) rows_.push_back(news.known);
  }
  joins_.join(block.known, rows_);
  for (const News& news : block.gains) {
    if (news.process != kNone) block.known.raise(news.process, news.done, system_.clock());
    if (news.port == kNone) continue;
    learn_of_port(process, news.port, news, surely);
    // What a port has delivered it has read.
    const bool writer = system_.processes()[news.port].kind == ProcessKind::port_writer;
    if (writer) learn_of_port(process, news.port - 1, news, surely);
  }
  block.gains.clear();
  block.known.share_pages(pages_);
}

void Knowledge::forget(uint32_t process, const ThreadBlock::Learned& before) {
  blocks_[process].forget(before);
  for (const Learner& l : unsure_) arrivals_.forget(l.port, l.block, before.settled);
  unsure_.clear();
}

/// It is kept of the port that stands for this one: the block is turned back as far.
Knowledge::Learner Knowledge::learner(uint32_t process, uint32_t port) const {
  const uint32_t back = system_.back(system_.turns_of(system_.processes()[port].rank));
  return {system_.turned(port, back) - system_.width(), system_.turned(process, back)};
}

void Knowledge::learn_of_port(uint32_t process, uint32_t port, const News& news, bool surely) {
  const Learner l = learner(process, port);
  arrivals_.add(l.port, l.block, news.port_done, news.port_alone, blocks_[process].settled);
  if (!surely) unsure_.push_back(l);
}

/// It is kept of the port that stands for this one, and so many turns back what has learned it.
bool Knowledge::known_of_port(const Row& row, uint32_t knower, uint32_t done,
                              const Event& event) const {
  const uint32_t turns = system_.turns_of(system_.processes()[event.process].rank);
  const uint32_t port = system_.turned(event.process, system_.back(turns));
  return arrivals_.known(port - system_.width(), event.time, [&](uint32_t block, uint32_t count) {
    const uint32_t process = system_.turned(block, turns);
    return row[process] >= count || (process == knower && done >= count);
  });
}

std::vector<ReadValue> Knowledge::end_call(uint32_t rank) {
  Row& caller = caller_[rank];
  std::vector<ReadValue> reads;
  std::vector<Row> known;
  for (uint32_t b = calls_.first_block(rank); b < calls_.end_of_blocks(rank); ++b) {
    const uint32_t process = system_.block_process(rank, b);
    ThreadBlock& block = blocks_[process];
    meet(process);
    known.push_back(block.known);
    const std::vector<ReadValue>& read = block.nodes.values();
    reads.insert(reads.end(), read.begin(), read.end());
    block.nodes.clear();
    block.settled_nodes = 0;
    block.known = block.entry = {};  // the next call begins with what the caller knows
  }
  caller.join(known, system_.clock());
  for (uint32_t b = calls_.first_block(rank); b < calls_.end_of_blocks(rank); ++b) {
    const uint32_t process = system_.block_process(rank, b);
    caller.raise(process, blocks_[process].settled, system_.clock());
  }
  caller.share_pages(pages_);
  return reads;
}

}  // namespace mscclc::proof
