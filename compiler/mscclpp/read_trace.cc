// Reads traces. What is out of range makes them none: Python has checked what programs can get
// wrong.
#include "compiler/mscclpp/read_trace.h"

#include <algorithm>

#include "compiler/mscclpp/number_map.h"

namespace mscclc::mscclpp {
namespace {

constexpr uint64_t kMaxRanks = 65536;
constexpr uint64_t kMaxChunks = (uint64_t{1} << 31) - 1;

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
  Kind kind;
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

uint64_t number_of(Name name) { return static_cast<uint64_t>(name); }

bool is_sum(Name name) { return name == Name::re || name == Name::repkt || name == Name::rre; }

uint64_t key_of(uint64_t a, uint64_t b) { return a << 32 | b; }

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
  void read_op(Name name);
  void read_channel();
  void read_switch();
  void read_semaphore();
  void read_group();
  void begin_loop();
  void end_loop();

  void nop();
  void barrier();
  void semaphore_op(Name name);
  void synchronize(Name name);
  void move(Name name);
  void within_rank(Name name);
  void read_reduce();
  void use_switch(Name name);

  uint32_t rank() { return static_cast<uint32_t>(words_.below(program_.ranks.size())); }
  uint8_t sync() { return static_cast<uint8_t>(words_.below(4)); }
  uint8_t reduction() { return static_cast<uint8_t>(words_.below(std::size(kReductions))); }
  PythonCall place() { return code_ << 32 | words_.number(); }
  /// nullptr: there is none, and words_ have failed.
  Channel* channel(bool by_switch);
  /// The next reference, to chunks of a rank's own buffer.
  Ref chunks();

  uint32_t block_of(uint32_t rank, uint64_t number);
  /// The blocks that the op is for: the one that its record names, or those of the group before it.
  const std::vector<Member>& members(uint32_t rank);
  void add(const Member& member, Op op);
  uint32_t position(uint32_t block, Channel& channel, uint32_t rank);
  Ref remote(uint32_t block, uint32_t peer, Ref ref, Kind access);
  Signals& signals(uint32_t& known, Kind kind, uint32_t source, uint32_t target);
  void sent(Channel& channel, PythonCall place);

  Span source(Ref ref) { return put(program_.sources, ref); }
  Span destination(Ref ref) { return put(program_.destinations, ref); }
  template <class T>
  static Span put(std::vector<T>& all, const T& one) {
    all.push_back(one);
    return {static_cast<uint32_t>(all.size() - 1), 1};
  }

  Words words_;
  Program program_;
  std::vector<Channel> channels_;
  NumberMap blocks_;            ///< by rank and number
  NumberMap positions_;         ///< of channels in tables, by channel and block
  NumberMap remotes_;           ///< by rank, peer and buffer
  NumberMap remote_positions_;  ///< by block, access and remote buffer
  NumberMap pairs_[kKinds];     ///< in Program::signals, by ranks
  uint64_t sources_ = 0;        ///< further ones of a sum
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
  if (sources_ > 0 && !is_sum(static_cast<Name>(record))) return words_.fail();
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
      if (record > number_of(Name::gstorepkt)) return words_.fail();
      read_op(static_cast<Name>(record));
      of_group_ = false;
  }
}

void Reader::read_op(Name name) {
  switch (name) {
    case Name::nop:
      return nop();
    case Name::barrier:
      return barrier();
    case Name::sem_acquire:
    case Name::sem_release:
      return semaphore_op(name);
    case Name::signal:
    case Name::rlxsignal:
    case Name::wait:
    case Name::rlxwait:
    case Name::flush:
      return synchronize(name);
    case Name::copy:
    case Name::cpkt:
    case Name::upkt:
    case Name::re:
    case Name::repkt:
      return within_rank(name);
    case Name::put:
    case Name::pws:
    case Name::pwsf:
    case Name::ppkt:
    case Name::rppkt:
    case Name::get:
      return move(name);
    case Name::rre:
      return read_reduce();
    case Name::glre:
    case Name::gstore:
    case Name::gstorepkt:
      return use_switch(name);
    default:
      return words_.fail();
  }
}

void Reader::read_channel() {
  const Kind kind = static_cast<Kind>(words_.below(static_cast<uint64_t>(Kind::by_switch)));
  Channel made{.kind = kind, .source = rank(), .target = rank()};
  if (kind == Kind::none) words_.fail();
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
  Channel made{.kind = Kind::by_switch, .source = 0, .target = 0};
  made.group = static_cast<uint32_t>(program_.switches.size());
  std::vector<uint32_t> joined(words_.count());
  for (uint32_t& member : joined) member = rank();
  if (words_.failed()) return;
  for (const uint32_t member : joined) {
    Rank& one = program_.ranks[member];
    auto& ends = one.channels[static_cast<size_t>(Kind::by_switch)];
    if (ends.empty()) one.channel_kinds.push_back(Kind::by_switch);
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
  pipeline_ = {.name = Name::pipeline};
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

void Reader::nop() {
  const uint32_t of = rank();
  const auto& blocks = members(of);
  Op op{.name = Name::nop};
  op.place = place();
  for (const Member& member : blocks) add(member, op);
}

void Reader::barrier() {
  const uint32_t of = rank();
  Op op{.name = Name::barrier};
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

void Reader::semaphore_op(Name name) {
  const uint32_t of = rank();
  const auto number = static_cast<uint32_t>(
      words_.below(words_.failed() ? 0 : program_.ranks[of].semaphores.size()));
  const auto& blocks = members(of);
  Op op{.name = name};
  op.sync = sync();
  op.place = place();
  if (words_.failed()) return;
  op.ids = put(program_.ids, number);
  for (const Member& member : blocks) add(member, op);
}

void Reader::synchronize(Name name) {
  Channel* const used = channel(false);
  if (used == nullptr) return;
  Channel& through = *used;
  const auto& blocks = members(through.source);
  Op op{.name = name, .kind = through.kind};
  op.sync = sync();
  op.place = place();
  if (words_.failed()) return;
  if (name == Name::signal || name == Name::rlxsignal) sent(through, op.place);
  if (name == Name::wait || name == Name::rlxwait) {
    Signals& count = signals(through.waits, through.kind, through.target, through.source);
    ++count.taken;
    count.last_taken = op.place;
  }
  for (const Member& member : blocks) {
    op.ids = put(program_.ids, position(member.block, through, through.source));
    add(member, op);
  }
}

void Reader::move(Name name) {
  Channel* const used = channel(false);
  if (used == nullptr) return;
  Channel& through = *used;
  const auto& blocks = members(through.source);
  Ref to = chunks(), from = chunks();
  to.count = from.count = words_.number();
  Op op{.name = name, .kind = through.kind};
  op.place = place();
  if (words_.failed()) return;
  if (name == Name::pws || name == Name::pwsf) sent(through, op.place);
  for (const Member& member : blocks) {
    op.ids = put(program_.ids, position(member.block, through, through.source));
    Ref& far = name == Name::get ? from : to;
    const Ref near = far;
    far = remote(member.block, through.target, far, through.kind);
    op.sources = source(from);
    op.destinations = destination(to);
    far = near;
    add(member, op);
  }
}

/// An op within a rank: it moves chunks, or adds others to them.
void Reader::within_rank(Name name) {
  const uint32_t of = rank();
  const auto& blocks = members(of);
  Ref to = chunks(), from = chunks();
  to.count = from.count = words_.number();
  Op op{.name = name};
  op.place = place();
  op.sources = source(from);
  op.destinations = destination(to);
  for (uint64_t left = sources_; left > 0; --left) {
    Ref other = chunks();
    other.count = from.count;
    source(other);
    ++op.sources.count;
  }
  if (is_sum(name)) op.reduce = reduction();
  for (const Member& member : blocks) add(member, op);
}

void Reader::read_reduce() {
  Channel* const used = channel(false);
  if (used == nullptr) return;
  Channel& through = *used;
  const auto& blocks = members(through.source);
  Ref to = chunks(), from = chunks();
  to.count = from.count = words_.number();
  Op op{.name = Name::rre, .kind = through.kind};
  op.place = place();
  op.destinations = destination(to);
  std::vector<Ref> others(sources_);
  for (Ref& other : others) {
    other = chunks();
    other.count = from.count;
  }
  op.reduce = reduction();
  if (words_.failed()) return;
  for (const Member& member : blocks) {
    const uint32_t at = position(member.block, through, through.source);
    op.sources = source(from);
    op.ids = {static_cast<uint32_t>(program_.ids.size()), 0};
    for (const Ref& other : others) {
      source(remote(member.block, through.target, other, through.kind));
      program_.ids.push_back(at);
      ++op.sources.count;
      ++op.ids.count;
    }
    add(member, op);
  }
}

void Reader::use_switch(Name name) {
  Channel* const used = channel(true);
  if (used == nullptr) return;
  Channel& through = *used;
  const uint32_t of = rank();
  const auto& blocks = members(of);
  Ref joined{0, words_.number(), words_.number()};
  Ref local = chunks();
  local.count = joined.count;
  Op op{.name = name, .kind = Kind::by_switch};
  op.place = place();
  op.reduce = reduction();
  if (!words_.failed() && !through.ids.contains(of)) words_.fail();
  if (words_.failed()) return;
  for (const Member& member : blocks) {
    const uint32_t at = position(member.block, through, of);
    joined.where = static_cast<int32_t>(at);
    op.ids = put(program_.ids, at);
    op.sources = source(name == Name::glre ? joined : local);
    op.destinations = destination(name == Name::glre ? local : joined);
    add(member, op);
  }
}

Channel* Reader::channel(bool by_switch) {
  const uint64_t number = words_.below(channels_.size());
  if (!words_.failed() && (channels_[number].kind == Kind::by_switch) != by_switch) words_.fail();
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
    program_.ranks[rank].blocks.push_back(found);
  }
  return found;
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
    table.push_back(channel.kind == Kind::by_switch ? channel.ids.at(rank) : channel.id);
  }
  channel.last_block = block;
  return channel.last_position = found;
}

/// The reference of a block to chunks of another rank.
Ref Reader::remote(uint32_t block, uint32_t peer, Ref ref, Kind access) {
  const uint32_t of = program_.blocks[block].rank;
  auto& known = program_.ranks[of].remotes;
  const uint64_t far = key_of(of, uint64_t{peer} << 2 | static_cast<uint32_t>(ref.where - kInput));
  const uint32_t id = remotes_.try_emplace(far, static_cast<uint32_t>(known.size())).first;
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
  ref.where = static_cast<int32_t>(found);
  return ref;
}

/// The counts for two ranks; `known`: a channel remembers where they are.
Signals& Reader::signals(uint32_t& known, Kind kind, uint32_t source, uint32_t target) {
  if (known == UINT32_MAX) {
    const auto [found, is_new] = pairs_[static_cast<size_t>(kind)].try_emplace(
        key_of(source, target), static_cast<uint32_t>(program_.signals.size()));
    if (is_new) program_.signals.push_back({kind, source, target});
    known = found;
  }
  return program_.signals[known];
}

void Reader::sent(Channel& channel, PythonCall place) {
  Signals& count = signals(channel.signals, channel.kind, channel.source, channel.target);
  ++count.sent;
  count.last_sent = place;
}

}  // namespace

std::optional<Program> read_trace(std::span<const uint64_t> words) { return Reader(words).read(); }

}  // namespace mscclc::mscclpp
