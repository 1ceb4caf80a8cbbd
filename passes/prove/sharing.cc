#include "passes/prove/sharing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/program/access.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

class Sharing {
 public:
  Sharing(const System& system, std::span<const SharedPlan> plans, Diagnostics& diagnostics)
      : system_(system), program_(system.program()), plans_(plans), diagnostics_(diagnostics) {}

  bool check() { return scratch_fits() && credits_agree() && signals_agree() && counts_agree(); }

 private:
  bool refuse(const char* code, std::string why) {
    diagnostics_.error(code, {}, std::move(why));
    return false;
  }
  std::string_view channel(uint32_t rank, uint32_t c) const {
    return program_.name_of(program_.ranks[rank].channels[c].label.name);
  }

  // ---- scratch ----

  bool scratch_fits() {
    for (size_t a = 0; a < plans_.size(); ++a) {
      for (size_t b = a + 1; b < plans_.size(); ++b) {
        if (!one_width(a, b) || !packets_fit(a, b)) return false;
      }
    }
    return true;
  }

  /// Lemma O13: what is empty for elements of one width is data for those of another.
  bool one_width(size_t a, size_t b) {
    if (!share_sentinels(a, b)) return true;
    std::set<uint32_t> widths;
    for (const size_t plan : {a, b}) {
      const std::vector<Dtype>& dtypes = plans_[plan].program->select.dtypes;
      for (const DtypeInfo& type : dtype_table()) {
        if (dtypes.empty() || std::ranges::count(dtypes, type.dtype) > 0) widths.insert(type.bytes);
      }
    }
    if (premise(Premise::widths_agree, widths.size() < 2)) return true;
    return refuse(
        "shared-slots",
        fmt::format("'{}' and '{}' share sentinel slots, which are empty in another way for "
                    "elements of {} bytes: 'select dtypes' of one width in both, or give one of "
                    "them scratch of its own",
                    plans_[a].name, plans_[b].name, fmt::join(widths, " and of ")));
  }

  /// Does some rank have sentinel slots of both in one place?
  bool share_sentinels(size_t a, size_t b) const {
    const auto has_slots = [&](size_t part, uint32_t rank) {
      const Part& p = system_.parts()[part];
      return p.has(rank) && p.program->launch.reuse_scratch &&
             std::ranges::any_of(p.rank(rank).buffers, is_sentinel, &Buffer::packets);
    };
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      if (has_slots(a, r) && has_slots(b, r)) return true;
    }
    return false;
  }

  /// Lemma T3: where chunk does not lie on chunk, what one plan leaves could be taken for packets
  /// of the other.
  bool packets_fit(size_t a, size_t b) {
    const auto has_packets = [&](size_t part, uint32_t rank) {
      return std::ranges::any_of(
          system_.parts()[part].rank(rank).buffers,
          [](PacketFormat format) { return format != PacketFormat::none; }, &Buffer::packets);
    };
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      if (!system_.overlaid(r, a, b)) continue;
      if (premise(Premise::slots_lie_on_slots, !has_packets(a, r) && !has_packets(b, r))) continue;
      return refuse(
          "shared-slots",
          fmt::format("'{}' and '{}' share scratch, where what one leaves may look like packets "
                      "of the other: declare the same buffers, 'align' and largest size in both, "
                      "or give one of them scratch of its own",
                      plans_[a].name, plans_[b].name));
    }
    return true;
  }

  // ---- channels ----

  /// A channel that plans share begins once, for all of them.
  bool credits_agree() {
    std::map<uint32_t, uint32_t> credits;  // by end
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      const std::vector<Channel>& channels = program_.ranks[r].channels;
      for (uint32_t c = 0; c < channels.size(); ++c) {
        const uint32_t own = channels[c].credits;
        const uint32_t first = credits.try_emplace(system_.end(r, c), own).first->second;
        if (premise(Premise::credits_begin_alike, first == own)) continue;
        return refuse("shared-credits",
                      fmt::format("plans share channel '{}' of rank {}, which begins with credits: "
                                  "{} in one of them, and with credits: {} in another",
                                  channel(r, c), r, first, own));
      }
    }
    return true;
  }

  /// How an end that begins with credits is used.
  struct Uses {
    bool strong_waits = false, strong_signals = false, relaxed_signals = false;
  };

  /// Lemma T1: with credits, a wait takes the signal of an earlier call, which may be of any plan.
  /// One that is relaxed says less of ports than an earlier one that is not.
  bool signals_agree() {
    std::map<uint32_t, Uses> uses;  // by end
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      for (const Op& op : program_.ranks[r].ops) note_uses(r, op, uses);
    }
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      const std::vector<Channel>& channels = program_.ranks[r].channels;
      for (uint32_t c = 0; c < channels.size(); ++c) {
        if (channels[c].credits == 0) continue;
        const Uses& end = uses[system_.end(r, c)];
        if (!end.strong_waits || !end.strong_signals) continue;
        if (premise(Premise::credits_and_relaxed_signals, !end.relaxed_signals)) continue;
        return refuse("shared-credits",
                      fmt::format("plans share channel '{}' of rank {}, which begins with credits: "
                                  "its waits may take a relaxed signal of one plan or one of "
                                  "another that is not: make all 'relaxed', or none",
                                  channel(r, c), r));
      }
    }
    return true;
  }

  void note_uses(uint32_t r, const Op& op, std::map<uint32_t, Uses>& uses) const {
    const OpInfo& row = info(op.kind);
    if (!row.has(kSignals) && !row.has(kWaits)) return;
    for (const Operand& o : program_.dsts(op)) {
      const Channel& channel = program_.ranks[r].channels[o.channel];
      if (row.has(kWaits)) uses[system_.end(r, o.channel)].strong_waits |= !op.relaxed;
      if (!row.has(kSignals) || channel.partner == kNone) continue;
      Uses& far = uses[system_.end(channel.peer, channel.partner)];
      (op.relaxed ? far.relaxed_signals : far.strong_signals) = true;
    }
  }

  // ---- the count of calls ----

  /// Lemma T3: ranks that use copies of a buffer, or packets with the call's number, of one of them
  /// must always have made equally many calls.
  bool counts_agree() {
    for (uint32_t r = 0; r < system_.ranks(); ++r) {
      for (uint32_t i = 0; i < program_.ranks[r].ops.size(); ++i) {
        const Op& op = program_.ranks[r].ops[i];
        for (const Operand& o : program_.all_operands(op)) {
          if (!counts_agree(r, i, o)) return false;
        }
      }
    }
    return true;
  }

  bool counts_agree(uint32_t r, uint32_t op, const Operand& o) {
    if (o.channel == kNone || o.buffer == kNone) return true;
    const Channel& channel = program_.ranks[r].channels[o.channel];
    const Buffer& buffer = program_.buffer_of(r, o);
    const bool marked = buffer.packets != PacketFormat::none && !is_sentinel(buffer.packets);
    if (buffer.copies == 1 && !marked) return true;
    if (channel.kind != ChannelKind::switch_) return counts_agree(r, channel.peer, op, buffer);
    return std::ranges::all_of(program_.values(channel.group), [&](int64_t q) {
      return counts_agree(r, static_cast<uint32_t>(q), op, buffer);
    });
  }

  bool counts_agree(uint32_t r, uint32_t q, uint32_t op, const Buffer& buffer) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      const Part& part = system_.parts()[i];
      if (premise(Premise::counts_of_calls_agree, part.has(r) == part.has(q))) continue;
      const uint32_t one = part.has(r) ? r : q, other = part.has(r) ? q : r;
      const std::string& name = system_.part_of_op(r, op).name;
      return refuse("call-counts",
                    fmt::format("rank {} makes calls of '{}' and rank {} does not, so that their "
                                "counts of calls differ, by which '{}' {}",
                                one, plans_[i].name, other, name,
                                buffer.copies == 1 ? "marks packets" : "chooses copies"));
    }
    return true;
  }

  const System& system_;
  const Program& program_;
  std::span<const SharedPlan> plans_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool may_share(const System& system, std::span<const SharedPlan> plans, Diagnostics& diagnostics) {
  return Sharing(system, plans, diagnostics).check();
}

}  // namespace mscclc::proof
