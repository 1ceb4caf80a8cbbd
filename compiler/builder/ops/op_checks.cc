#include "compiler/builder/ops/op_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/draft/texts.h"
#include "ir/report/summations.h"

namespace mscclc {
namespace {

std::string_view channel_text(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::memory:
      return "a memory channel";
    case ChannelKind::port:
      return "a port";
    case ChannelKind::switch_:
      break;
  }
  return "a switch";
}

}  // namespace

bool OpChecks::Accepted::same(std::span<const Ref> d, std::span<const Ref> s) const {
  if (d.size() != dsts || s.size() != srcs) return false;
  const uint32_t* known = traits;
  for (const Ref& ref : d) {
    if (ref.traits != *known++) return false;
  }
  for (const Ref& ref : s) {
    if (ref.traits != *known++) return false;
  }
  return true;
}

void OpChecks::Accepted::set(std::span<const Ref> d, std::span<const Ref> s) {
  if (d.size() + s.size() > kMax) return;
  dsts = static_cast<uint32_t>(d.size());
  srcs = static_cast<uint32_t>(s.size());
  uint32_t* at = traits;
  for (const Ref& ref : d) *at++ = ref.traits;
  for (const Ref& ref : s) *at++ = ref.traits;
}

Fit OpChecks::check(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                    const OperandFacts& facts, const OpOptions& options) {
  Accepted& accepted = accepted_[static_cast<size_t>(info.kind)];
  // Whether an op with flags may stand here does not follow from its operands.
  const bool placed = !info.has_flags() || places_.placed();
  if (placed && !options.any() && accepted.same(dsts, srcs)) return Fit::whole;
  const Fit found = fit(info, dsts, srcs, facts, options);
  if (found == Fit::whole && !options.any() && !dsts.empty()) accepted.set(dsts, srcs);
  return found;
}

/// Checks what depends on kinds and numbers of operands alone. Anything but `whole` is handled.
Fit OpChecks::fit(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                  const OperandFacts& facts, const OpOptions& options) {
  SlotCounts dst_counts, src_counts;
  if (!match_dsts(info, dsts, dst_counts) || !match_srcs(info, dsts, srcs, src_counts)) {
    explainer_.explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (options.any() && !check_options(info, options, srcs.size())) return Fit::wrong;
  if (facts.any(kChannelTraits) && !check_channels(info, dsts, srcs, facts)) return Fit::wrong;
  if ((info.dsts.count == 0 || info.has_flags()) && !places_.placed()) {
    reports_.fail("nesting", {}, fmt::format("'{}' outside 'tb' and 'group'", info.name));
    return Fit::wrong;
  }
  // An op without destination, channel or semaphore is left out; IR text has none.
  if (info.dsts.count == 1 && info.dsts.slot[0].many && dsts.empty()) {
    if (!draft_.flat) return Fit::nothing;
    explainer_.explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (info.srcs.count == 1 && info.srcs.slot[0].pairwise && dsts.size() != srcs.size()) {
    explainer_.explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (!info.has(kReduces) || info.srcs.count < 2) return Fit::whole;
  const uint32_t last = info.dsts.count - 1;
  const bool no_far = info.dsts.slot[last].many && dst_counts.n[last] == 0;
  if (!no_far && src_counts.n[1] > 0) return Fit::whole;
  if (draft_.flat) {
    explainer_.explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (src_counts.n[1] > 0) return Fit::no_far;
  return no_far ? Fit::one_source_no_far : Fit::one_source;
}

bool OpChecks::check_summation(const OpInfo& info, const OpOptions& options, size_t sources) {
  const auto fault = summation_fault(info, options.summation, options.reduce, sources);
  if (fault) reports_.fail("option", options.summation_mark, fault->text());
  return !fault;
}

bool OpChecks::check_options(const OpInfo& info, const OpOptions& options, size_t sources) {
  const auto misfit = [&](std::string_view option, Mark mark) {
    reports_.fail("option", mark,
                  fmt::format("'{}' cannot be combined with '{}'", option, info.name));
    return false;
  };
  if (options.reduce != ReduceOp::call && !info.has(kReduces))
    return misfit("op", options.reduce_mark);
  if (options.relaxed && info.relaxed.empty()) return misfit("relaxed", options.relaxed_mark);
  if (options.complete && !info.has(kReduces)) return misfit("complete", options.complete_mark);
  if (options.summation != Summation::in_turn && !info.has(kReduces)) {
    return misfit(mscclc::name(options.summation), options.summation_mark);
  }
  if (!check_summation(info, options, sources)) return false;
  if (options.parts == 0) return true;
  if (!info.moves_data()) return misfit("part", options.part_mark);
  if (options.part < options.parts && options.parts <= 0xffff) return true;
  reports_.fail("option", options.part_mark,
                fmt::format("part {} of {}: expected one of 0 to {}", options.part, options.parts,
                            std::min(options.parts, 0xffffu) - 1));
  return false;
}

/// Channels must be of a kind that the op takes, all of one kind, and have a partner if counted.
bool OpChecks::check_channels(const OpInfo& info, std::span<const Ref> dsts,
                              std::span<const Ref> srcs, const OperandFacts& facts) {
  const uint32_t kinds = facts.channel_kinds();
  if ((kinds & (kinds - 1)) == 0 && (kinds & ~info.channels) == 0) {
    return true;
  }
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.operand.channel == kNone || (bit(ref.channel_kind()) & info.channels) != 0) continue;
      std::string wanted;
      for (const ChannelKind k : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
        if ((info.channels & bit(k)) == 0) continue;
        wanted += fmt::format("{}{}", wanted.empty() ? "" : " or ", mscclc::name(k));
      }
      Diagnostic& d =
          reports_.fail("channel-kind", ref.mark,
                        fmt::format("'{}' needs a {} channel, '{}' is {}", info.name, wanted,
                                    draft_.label(draft_.rank, ref.operand.channel),
                                    channel_text(ref.channel_kind())));
      reports_.note(d, members_.mark(draft_.rank, DeclKind::channel, ref.operand.channel),
                    fmt::format("'{}' is declared here",
                                draft_.name(draft_.out->channels[ref.operand.channel].label.name)));
      return false;
    }
  }
  reports_.fail(
      "channel-kind", dsts.empty() ? Mark{} : dsts.back().mark,
      fmt::format("'{}' goes through channels of two kinds; write an op for each", info.name));
  return false;
}

/// Reports why a counted channel has no partner. Always false.
bool OpChecks::no_partner(const OpInfo& info, const Ref& ref) {
  const Channel& c = draft_.out->channels[ref.operand.channel];
  const Joint& end = pairing_.joint(draft_.rank, ref.operand.channel);
  reports_.set_failed();
  if (end.to != kNone || end.broken) return false;  // reported
  const std::string what(draft_.name(c.label.name));
  if (end.ambiguous) {
    Diagnostic& d = reports_.fail(
        "channel-ambiguous", members_.mark(draft_.rank, DeclKind::channel, ref.operand.channel),
        fmt::format("two channels '{}' between ranks {} and {}; say which with "
                    "'to'",
                    what, std::min(draft_.rank, c.peer), std::max(draft_.rank, c.peer)));
    reports_.note(d, ref.mark, fmt::format("'{}' counts on one of them", info.name));
    return false;
  }
  Diagnostic& d = reports_.fail(
      "no-partner", ref.mark,
      info.has(kWaits) ? "nothing can signal for this wait" : "nothing can wait for this signal");
  reports_.note(
      d, members_.mark(draft_.rank, DeclKind::channel, ref.operand.channel),
      fmt::format("rank {} has no channel '{}' to rank {}, and this one says nothing else with "
                  "'to'",
                  c.peer, what, draft_.rank));
  return false;
}

bool OpChecks::check_partners(const OpInfo& info, std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    const uint32_t partner = draft_.out->channels[ref.operand.channel].partner;
    if (partner == kNone && !draft_.program.foreign) return no_partner(info, ref);
  }
  return true;
}

}  // namespace mscclc
