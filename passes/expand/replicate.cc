// replicate: what `launch instances: n` asks for: every chunk is cut in n, and n copies of the
// program, each with its own blocks, channels, semaphores and barriers, do one part each.
//
//   interleaved:  chunk c of instance j is chunk c n + j
//   blocked:      chunk c of a row of S chunks is chunk j S + c of the row of S n
//
// Whatever has an id is multiplied alike: block b becomes b n + j, so do channels, semaphores and
// pipelines; labels get one more key, `up[1]` becomes `up[1, 0]` and `up[1, 1]`. The smaller side
// of a custom contract is a prefix of the larger, which `blocked` would tear apart: such programs
// are interleaved.
//
// A reference to several chunks stands for them one by one. Where its parts no longer lie side by
// side (interleaved always, blocked between rows), the op is cut at these places; of a put with
// signal all but the last are plain puts, so that signals keep their count.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/program/applied.h"
#include "passes/framework/passes.h"

namespace mscclc {
namespace {

constexpr uint64_t kMax = 0x7fffffff;     // ids and chunk indexes stay below
constexpr uint64_t kMaxBlocks = 4096;     // of a rank, as in the language
constexpr uint64_t kMaxOps = 64'000'000;  // of a program, as in the language

/// Where a chunk goes, and how many chunks from it on stay side by side.
struct Target {
  uint32_t chunk, run;
};

/// Rounds that a pipeline makes, for every message: ceil(chunks / unit * longest chunk).
using Ratio = std::pair<uint64_t, uint64_t>;

Ratio ratio(const Loop& loop) {
  const uint64_t divisor = std::gcd(loop.unit, uint64_t{loop.chunks});
  return {loop.unit / divisor, loop.chunks / divisor};
}

class Replicator {
 public:
  explicit Replicator(Program& program)
      : program_(program),
        n_(program.launch.instances),
        blocked_(program.launch.policy == Policy::blocked && !has_prefix_side() && !has_shards() &&
                 program.flags.empty()) {}  // which cover neighbouring chunks

  /// False if cutting ops makes more than a program may have.
  bool run() {
    find_layouts();
    find_cut_loops();
    if (!few_ops()) return false;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) replicate_ops(r);
    program_.operands.swap(operands_);
    for (Rank& rank : program_.ranks) replicate_things(rank);
    replicate_loops();
    replicate_contract();
    for (FlagArray& flags : program_.flags) {  // each instance raises those of the output
      if (flags.of_output) flags.raises *= n_;
    }
    program_.launch.instances = 1;
    program_.launch.policy = Policy::interleaved;
    return true;
  }

 private:
  bool has_prefix_side() const {
    const Contract& c = program_.contract;
    return c.kind == CollectiveKind::custom &&
           c.shape(Side::input, 0).chunks() != c.shape(Side::output, 0).chunks();
  }

  /// Shards are neighbouring chunks, which `blocked` would tear apart, too.
  bool has_shards() const {
    return std::ranges::any_of(program_.externals, [](const rows::External& e) {
      return e.holding == rows::Holding::sharded;
    });
  }

  // ---- chunks ----

  void find_layouts() {
    const Contract& c = program_.contract;
    const size_t ranks = program_.ranks.size();
    if (!blocked_) return;
    columns_ = c.kind == CollectiveKind::custom ? c.shape(Side::input, 0).columns
                                                : (c.chunks.empty() ? 1 : c.chunks.back());
    if (c.kind != CollectiveKind::alltoallv) return;
    for (const Side side : {Side::input, Side::output}) {
      std::vector<std::vector<uint32_t>>& rows = rows_[static_cast<size_t>(side)];
      rows.resize(ranks);
      for (uint32_t r = 0; r < ranks; ++r) {
        rows[r].push_back(0);
        for (const uint32_t length : c.shape(side, r).lengths) {
          rows[r].push_back(rows[r].back() + length);
        }
      }
    }
  }

  Target target(uint32_t owner, const Operand& o, uint32_t at, uint32_t j) const {
    const uint32_t chunk = o.first + at;
    if (!blocked_) return {chunk * n_ + j, 1};
    if (o.buffer >= kFirstScratch) {  // one row
      return {program_.ranks[owner].buffers[o.buffer].chunks * j + chunk, o.count - at};
    }
    uint32_t begin, end;
    if (rows_[0].empty()) {
      begin = chunk - chunk % columns_;
      end = begin + columns_;
    } else {
      const std::vector<uint32_t>& rows = rows_[o.buffer == kOutput ? 1 : 0][owner];
      const auto next = std::upper_bound(rows.begin(), rows.end(), chunk);
      begin = *(next - 1);
      end = *next;
    }
    return {begin * n_ + j * (end - begin) + chunk - begin, end - chunk};
  }

  uint32_t owner_of(uint32_t rank, const Operand& o) const {
    if (o.channel == kNone) return rank;
    const Channel& channel = program_.ranks[rank].channels[o.channel];
    return channel.kind == ChannelKind::switch_ ? rank : channel.peer;
  }

  /// How many chunks, from `at` on, stay side by side in all operands of an op.
  uint32_t common_run(uint32_t rank, const Op& op, uint32_t at) const {
    const Operand* o = program_.operands.at(op.operands);
    uint32_t run = o->count - at;
    for (const Operand* end = o + op.dsts + op.srcs; o != end; ++o) {
      run = std::min(run, target(owner_of(rank, *o), *o, at, 0).run);
    }
    if (op.applied.count != 0) run = std::min(run, target(rank, rows_of(op), at, 0).run);
    return run;
  }

  /// The rows that an `apply` takes of externals, as chunks of the output.
  Operand rows_of(const Op& op) const {
    return {.buffer = kOutput,
            .first = applied(program_, op).first,
            .count = program_.operands[op.operands].count};
  }

  Slice replicate_applied(uint32_t r, const Op& op, uint32_t at, uint32_t j) {
    if (op.applied.count == 0) return {};
    return program_.append(with_first(program_, op, target(r, rows_of(op), at, j).chunk));
  }

  /// Pipelines with an op that must be cut are cut chunk by chunk, all their ops alike: then each
  /// reference still has as many chunks as the pipeline says, one. So are all pipelines that run
  /// equally often, as ranks and blocks count on it.
  void find_cut_loops() {
    std::vector<Ratio> ratios;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Op& op : program_.ranks[r].ops) {
        if (op.loop == kNone || program_.loops[op.loop].chunks == 1) continue;
        if (!info(op.kind).moves_data()) continue;
        if (common_run(r, op, 0) == program_.operands[op.operands].count) continue;
        const Ratio found = ratio(program_.loops[op.loop]);
        if (std::ranges::find(ratios, found) == ratios.end()) ratios.push_back(found);
      }
    }
    cut_.assign(program_.loops.size(), false);
    for (size_t l = 0; l < cut_.size() && !ratios.empty(); ++l) {
      cut_[l] = std::ranges::find(ratios, ratio(program_.loops[l])) != ratios.end();
    }
  }

  // ---- ops ----

  bool few_ops() const {
    uint64_t ops = 0;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Op& op : program_.ranks[r].ops) {
        ops += (info(op.kind).moves_data() ? pieces(r, op) : 1) * n_;
        if (ops > kMaxOps) return false;
      }
    }
    return true;
  }

  /// How many ops an op is cut into, or more than a program may have.
  uint64_t pieces(uint32_t r, const Op& op) const {
    const uint32_t count = program_.operands[op.operands].count;
    if (!blocked_ || (op.loop != kNone && cut_[op.loop])) return count;
    uint64_t found = 0;
    for (uint32_t at = 0; at < count && found <= kMaxOps; ++found) at += common_run(r, op, at);
    return found;
  }

  void replicate_ops(uint32_t r) {
    Rank& rank = program_.ranks[r];
    const std::vector<Op> ops = std::move(rank.ops);
    rank.ops.clear();
    rank.ops.reserve(ops.size() * n_);
    for (uint32_t j = 0; j < n_; ++j) {
      for (size_t i = 0; i < ops.size();) {
        if (!info(ops[i].kind).moves_data()) {
          add_control(rank, ops[i++], j);
          continue;
        }
        const size_t end = parts_end(ops, i);
        add_data(r, {&ops[i], end - i}, j);
        i = end;
      }
    }
  }

  /// The parts of one group op stand side by side and share their operands; keep it so.
  size_t parts_end(const std::vector<Op>& ops, size_t i) const {
    const Op& first = ops[i];
    size_t end = i + 1;
    while (end < ops.size() && ops[end].operands == first.operands &&
           ops[end].parts == first.parts && ops[end].part == ops[end - 1].part + 1) {
      ++end;
    }
    return end;
  }

  void add_control(Rank& rank, Op op, uint32_t j) {
    const Operand* from = program_.operands.at(op.operands);
    Operand* const to = operands_.add(op.dsts, op.operands);
    for (uint32_t k = 0; k < op.dsts; ++k) {
      Operand o = from[k];
      if (o.channel != kNone) {
        o.channel = o.channel * n_ + j;
      } else if (!info(op.kind).has_flags()) {
        o.first = o.first * n_ + j;  // a semaphore or a block
      }
      to[k] = o;
    }
    add(rank, op, j);
  }

  void add_data(uint32_t r, std::span<const Op> parts, uint32_t j) {
    const Op& op = parts[0];
    const uint32_t count = program_.operands[op.operands].count;
    const bool by_chunk = op.loop != kNone && cut_[op.loop];
    for (uint32_t at = 0; at < count;) {
      const uint32_t run = by_chunk || count == 1 ? 1 : common_run(r, op, at);
      const uint32_t operands = add_operands(r, op, at, run, j);
      const Slice applied = replicate_applied(r, op, at, j);
      const bool last = at + run == count;
      for (Op part : parts) {
        part.operands = operands;
        part.applied = applied;
        if (!last) part.kind = without_signal(part.kind);
        add(program_.ranks[r], part, j);
      }
      at += run;
    }
  }

  static OpKind without_signal(OpKind kind) {
    const bool signals =
        kind == OpKind::put_with_signal || kind == OpKind::put_with_signal_and_flush;
    return signals ? OpKind::put : kind;
  }

  uint32_t add_operands(uint32_t r, const Op& op, uint32_t at, uint32_t run, uint32_t j) {
    uint32_t first = 0;
    Operand* const to = operands_.add(size_t{op.dsts} + op.srcs, first);
    const Operand* from = program_.operands.at(op.operands);
    for (uint32_t k = 0; k < uint32_t{op.dsts} + op.srcs; ++k) {
      Operand o = from[k];
      o.first = target(owner_of(r, o), o, at, j).chunk;
      o.count = run;
      if (o.channel != kNone) o.channel = o.channel * n_ + j;
      to[k] = o;
    }
    return first;
  }

  void add(Rank& rank, Op op, uint32_t j) const {
    op.block = op.block * n_ + j;
    if (op.loop != kNone) op.loop = op.loop * n_ + j;
    rank.ops.push_back(op);
  }

  // ---- everything else ----

  void replicate_things(Rank& rank) {
    rank.blocks *= n_;
    for (Buffer& buffer : rank.buffers) {
      buffer.chunks *= n_;
      buffer.dims = replicate_dims(buffer.dims);
    }
    std::vector<Channel> channels;
    channels.reserve(rank.channels.size() * n_);
    for (const Channel& channel : rank.channels) {
      for (uint32_t j = 0; j < n_; ++j) {
        channels.push_back(channel);
        channels.back().label = replicate_label(channel.label, j);
        if (channel.partner != kNone) channels.back().partner = channel.partner * n_ + j;
      }
    }
    rank.channels.swap(channels);
    std::vector<Semaphore> semaphores;
    semaphores.reserve(rank.semaphores.size() * n_);
    for (const Semaphore& semaphore : rank.semaphores) {
      for (uint32_t j = 0; j < n_; ++j) {
        semaphores.push_back(semaphore);
        semaphores.back().label = replicate_label(semaphore.label, j);
      }
    }
    rank.semaphores.swap(semaphores);
  }

  Slice replicate_dims(Slice dims) {
    if (dims.count == 0) return dims;
    const std::span<const int64_t> old = program_.values(dims);
    scratch_.assign(old.begin(), old.end());
    scratch_.back() *= n_;
    return program_.append(scratch_);
  }

  Label replicate_label(const Label& label, uint32_t j) {
    const std::span<const int64_t> keys = program_.values(label.keys);
    scratch_.assign(keys.begin(), keys.end());
    scratch_.push_back(j);
    return {label.name, program_.append(scratch_)};
  }

  void replicate_loops() {
    std::vector<Loop> loops;
    loops.reserve(program_.loops.size() * n_);
    for (size_t l = 0; l < program_.loops.size(); ++l) {
      Loop loop = program_.loops[l];
      if (cut_[l]) {  // a round moves as much as before
        const uint64_t granule = uint64_t{loop.chunks} * program_.launch.align;
        loop.unit = (loop.unit + granule - 1) / granule * program_.launch.align;
        loop.chunks = 1;
      }
      loops.insert(loops.end(), n_, loop);
    }
    program_.loops.swap(loops);
  }

  void replicate_contract() {
    Contract& c = program_.contract;
    const auto multiply = [this](std::vector<uint32_t>& dims) {
      if (!dims.empty()) dims.back() *= n_;
    };
    if (c.kind != CollectiveKind::custom) {
      if (c.kind == CollectiveKind::barrier || c.kind == CollectiveKind::none) return;
      if (c.chunks.empty()) c.chunks = {1};
      return multiply(c.chunks);
    }
    std::vector<Promise> promises;
    promises.reserve(c.promises.size() * n_);
    for (const Promise& promise : c.promises) {
      for (uint32_t j = 0; j < n_; ++j) {
        promises.push_back(promise);
        promises.back().output.chunk = contract_chunk(promise.output.chunk, j);
        for (CallerChunk& place : promises.back().inputs)
          place.chunk = contract_chunk(place.chunk, j);
      }
    }
    c.promises.swap(promises);
    c.sort_promises();
    multiply(c.input);
    multiply(c.output);
  }

  uint32_t contract_chunk(uint32_t chunk, uint32_t j) const {
    return target(0, {.buffer = kInput, .first = chunk, .count = 1}, 0, j).chunk;
  }

  Program& program_;
  const uint32_t n_;
  const bool blocked_;
  uint32_t columns_ = 1;
  std::vector<std::vector<uint32_t>> rows_[2];  ///< alltoallv, by side and rank: where rows begin
  std::vector<bool> cut_;                       ///< by pipeline: cut chunk by chunk
  Arena<Operand> operands_;                     ///< the new one
  std::vector<int64_t> scratch_;
};

}  // namespace

bool run_replicate(Program& program, PassContext& context) {
  Diagnostics& diagnostics = context.diagnostics;
  const uint64_t n = program.launch.instances;
  if (n == 1) return true;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!settle_blocks(program, r, "replicate", diagnostics)) return false;
    const Rank& rank = program.ranks[r];
    uint64_t most = rank.blocks;
    for (const Buffer& buffer : rank.buffers) most = std::max<uint64_t>(most, buffer.chunks);
    if (most * n <= kMax && rank.blocks * n <= kMaxBlocks) continue;
    if (most * n <= kMax) most = rank.blocks;
    diagnostics.error(
        "too-many-instances", {},
        fmt::format("{} instances of {} chunks or thread blocks are too many", n, most));
    return false;
  }
  if (Replicator(program).run()) return true;
  diagnostics.error("too-many-instances", {},
                    fmt::format("{} instances have more than {} ops", n, kMaxOps));
  return false;
}

}  // namespace mscclc
