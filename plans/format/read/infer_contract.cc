// The contract that a plan of MSCCL++ implies: its `collective`, chunk counts and `inplace`.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plans/format/read/read_state.h"

namespace mscclc {
namespace {

/// How many places up every rank writes, if all remote writes of the plan go equally far; else 0.
uint32_t find_distance(const Program& program) {
  const uint32_t ranks = static_cast<uint32_t>(program.ranks.size());
  uint32_t shift = 0;
  for (uint32_t r = 0; r < ranks; ++r) {
    bool sends = false;
    for (const Op& op : program.ranks[r].ops) {
      if (!info(op.kind).moves_data()) continue;
      for (const Operand& o : program.dsts(op)) {
        if (o.channel == kNone) continue;
        const Channel& channel = program.ranks[r].channels[o.channel];
        if (channel.kind == ChannelKind::switch_) return 0;
        const uint32_t distance = (channel.peer + ranks - r) % ranks;
        if (shift != 0 && distance != shift) return 0;
        shift = distance;
        sends = true;
      }
    }
    if (!sends) return 0;
  }
  return shift;
}

/// Whose input each chunk may come to hold: data is followed through all ops of a plan, in whatever
/// order they run.
class DataOrigins {
 public:
  explicit DataOrigins(const Program& program) : program_(program) {}

  /// False if there is too much to look at chunk by chunk, or a switch moves data.
  bool follow() {
    if (!number_chunks()) return false;
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Op& op : program_.ranks[r].ops) {
        if (info(op.kind).moves_data() && !add_op(r, op)) return false;
      }
    }
    spread();
    return true;
  }

  /// Does a rank read at another, or write there what it has from a third?
  bool passed_on() const {
    return reads_ || std::ranges::any_of(steps_, [&](const Step& step) {
             const uint32_t origin = origins_[step.from];
             return step.sender != kNone && origin != kNone && origin != step.sender;
           });
  }

  /// How many places up all outputs have their data from; 0 if it is not the same for all.
  uint32_t shift() const {
    const uint32_t ranks = static_cast<uint32_t>(program_.ranks.size());
    uint32_t shift = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
      bool receives = false;
      for (uint32_t c = first_[r][kOutput]; c < first_[r][kOutput + 1]; ++c) {
        if (origins_[c] == kNone) continue;
        const uint32_t distance = origins_[c] == kSeveral ? 0 : (r + ranks - origins_[c]) % ranks;
        if (distance == 0 || (shift != 0 && distance != shift)) return 0;
        shift = distance;
        receives = true;
      }
      if (!receives) return 0;
    }
    return shift;
  }

 private:
  static constexpr uint32_t kSeveral = kNone - 1;
  static constexpr uint64_t kMost = uint64_t{1} << 20;  ///< chunks, and chunks moved

  /// A chunk goes to another; `sender` writes it remotely, if not kNone.
  struct Step {
    uint32_t from, to, sender;
  };

  bool number_chunks() {
    uint64_t chunks = 0;
    for (const Rank& rank : program_.ranks) {
      std::vector<uint32_t>& first = first_.emplace_back();
      for (const Buffer& b : rank.buffers) {
        first.push_back(static_cast<uint32_t>(chunks));
        if ((chunks += b.chunks) > kMost) return false;
      }
      first.push_back(static_cast<uint32_t>(chunks));
    }
    origins_.assign(chunks, kNone);
    return true;
  }

  bool add_op(uint32_t rank, const Op& op) {
    const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
    const bool pairwise = info(op.kind).srcs.slot[0].pairwise && dsts.size() == srcs.size();
    for (size_t d = 0; d < dsts.size(); ++d) {
      for (const Operand& src : pairwise ? srcs.subspan(d, 1) : srcs) {
        if (!add_steps(rank, src, dsts[d])) return false;
      }
    }
    return true;
  }

  bool add_steps(uint32_t rank, const Operand& from, const Operand& to) {
    if (!has_chunks(rank, from) || !has_chunks(rank, to)) return false;
    const uint32_t source = number(rank, from), target = number(rank, to);
    const uint32_t count = std::min(from.count, to.count);
    if (steps_.size() + count > kMost) return false;
    const uint32_t sender = to.channel == kNone ? kNone : rank;
    reads_ = reads_ || from.channel != kNone;
    for (uint32_t k = 0; k < count; ++k) steps_.push_back({source + k, target + k, sender});
    return true;
  }

  /// Not at a switch; and the structure of the plan is only verified later.
  bool has_chunks(uint32_t rank, const Operand& o) const {
    const bool local = o.channel == kNone;
    if (!local && program_.ranks[rank].channels[o.channel].kind == ChannelKind::switch_) {
      return false;
    }
    const std::vector<Buffer>& buffers = program_.ranks[program_.owner_of(rank, o)].buffers;
    return o.buffer < buffers.size() && uint64_t{o.first} + o.count <= buffers[o.buffer].chunks;
  }

  uint32_t number(uint32_t rank, const Operand& o) const {
    return first_[program_.owner_of(rank, o)][o.buffer] + o.first;
  }

  /// From the inputs on, until nothing changes: each chunk at most twice.
  void spread() {
    std::ranges::sort(steps_, {}, &Step::from);
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (uint32_t c = first_[r][kInput]; c < first_[r][kInput + 1]; ++c) add_origin(c, r);
    }
    while (!changed_.empty()) {
      const uint32_t from = changed_.back();
      changed_.pop_back();
      const auto leaving = std::ranges::equal_range(steps_, from, {}, &Step::from);
      for (const Step& step : leaving) add_origin(step.to, origins_[from]);
    }
  }

  void add_origin(uint32_t chunk, uint32_t origin) {
    uint32_t& known = origins_[chunk];
    if (known == origin || known == kSeveral) return;
    known = known == kNone ? origin : kSeveral;
    changed_.push_back(chunk);
  }

  const Program& program_;
  std::vector<std::vector<uint32_t>> first_;  ///< by rank and buffer: the number of its first chunk
  std::vector<uint32_t> origins_;             ///< by chunk: a rank, kNone or kSeveral
  std::vector<Step> steps_;
  std::vector<uint32_t> changed_;  ///< chunks whose steps are to be taken
  bool reads_ = false;             ///< remotely
};

/// How many places up every rank sends, if it is the same for all; else 0. Ranks that pass data on
/// write less far than it goes.
int64_t find_shift(const Program& program) {
  const uint32_t distance = find_distance(program);
  if (distance == 0) return 0;
  DataOrigins origins(program);
  if (!origins.follow()) return 0;
  return origins.passed_on() ? origins.shift() : distance;
}

class Inference {
 public:
  Inference(ReadState& state, NodeId collective)
      : state_(state),
        contract_(state.program.contract),
        node_(collective),
        ranks_(static_cast<uint32_t>(state.ranks.size())) {}

  bool run(std::string_view name, bool in_place) {
    contract_.ranks = ranks_;
    contract_.in_place = in_place ? InPlace::yes : InPlace::no;
    contract_.even_only = true;
    if (ranks_ == 0) return state_.fail(node_, "the plan has no ranks");
    input_ = state_.ranks[0].chunks[0];
    output_ = state_.ranks[0].chunks[1];
    if (name == "allreduce") return fits(CollectiveKind::allreduce, input_, input_, output_);
    if (name == "allgather") {
      return fits(CollectiveKind::allgather, input_, input_, uint64_t{input_} * ranks_);
    }
    if (name == "reducescatter") {
      return fits(CollectiveKind::reducescatter, output_, uint64_t{output_} * ranks_, output_);
    }
    if (name == "alltoall") {
      return fits(CollectiveKind::alltoall, input_ / ranks_, input_ / ranks_ * ranks_, input_);
    }
    return name == "sendrecv" ? infer_sendrecv() : infer_custom();
  }

 private:
  /// Sets kind and chunks if all ranks have these chunk counts.
  bool fits(CollectiveKind kind, uint32_t chunks, uint64_t input, uint64_t output) {
    contract_.kind = kind;
    contract_.chunks = {chunks};
    if (chunks == 0) {
      return state_.fail(node_, fmt::format("{} chunks do not divide by {} ranks", input_, ranks_));
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (const size_t t : {0, 1}) {
        const uint64_t wanted = t == 0 ? input : output;
        if (state_.ranks[r].chunks[t] == wanted) continue;
        return state_.fail(state_.ranks[r].chunk_nodes[t],
                           fmt::format("is {}; '{}' over {} ranks makes it {}",
                                       state_.ranks[r].chunks[t], name(kind), ranks_, wanted));
      }
    }
    return true;
  }

  bool infer_sendrecv() {
    const int64_t shift = find_shift(state_.program);
    if (shift == 0) return infer_custom();
    // Send and receive have no in-place form.
    contract_.in_place = InPlace::no;
    contract_.shift = shift;
    return fits(CollectiveKind::sendrecv, input_, input_, input_);
  }

  /// Of other collectives only the chunk counts are known: nothing is promised.
  bool infer_custom() {
    contract_.kind = CollectiveKind::custom;
    contract_.input = {input_};
    contract_.output = {output_};
    for (const WireRank& rank : state_.ranks) {
      for (const size_t t : {0, 1}) {
        if (rank.chunks[t] == (t == 0 ? input_ : output_)) continue;
        return state_.fail(rank.chunk_nodes[t], "differs from that of rank 0");
      }
    }
    return true;
  }

  ReadState& state_;
  Contract& contract_;
  NodeId node_;
  uint32_t ranks_;
  uint32_t input_ = 0, output_ = 0;
};

}  // namespace

bool infer_contract(ReadState& state, NodeId collective, std::string_view name, bool in_place) {
  return Inference(state, collective).run(name, in_place);
}

}  // namespace mscclc
