#include "executor/cost/syncs.h"

#include <fmt/format.h>

#include <map>
#include <tuple>
#include <utility>

#include "executor/cost/place.h"
#include "ir/program/access.h"
#include "ir/support/precondition.h"

namespace mscclc::cost {
namespace {

bool overlap(const Access& a, const Access& b) {
  return a.rank == b.rank && a.buffer == b.buffer && a.first < b.first + b.count &&
         b.first < a.first + a.count && (a.write || b.write) && !(a.packets && b.packets);
}

/// Why one op that synchronises is where it is, from the ops of its block.
class Reason {
 public:
  Reason(const Program& program, uint32_t rank, uint32_t op)
      : program_(program), rank_(rank), ops_(program.ranks[rank].ops), op_(op) {}

  std::string text() const {
    const Op& op = ops_[op_];
    const bool relaxed = op.relaxed;
    switch (op.kind) {
      case OpKind::signal:
        return relaxed ? "says that this rank has come so far; orders no data"
                       : "says that what the block has stored is there" + after(false);
      case OpKind::wait:
        return relaxed ? "the other rank has come so far; orders no data"
                       : "what the other rank has stored is there" + ahead();
      case OpKind::flush:
        return "the proxy has read what was put, so that it may change";
      case OpKind::release:
        return "lets a block of this rank go on" + after(false);
      case OpKind::acquire:
        return "another block of this rank has come so far" + ahead();
      case OpKind::await:
        return "the other side has written what the plan reads" + ahead();
      case OpKind::notify:
        return "the other side may read what is there" + after(false);
      case OpKind::barrier:
        return "blocks of this rank meet" + after(true);
      default:
        return threads();
    }
  }

 private:
  bool in_block(uint32_t i) const { return i < ops_.size() && ops_[i].block == ops_[op_].block; }
  std::string named(uint32_t i) const {
    const std::string place = place_of(program_, ops_[i]);
    return fmt::format("'{}'{}", info(ops_[i].kind).name,
                       place.empty() ? "" : fmt::format(" at {}", place));
  }
  uint32_t data_before() const {
    for (uint32_t i = op_; i-- > 0 && in_block(i);) {
      if (info(ops_[i].kind).moves_data()) return i;
    }
    return kNone;
  }
  uint32_t data_after() const {
    for (uint32_t i = op_ + 1; in_block(i); ++i) {
      if (info(ops_[i].kind).moves_data()) return i;
    }
    return kNone;
  }
  std::string after(bool both) const {
    const uint32_t before = data_before();
    std::string text = before == kNone ? "" : ", after " + named(before);
    return both ? text + ahead() : text;
  }
  std::string ahead() const {
    const uint32_t next = data_after();
    return next == kNone ? "" : ", before " + named(next);
  }
  std::vector<Access> accesses(uint32_t i) const {
    std::vector<Access> out;
    if (info(ops_[i].kind).moves_data()) append_accesses(program_, rank_, ops_[i], out);
    return out;
  }
  /// The nearest ops on both sides of which one needs the other to be over for all threads.
  std::pair<uint32_t, uint32_t> conflict() const {
    constexpr uint32_t kFar = 64;
    for (uint32_t i = op_, n = 0; i-- > 0 && in_block(i) && n < kFar; ++n) {
      const std::vector<Access> before = accesses(i);
      for (uint32_t k = op_ + 1; in_block(k) && k < op_ + kFar; ++k) {
        for (const Access& a : accesses(k)) {
          for (const Access& b : before) {
            if (overlap(a, b)) return {i, k};
          }
        }
      }
    }
    return {kNone, kNone};
  }
  std::string threads() const {
    if (in_block(op_ + 1) && info(ops_[op_ + 1].kind).has(kSignals)) {
      const uint32_t before = data_before();
      return "all threads have done " + (before == kNone ? "their part" : named(before)) +
             " before one of them signals";
    }
    if (op_ > 0 && in_block(op_ - 1) && info(ops_[op_ - 1].kind).has(kWaits)) {
      const uint32_t next = data_after();
      return "all threads go on only when one of them has seen the signal" +
             (next == kNone ? "" : ", before " + named(next));
    }
    const auto [before, next] = conflict();
    if (before != kNone) {
      return fmt::format("{} touches what other threads do in {}", named(next), named(before));
    }
    return "the threads of the block meet" + after(true);
  }

  const Program& program_;
  const uint32_t rank_;
  const std::vector<Op>& ops_;
  const uint32_t op_;
};

bool synchronises(const Op& op) {
  const OpInfo& row = info(op.kind);
  return !row.moves_data() && op.kind != OpKind::pipeline;
}

}  // namespace

std::vector<SyncLine> syncs_of(const Program& program) {
  precondition(program.split);
  std::vector<SyncLine> lines;
  std::map<std::tuple<OpKind, bool, uint32_t>, size_t> known;  ///< by op and place in the text
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Op>& ops = program.ranks[r].ops;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (!synchronises(ops[i])) continue;
      const Slice where = ops[i].locations;
      const uint32_t site = where.count == 0 ? kNone : program.locations.at(where.first)->site;
      const auto [at, fresh] = known.try_emplace({ops[i].kind, ops[i].relaxed, site}, lines.size());
      if (fresh) {
        std::string op(info(ops[i].kind).name);
        if (ops[i].relaxed) op += " relaxed";
        lines.push_back({op, place_of(program, ops[i]), Reason(program, r, i).text(), 0});
      }
      ++lines[at->second].count;
    }
  }
  return lines;
}

}  // namespace mscclc::cost
