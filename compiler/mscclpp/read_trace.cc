// Reads traces. What is out of range makes them none: Python has checked what programs can get
// wrong.
#include "compiler/mscclpp/read_trace.h"

#include <algorithm>
#include <unordered_map>

namespace mscclc::mscclpp {
namespace {

constexpr uint64_t kMaxRanks = 65536;
constexpr uint64_t kMaxChunks = (uint64_t{1} << 31) - 1;
constexpr uint64_t kEndOfReductions = static_cast<uint64_t>(ReduceOp::max) + 1;

/// Words one after another; after one that is out of range all are 0, and failed().
class Words {
 public:
  explicit Words(std::span<const uint64_t> words) : words_(words) {}

  size_t left() const { return words_.size() - at_; }
  bool at_end() const { return at_ == words_.size(); }
  bool failed() const { return failed_; }
  /// The next word, which must be less than `end`.
  uint64_t below(uint64_t end) {
    if (failed_ || at_end() || words_[at_] >= end) {
      failed_ = true;
      return 0;
    }
    return words_[at_++];
  }
  uint32_t number() { return static_cast<uint32_t>(below(uint64_t{1} << 32)); }
  /// How many groups of `size` words follow.
  uint64_t count(uint64_t size = 1) {
    const uint64_t most = (words_.size() - at_) / size + 1;
    return below(most);
  }
  void fail() { failed_ = true; }

 private:
  std::span<const uint64_t> words_;
  size_t at_ = 0;
  bool failed_ = false;
};

struct Channel {
  ChannelKind kind;
  uint32_t source, target;
  uint32_t id = 0;                        ///< among those of its kind of the source
  uint32_t group = 0;                     ///< a switch: in Program::switches
  std::map<uint32_t, uint32_t> ids = {};  ///< a switch: for each of its ranks
  uint32_t last_block = UINT32_MAX,
           last_position = 0;  ///< most calls are for the same block as before
  uint32_t signals = UINT32_MAX, waits = UINT32_MAX;  ///< in Program::signals
};

/// A block that the next op is for, and its part of a group.
struct Member {
  uint32_t block;
  uint32_t at = 0, size = 0;
};

uint64_t key_of(uint64_t a, uint64_t b) { return a << 32 | b; }

static_assert(kOpKinds <= kCode, "ops, then other records");

using Numbers = std::unordered_map<uint64_t, uint32_t>;

class Reader {
 public:
  explicit Reader(std::span<const uint64_t> words) : words_(words) {}

  std::optional<Program> read() {
    read_head();
    while (!words_.at_end() && !words_.failed()) read_record();
    if (words_.failed() || loop_) return std::nullopt;
    return std::move(program_);
  }

 private:
  void read_head();
  void read_record();
  void read_op(OpKind kind, bool relaxed);
  void read_channel();
  void read_switch();
  void read_semaphore();
  void read_group();
  void begin_loop();
  void end_loop();

  void sync(Op op);
  void barrier(Op op);
  void semaphore_op(Op op);
  void synchronize(Op op);
  void move(Op op);
  void use_switch(Op op);

  uint32_t rank() { return static_cast<uint32_t>(words_.below(program_.ranks.size())); }
  uint8_t syncs() { return static_cast<uint8_t>(words_.below(4)); }
  ReduceOp reduction() { return static_cast<ReduceOp>(words_.below(kEndOfReductions)); }
  PythonCall place() { return code_ << 32 | words_.number(); }
  /// One of these kinds. nullptr: there is none, and words_ have failed.
  Channel* channel(uint8_t kinds);
  /// The next reference, to chunks of a rank's own buffer.
  Ref chunks();

  uint32_t block_of(uint32_t rank, uint64_t number);
  /// The blocks that the op is for: the one that its record names, or those of the group before it.
  const std::vector<Member>& members(uint32_t rank);
  void add(const Member& member, Op op);
  uint32_t position(uint32_t block, Channel& channel, uint32_t rank);
  Ref remote(uint32_t block, uint32_t peer, Ref ref, ChannelKind access);
  Signals& signals(uint32_t& known, ChannelKind kind, uint32_t source, uint32_t target);
  void sent(const Op& op, Channel& channel);

  template <class T>
  static Slice put(std::vector<T>& all, const T& one) {
    all.push_back(one);
    return {static_cast<uint32_t>(all.size() - 1), 1};
  }

  Words words_;
  Program program_;
  std::vector<Channel> channels_;
  Numbers blocks_;            ///< by rank and number
  Numbers positions_;         ///< of channels in tables, by channel and block
  Numbers remotes_;           ///< by rank, peer and buffer
  Numbers remote_positions_;  ///< by block, access and remote buffer
  Numbers pairs_[kKinds];     ///< in Program::signals, by ranks
  uint64_t sources_ = 0;      ///< further ones of a sum
  std::vector<Ref> from_;     ///< all of an op
  std::vector<Member> members_;
  bool of_group_ = false;
  uint64_t code_ = 0;
  bool loop_ = false;
  Op pipeline_;
  std::vector<uint32_t> in_loop_;  ///< blocks with ops in the loop
};

void Reader::read_head() {
  if (words_.below(kTraceFormat + 1) != kTraceFormat) words_.fail();
  program_.instances = static_cast<uint32_t>(words_.below(kMaxBlocks + 1));
  if (program_.instances == 0) words_.fail();
  const uint64_t flags = words_.below(8);
  program_.fusion = (flags & kFusion) != 0;
  program_.auto_sync = (flags & kAutoSync) != 0;
  program_.limits = (flags & kLimits) != 0;
  const uint64_t ranks = words_.count(3);
  if (ranks > kMaxRanks) return words_.fail();
  program_.ranks.resize(ranks);
  for (Rank& rank : program_.ranks) {
    rank.input = words_.below(kMaxChunks + 1);
    rank.output = words_.below(kMaxChunks + 1);
    rank.scratch = words_.below(kMaxChunks + 1);
  }
}

void Reader::read_record() {
  const uint64_t word = words_.below(words_.left() << 8);
  const uint64_t record = word & 255;
  sources_ = word >> 8;
  const uint64_t row = record & ~kRelaxed;
  if (row < op_table().size()) {
    if (op_table()[row].has(kApplies) || op_table()[row].has_flags())
      return words_.fail();  // that language has none
    read_op(static_cast<OpKind>(row), row != record);
    of_group_ = false;
    return;
  }
  if (sources_ > 0) words_.fail();
  switch (record) {
    case kCode:
      code_ = words_.number();
      return;
    case kGroup:
      return read_group();
    case kChannel:
      return read_channel();
    case kSwitch:
      return read_switch();
    case kSemaphore:
      return read_semaphore();
    case kLoop:
      return begin_loop();
    case kEndOfLoop:
      return end_loop();
    default:
      return words_.fail();
  }
}

/// Calls are basic ops, or what a port does in one request; sums that do more, fusion makes.
void Reader::read_op(OpKind kind, bool relaxed) {
  const OpInfo& row = info(kind);
  const bool is_call = row.made_of.empty() ? kind != OpKind::pipeline : !row.has(kReduces);
  const bool by_switch = row.channels == mscclc::kSwitch;
  const bool is_right =
      (!relaxed || !row.relaxed.empty()) && (sources_ == 0 || (row.has(kReduces) && !by_switch));
  if (!is_call || !is_right) return words_.fail();
  const Op op{.kind = kind, .relaxed = relaxed};
  if (by_switch) return use_switch(op);
  if (row.moves_data()) return move(op);
  if (row.has(kMeets)) return barrier(op);
  if (row.has(kSyncs)) return sync(op);
  return row.channels == kNoChannel ? semaphore_op(op) : synchronize(op);
}

void Reader::read_channel() {
  const auto kind = static_cast<ChannelKind>(words_.below(kKinds - 1));  // a switch has its own
  Channel made{.kind = kind, .source = rank(), .target = rank()};
  if (words_.failed()) return;
  Rank& source = program_.ranks[made.source];
  auto& ends = source.channels[static_cast<size_t>(kind)];
  if (ends.empty()) source.channel_kinds.push_back(kind);
  made.id = static_cast<uint32_t>(ends.size());
  ends.push_back({made.target, 0});
  channels_.push_back(std::move(made));
}

void Reader::read_switch() {
  const int32_t buffer = buffer_of(words_.below(kBuffers));
  Channel made{.kind = ChannelKind::switch_, .source = 0, .target = 0};
  made.group = static_cast<uint32_t>(program_.switches.size());
  std::vector<uint32_t> joined(words_.count());
  for (uint32_t& member : joined) member = rank();
  if (words_.failed()) return;
  for (const uint32_t member : joined) {
    Rank& one = program_.ranks[member];
    auto& ends = one.channels[static_cast<size_t>(ChannelKind::switch_)];
    if (ends.empty()) one.channel_kinds.push_back(ChannelKind::switch_);
    made.ids[member] = static_cast<uint32_t>(ends.size());
    ends.push_back({made.group, buffer});
  }
  program_.switches.push_back(std::move(joined));
  channels_.push_back(std::move(made));
}

void Reader::read_semaphore() {
  const uint32_t of = rank(), value = words_.number();
  if (!words_.failed()) program_.ranks[of].semaphores.push_back(value);
}

void Reader::read_group() {
  const uint32_t size = static_cast<uint32_t>(words_.below(kMaxBlocks + 1));
  members_.resize(words_.count(2));
  for (Member& member : members_) {
    member.block = static_cast<uint32_t>(words_.below(kMaxBlocks));
    member.at = static_cast<uint32_t>(words_.below(size));
    member.size = size;
  }
  of_group_ = true;
}

void Reader::begin_loop() {
  if (loop_) words_.fail();
  pipeline_ = {.kind = OpKind::pipeline};
  pipeline_.detail[0] = words_.number();
  pipeline_.detail[1] = words_.number();
  pipeline_.place = place();
  loop_ = true;
}

void Reader::end_loop() {
  if (!loop_) words_.fail();
  for (const uint32_t index : in_loop_) {
    Block& block = program_.blocks[index];
    pipeline_.body = block.body;
    block.ops.push_back(pipeline_);
    block.body = -1;
  }
  in_loop_.clear();
  loop_ = false;
}

void Reader::sync(Op op) {
  const uint32_t of = rank();
  const auto& blocks = members(of);
  op.place = place();
  for (const Member& member : blocks) add(member, op);
}

void Reader::barrier(Op op) {
  const uint32_t of = rank();
  op.place = place();
  std::vector<uint32_t> numbers(words_.count());
  for (uint32_t& number : numbers) number = static_cast<uint32_t>(words_.below(kMaxBlocks));
  if (words_.failed()) return;
  auto& barriers = program_.ranks[of].barriers;
  op.detail[0] =
      barriers.try_emplace(numbers, static_cast<uint32_t>(barriers.size())).first->second;
  op.detail[1] = static_cast<uint32_t>(numbers.size());
  for (const uint32_t number : numbers) add({block_of(of, number)}, op);
}

void Reader::semaphore_op(Op op) {
  const uint32_t of = rank();
  const auto number = static_cast<uint32_t>(
      words_.below(words_.failed() ? 0 : program_.ranks[of].semaphores.size()));
  const auto& blocks = members(of);
  op.sync = syncs();
  op.place = place();
  if (words_.failed()) return;
  op.ids = put(program_.ids, number);
  for (const Member& member : blocks) add(member, op);
}

void Reader::synchronize(Op op) {
  Channel* const used = channel(kMemory | kPort);
  if (used == nullptr) return;
  Channel& through = *used;
  const auto& blocks = members(through.source);
  op.channels = through.kind;
  op.sync = syncs();
  op.place = place();
  if (words_.failed()) return;
  if (info(op.kind).has(kWaits)) {
    Signals& count = signals(through.waits, through.kind, through.target, through.source);
    ++count.taken;
    count.last_taken = op.place;
  }
  sent(op, through);
  for (const Member& member : blocks) {
    op.ids = put(program_.ids, position(member.block, through, through.source));
    add(member, op);
  }
}

/// An op that moves chunks or adds them up, within a rank or through a channel to another.
void Reader::move(Op op) {
  const OpInfo& row = info(op.kind);
  Channel* const through = row.channels == kNoChannel ? nullptr : channel(kMemory | kPort);
  if (through != nullptr) op.channels = through->kind;
  const uint32_t of = through == nullptr ? rank() : through->source;
  const auto& blocks = members(of);
  Ref to = chunks();
  from_.assign(1, chunks());
  to.count = from_[0].count = words_.number();
  op.place = place();
  for (uint64_t left = sources_; left > 0 && !words_.failed(); --left) {
    from_.push_back(chunks());
    from_.back().count = to.count;
  }
  if (row.has(kReduces)) op.reduce = reduction();
  if (words_.failed()) return;
  if (through != nullptr) sent(op, *through);
  for (const Member& member : blocks) {
    const auto near_or_far = [&](const Slots& slots, size_t i, Ref ref) {
      if (slots.of(i, true).kind == SlotKind::local) return ref;
      program_.ids.push_back(position(member.block, *through, of));
      ++op.ids.count;
      return remote(member.block, through->target, ref, through->kind);
    };
    op.ids = {static_cast<uint32_t>(program_.ids.size()), 0};
    op.sources = {static_cast<uint32_t>(program_.sources.size()),
                  static_cast<uint32_t>(from_.size())};
    for (size_t i = 0; i < from_.size(); ++i) {
      program_.sources.push_back(near_or_far(row.srcs, i, from_[i]));
    }
    op.destinations = put(program_.destinations, near_or_far(row.dsts, 0, to));
    add(member, op);
  }
}

void Reader::use_switch(Op op) {
  Channel* const used = channel(mscclc::kSwitch);
  if (used == nullptr) return;
  Channel& through = *used;
  const uint32_t of = rank();
  const auto& blocks = members(of);
  Ref joined{0, words_.number(), words_.number()};
  Ref local = chunks();
  local.count = joined.count;
  op.channels = through.kind;
  op.place = place();
  op.reduce = reduction();
  if (!words_.failed() && !through.ids.contains(of)) words_.fail();
  if (words_.failed()) return;
  const bool reads = info(op.kind).has(kReduces);
  for (const Member& member : blocks) {
    const uint32_t at = position(member.block, through, of);
    joined.where = static_cast<int32_t>(at);
    op.ids = put(program_.ids, at);
    op.sources = put(program_.sources, reads ? joined : local);
    op.destinations = put(program_.destinations, reads ? local : joined);
    add(member, op);
  }
}

Channel* Reader::channel(uint8_t kinds) {
  const uint64_t number = words_.below(channels_.size());
  if (!words_.failed() && (kinds & bit(channels_[number].kind)) == 0) words_.fail();
  return words_.failed() ? nullptr : &channels_[number];
}

Ref Reader::chunks() {
  const uint64_t word = words_.below((kMaxChunks + 1) * 4);
  if (word % 4 >= kBuffers) words_.fail();
  return {buffer_of(word % 4), static_cast<uint32_t>(word / 4), 0};
}

uint32_t Reader::block_of(uint32_t rank, uint64_t number) {
  const auto [found, is_new] =
      blocks_.try_emplace(key_of(rank, number), static_cast<uint32_t>(program_.blocks.size()));
  if (is_new) {
    Block& made = program_.blocks.emplace_back();
    made.rank = rank;
    made.number = static_cast<uint32_t>(number);
    program_.ranks[rank].blocks.push_back(found->second);
  }
  return found->second;
}

const std::vector<Member>& Reader::members(uint32_t rank) {
  const uint64_t number = words_.below(kMaxBlocks);
  if (!of_group_) members_.assign(1, {static_cast<uint32_t>(number)});
  if (words_.failed()) members_.clear();
  for (Member& member : members_) member.block = block_of(rank, member.block);
  return members_;
}

void Reader::add(const Member& member, Op op) {
  if (words_.failed()) return;
  op.group_at = member.at;
  op.group_size = member.size;
  Block& block = program_.blocks[member.block];
  if (!loop_) return block.ops.push_back(op);
  if (block.body < 0) {
    block.body = static_cast<int32_t>(program_.bodies.size());
    program_.bodies.emplace_back();
    in_loop_.push_back(member.block);
  }
  program_.bodies[static_cast<size_t>(block.body)].push_back(op);
}

/// The position of a channel in the table of a block, where it is entered if it is new.
uint32_t Reader::position(uint32_t block, Channel& channel, uint32_t rank) {
  if (channel.last_block == block) return channel.last_position;
  Tables& tables = program_.blocks[block].channels;
  auto& table = tables.of[static_cast<size_t>(channel.kind)];
  const auto number = static_cast<uint64_t>(&channel - channels_.data());
  const auto [found, is_new] =
      positions_.try_emplace(key_of(number, block), static_cast<uint32_t>(table.size()));
  if (is_new) {
    if (table.empty()) tables.kinds.push_back(channel.kind);
    table.push_back(channel.kind == ChannelKind::switch_ ? channel.ids.at(rank) : channel.id);
  }
  channel.last_block = block;
  return channel.last_position = found->second;
}

/// The reference of a block to chunks of another rank.
Ref Reader::remote(uint32_t block, uint32_t peer, Ref ref, ChannelKind access) {
  const uint32_t of = program_.blocks[block].rank;
  auto& known = program_.ranks[of].remotes;
  const uint64_t far = key_of(of, uint64_t{peer} << 2 | static_cast<uint32_t>(ref.where - kInput));
  const uint32_t id = remotes_.try_emplace(far, static_cast<uint32_t>(known.size())).first->second;
  if (id == known.size()) known.push_back({peer, ref.where, {}});
  auto& kinds = known[id].access;
  if (std::find(kinds.begin(), kinds.end(), access) == kinds.end()) kinds.push_back(access);
  Tables& tables = program_.blocks[block].remotes;
  auto& table = tables.of[static_cast<size_t>(access)];
  const uint64_t entry = key_of(uint64_t{block} << 2 | static_cast<uint64_t>(access), id);
  const auto [found, is_new] =
      remote_positions_.try_emplace(entry, static_cast<uint32_t>(table.size()));
  if (is_new) {
    if (table.empty()) tables.kinds.push_back(access);
    table.push_back(id);
  }
  ref.where = static_cast<int32_t>(found->second);
  return ref;
}

/// The counts for two ranks; `known`: a channel remembers where they are.
Signals& Reader::signals(uint32_t& known, ChannelKind kind, uint32_t source, uint32_t target) {
  if (known == UINT32_MAX) {
    const auto [found, is_new] = pairs_[static_cast<size_t>(kind)].try_emplace(
        key_of(source, target), static_cast<uint32_t>(program_.signals.size()));
    if (is_new) program_.signals.push_back({kind, source, target});
    known = found->second;
  }
  return program_.signals[known];
}

/// Counts the signal that an op may be.
void Reader::sent(const Op& op, Channel& channel) {
  if (!info(op.kind).has(kSignals)) return;
  Signals& count = signals(channel.signals, channel.kind, channel.source, channel.target);
  ++count.sent;
  count.last_sent = op.place;
}

}  // namespace

std::optional<Program> read_trace(std::span<const uint64_t> words) { return Reader(words).read(); }

}  // namespace mscclc::mscclpp
