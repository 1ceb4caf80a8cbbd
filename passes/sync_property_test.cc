// Random small programs through groups, replicate and sync: every two conflicting ops are ordered,
// in written order where the author has ordered nothing; signals come after what their block or
// group has done, waits before what it does next; and running `sync` again adds nothing. What is
// ordered is worked out from first principles: all ops of two rounds in a graph, reachability by
// brute force.
#include <algorithm>
#include <bitset>
#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "ir/print/print.h"
#include "ir/program/access.h"
#include "ir/support/sanitized.h"
#include "ir/verify/verify.h"
#include "passes/framework/pass.h"
#include "passes/framework/passes.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

constexpr size_t kMaxNodes = 1024;
constexpr uint32_t kRounds = 2;

/// One execution of an op.
struct Node {
  uint32_t op, round;
};

class HappensBefore {
 public:
  HappensBefore(const Program& program, uint32_t rank, uint32_t instances)
      : program_(program), rank_(rank), instances_(instances), ops_(program.ranks[rank].ops) {
    for (uint32_t b = 0; b < program.ranks[rank].blocks; ++b) unroll(b);
    REQUIRE(nodes_.size() <= kMaxNodes);
    edges_.resize(nodes_.size());
    add_block_edges();
    add_semaphores();
    add_barriers();
    close();
  }

  /// "" or the first pair of ops that is not ordered as it should be.
  std::string fault(bool written_order) const {
    for (size_t a = 0; a < nodes_.size(); ++a) {
      for (size_t b = 0; b < nodes_.size(); ++b) {
        if (a == b || !written_before(nodes_[a], nodes_[b])) continue;
        if (!conflict(nodes_[a], nodes_[b])) continue;
        if (edges_[a][b] || (!written_order && edges_[b][a])) continue;
        return name(a) + " before " + name(b);
      }
    }
    return "";
  }
  /// The same for what signals publish and waits hold back. `places`: by location, the blocks that
  /// the op stood in before groups were expanded (and replicated).
  std::string control_fault(const std::vector<std::vector<uint32_t>>& places) const {
    for (size_t a = 0; a < nodes_.size(); ++a) {
      for (size_t b = 0; b < nodes_.size(); ++b) {
        if (a == b || !written_before(nodes_[a], nodes_[b]) || edges_[a][b]) continue;
        const Op &first = op(a), &second = op(b);
        const bool published = row(a).moves_data() && second.kind == OpKind::signal &&
                               !second.relaxed && stands_in(first, places, second);
        const bool held_back =
            first.kind == OpKind::wait && row(b).moves_data() && stands_in(second, places, first);
        if (published || held_back) return name(a) + " before " + name(b);
      }
    }
    return "";
  }
  bool has_cycle() const {
    for (size_t a = 0; a < nodes_.size(); ++a) {
      if (edges_[a][a]) return true;
    }
    return false;
  }

 private:
  const Op& op(size_t node) const { return ops_[nodes_[node].op]; }
  const OpInfo& row(size_t node) const { return info(op(node).kind); }
  /// Is the op in one of the blocks that `placed` was written for, and in the same instance?
  bool stands_in(const Op& op, const std::vector<std::vector<uint32_t>>& places,
                 const Op& placed) const {
    const uint32_t n = instances_;
    const std::vector<uint32_t>& blocks = places[placed.locations.first];
    return op.block % n == placed.block % n &&
           std::find(blocks.begin(), blocks.end(), op.block / n) != blocks.end();
  }
  std::string name(size_t node) const {
    const Op& op = ops_[nodes_[node].op];
    return std::to_string(nodes_[node].op) + "." + std::to_string(nodes_[node].round) + " '" +
           print_op(program_, rank_, op) + "' in tb " + std::to_string(op.block);
  }

  void unroll(uint32_t b) {
    std::vector<uint32_t> mine;
    for (uint32_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].block == b) mine.push_back(i);
    }
    begin_.push_back(nodes_.size());
    for (size_t i = 0; i < mine.size();) {
      size_t end = i + 1;
      const uint32_t loop = ops_[mine[i]].loop;
      while (loop != kNone && end < mine.size() && ops_[mine[end]].loop == loop) ++end;
      for (uint32_t round = 0; round < (loop == kNone ? 1 : kRounds); ++round) {
        for (size_t k = i; k < end; ++k) nodes_.push_back({mine[k], round});
      }
      i = end;
    }
    end_.push_back(nodes_.size());
  }

  /// In a block only a meeting of its threads orders what stands before and after it.
  void add_block_edges() {
    for (size_t b = 0; b < begin_.size(); ++b) {
      for (size_t i = begin_[b]; i < end_[b]; ++i) {
        for (size_t k = i + 1; k < end_[b]; ++k) {
          if (row(i).has(kSyncs) || row(k).has(kSyncs)) edges_[i][k] = true;
        }
      }
    }
  }

  void add_semaphores() {
    const size_t count = program_.ranks[rank_].semaphores.size();
    std::vector<std::vector<size_t>> releases(count), acquires(count);
    for (size_t n = 0; n < nodes_.size(); ++n) {
      for (const Operand& o : program_.dsts(ops_[nodes_[n].op])) {
        if (row(n).has(kReleases)) releases[o.first].push_back(n);
        if (row(n).has(kAcquires)) acquires[o.first].push_back(n);
      }
    }
    for (size_t s = 0; s < count; ++s) {
      const size_t initial = program_.ranks[rank_].semaphores[s].initial;
      REQUIRE(acquires[s].size() <= releases[s].size() + initial);
      for (size_t k = initial; k < acquires[s].size(); ++k) {
        edges_[releases[s][k - initial]][acquires[s][k]] = true;
      }
    }
  }

  /// The k-th arrivals at a barrier are one event: each is before all that is after the others.
  void add_barriers() {
    std::map<std::vector<uint32_t>, std::map<uint32_t, std::vector<size_t>>> arrivals;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!row(n).has(kMeets)) continue;
      std::vector<uint32_t> blocks;
      for (const Operand& o : program_.dsts(ops_[nodes_[n].op])) blocks.push_back(o.first);
      std::sort(blocks.begin(), blocks.end());
      arrivals[blocks][ops_[nodes_[n].op].block].push_back(n);
    }
    for (const auto& [blocks, of_block] : arrivals) {
      REQUIRE(of_block.size() == blocks.size());
      for (const auto& [a, from] : of_block) {
        for (const auto& [b, to] : of_block) {
          REQUIRE(from.size() == to.size());
          if (a == b) continue;
          for (size_t k = 0; k < from.size(); ++k) {
            for (size_t n = to[k] + 1; n < end_[b]; ++n) edges_[from[k]][n] = true;
            for (size_t n = begin_[a]; n < from[k]; ++n) edges_[n][to[k]] = true;
          }
        }
      }
    }
  }

  void close() {
    for (size_t k = 0; k < nodes_.size(); ++k) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (edges_[i][k]) edges_[i] |= edges_[k];
      }
    }
  }

  bool written_before(const Node& a, const Node& b) const {
    const uint32_t loop = ops_[a.op].loop;
    const bool rounds = loop != kNone && loop == ops_[b.op].loop && a.round != b.round;
    return rounds ? a.round < b.round : a.op < b.op;
  }

  bool conflict(const Node& x, const Node& y) const {
    std::vector<Access> a, b;
    append_accesses(program_, rank_, ops_[x.op], a);
    append_accesses(program_, rank_, ops_[y.op], b);
    for (const Access& p : a) {
      for (const Access& q : b) {
        if ((p.write || q.write) && overlap(x, p, y, q)) return true;
      }
    }
    return false;
  }

  bool overlap(const Node& x, const Access& p, const Node& y, const Access& q) const {
    const Op &a = ops_[x.op], &b = ops_[y.op];
    if (p.packets || q.packets || p.rank != q.rank) return false;
    const bool by_alias = p.buffer != q.buffer;
    if (by_alias) {  // input and output of an allreduce lie at the same place, if they coincide
      if (p.buffer >= kFirstScratch || q.buffer >= kFirstScratch) return false;
      if (program_.contract.in_place == InPlace::no) return false;
      if (onto_itself(a) || onto_itself(b)) return false;
    }
    if (p.first >= q.first + q.count || q.first >= p.first + p.count) return false;
    const bool same = p.first == q.first && p.count == q.count;
    if (same && a.parts != 0 && a.parts == b.parts && a.part != b.part) return false;
    return !(same && a.loop != kNone && a.loop == b.loop && x.round != y.round);
  }

  bool onto_itself(const Op& op) const {
    return op.kind == OpKind::copy && program_.dsts(op)[0].first == program_.srcs(op)[0].first &&
           program_.dsts(op)[0].buffer < kFirstScratch &&
           program_.srcs(op)[0].buffer < kFirstScratch;
  }

  const Program& program_;
  const uint32_t rank_, instances_;
  const std::vector<Op>& ops_;
  std::vector<Node> nodes_;
  std::vector<size_t> begin_, end_;
  std::vector<std::bitset<kMaxNodes>> edges_;
};

/// A random program of one busy rank, whose peer only owns memory.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed), test_(2, kChunks) {}

  /// By location of an op: its block, or those of its group.
  std::vector<std::vector<uint32_t>> places;

  Program make(bool author_orders) {
    Program& p = test_.program;
    scratch_ = test_.buffer(0, "scratch", kChunks);
    test_.buffer(1, "scratch", kChunks);
    test_.channel(0, ChannelKind::memory, "up", {}, 1, 0);
    test_.channel(1, ChannelKind::memory, "up", {}, 0, 0);
    p.contract.even_only = true;  // any chunks may be copied to each other
    blocks_ = 1 + pick(4);
    // Ops write the input, too, which out of place only plans of others do.
    p.foreign = pick(2) != 0;
    p.contract.in_place = p.foreign ? InPlace::no : InPlace::yes;
    if (pick(4) == 0) p.launch.instances = 2;
    if (pick(2)) p.launch.policy = Policy::blocked;
    p.files = {"random.mscl"};
    if (author_orders) add_semaphores();
    const uint32_t statements = 1 + pick(5);
    for (uint32_t s = 0; s < statements; ++s) {
      loop_ = kNone;
      if (pick(3) == 0) {
        loop_ = static_cast<uint32_t>(p.loops.size());
        chunks_ = 1 + pick(2);
        p.loops.push_back({.unit = 1024, .chunks = chunks_});
      }
      const uint32_t ops = 1 + pick(6);
      for (uint32_t i = 0; i < ops; ++i) add_op();
    }
    for (Rank& rank : p.ranks) rank.blocks = blocks_;
    return std::move(p);
  }

 private:
  static constexpr uint32_t kChunks = 4;
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void add_semaphores() {
    for (uint32_t s = 0; s < 2; ++s) test_.semaphore(0, "s", {int64_t{s}}, pick(2));
  }

  Operand chunk(uint32_t count, bool far) {
    const uint32_t buffer = far ? pick(2) * 2 : pick(3);
    return {.channel = far ? 0 : kNone,
            .buffer = buffer,
            .first = pick(kChunks - count + 1),
            .count = count};
  }

  void add_op() {
    if (!test_.program.ranks[0].semaphores.empty() && pick(5) == 0) return add_pair();
    if (pick(6) == 0) return add_control();
    const uint32_t count = loop_ != kNone ? chunks_ : 1 + pick(2);
    const bool far = pick(4) == 0;
    const Operand dst = chunk(count, far);
    Operand src = chunk(count, false);
    while (!far && overlaps_partly(dst, src)) src = chunk(count, false);
    Op& op = test_.op(0, far ? OpKind::put : OpKind::copy, {dst}, {src});
    place(op);
  }

  void add_control() {
    Op& op = test_.op(0, pick(2) ? OpKind::signal : OpKind::wait, {{.channel = 0}});
    op.relaxed = pick(4) == 0;
    place(op);
  }

  void place(Op& op) {
    Program& p = test_.program;
    op.loop = loop_;
    std::vector<uint32_t> blocks{pick(blocks_)};
    if (blocks_ > 1 && pick(4) == 0) {
      op.group = add_group();
      const std::span<const int64_t> group = p.values(p.groups[op.group]);
      blocks.assign(group.begin(), group.end());
    } else {
      op.block = blocks[0];
    }
    const uint32_t line = static_cast<uint32_t>(places.size()) + 1;
    p.sites.push_back({.file = 0, .line = line, .column = 1, .variables = {}});
    op.locations = {line - 1, 1};
    p.locations.push_back({line - 1, {}});
    places.push_back(blocks);
  }

  /// What such an op gives is not defined.
  static bool overlaps_partly(const Operand& a, const Operand& b) {
    const bool same_memory = a.buffer == b.buffer || std::max(a.buffer, b.buffer) < kFirstScratch;
    return same_memory && a.first != b.first && a.first < b.first + b.count &&
           b.first < a.first + a.count;
  }

  uint32_t add_group() {
    Program& p = test_.program;
    std::vector<int64_t> blocks;
    const uint32_t first = pick(blocks_ - 1), count = 2 + pick(blocks_ - first - 1);
    for (uint32_t b = first; b < first + count; ++b) blocks.push_back(b);
    p.groups.push_back(p.append(blocks));
    return static_cast<uint32_t>(p.groups.size() - 1);
  }

  /// The author orders one block after another, sometimes against the written order.
  void add_pair() {
    const uint32_t s = pick(2);
    const OpKind kinds[] = {OpKind::release, OpKind::acquire};
    const uint32_t first = pick(2);
    for (const uint32_t k : {first, 1 - first}) {
      Op& op = test_.op(0, kinds[k], {{.first = s}});
      op.block = (s + k) % blocks_;
      op.loop = loop_;
    }
  }

  std::mt19937 random_;
  testing::TestProgram test_;
  uint32_t scratch_ = 0, blocks_ = 1, loop_ = kNone, chunks_ = 1;
};

std::string text_of(const Program& program) {
  std::string text;
  for (const Op& op : program.ranks[0].ops) {
    text += "tb " + (op.block == kNone ? "-" : std::to_string(op.block)) +
            (op.loop == kNone ? "" : " loop " + std::to_string(op.loop)) + ": " +
            print_op(program, 0, op) + "\n";
  }
  return text;
}

}  // namespace

namespace {

/// Does the program pass as it is, under auto_sync: false?
bool is_complete(Program program) {
  program.launch.auto_sync = false;
  const std::string before = text_of(program);
  Diagnostics diagnostics;
  PassContext context{diagnostics};
  const bool complete = run_sync(program, context);
  REQUIRE(complete != diagnostics.has_errors());
  REQUIRE(text_of(program) == before);
  return complete;
}

bool inserts_nothing(const PassRecord& record) {
  return std::ranges::none_of(record.counts, [](const auto& count) {
    return count.first.find("inserted") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("sync orders all conflicts of random programs") {
  const uint32_t programs = testing::if_sanitized(1000, 4000);
  size_t contradictions = 0;
  for (uint32_t seed = 0; seed < programs; ++seed) {
    const bool author_orders = seed % 2 == 1;
    Generator generator(seed);
    Program program = generator.make(author_orders);
    const uint32_t instances = program.launch.instances;
    Diagnostics diagnostics;
    PassContext context{diagnostics};
    REQUIRE(run_groups(program, context));
    REQUIRE(run_replicate(program, context));
    const std::string before = text_of(program);
    INFO("seed " << seed << "\n" << before);
    const bool complete = is_complete(program);
    PassRecord record;
    context.record = &record;
    if (!run_sync(program, context)) {
      ++contradictions;
      REQUIRE(author_orders);
      continue;
    }
    const std::string after = text_of(program);
    REQUIRE(complete == inserts_nothing(record));
    INFO("after\n" << after);
    const bool valid = verify_structure(program, diagnostics);
    INFO((valid ? "" : diagnostics.all().back().message));
    REQUIRE(valid);
    const HappensBefore order(program, 0, instances);
    REQUIRE_FALSE(order.has_cycle());
    REQUIRE(order.fault(!author_orders) == "");
    REQUIRE(order.control_fault(generator.places) == "");
    REQUIRE(run_sync(program, context));
    REQUIRE(text_of(program) == after);
    program.launch.auto_sync = false;
    REQUIRE(run_sync(program, context));
    REQUIRE(text_of(program) == after);
  }
  REQUIRE(contradictions < programs / 4);
}

}  // namespace mscclc
