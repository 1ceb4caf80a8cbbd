#include "passes/prove/processes/flags.h"

#include <fmt/format.h>

#include <utility>

#include "ir/program/flag_regions.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

Flags::Flags(const System& system, const CallOrder& calls, ThreadBlocks& blocks)
    : system_(system),
      program_(system.program()),
      calls_(calls),
      blocks_(blocks),
      flags_(system.ranks(), std::vector<Flag>(flag_total(program_))),
      waits_(system.ranks()) {
  for (uint32_t a = 0; a < program_.flags.size(); ++a) {
    first_.push_back(flag_number(program_, a, 0));
  }
}

uint32_t Flags::of_input(uint32_t rank, uint32_t buffer, uint32_t chunk) const {
  if (buffer != kInput) return kNone;
  for (uint32_t a = 0; a < program_.flags.size(); ++a) {
    if (program_.flags[a].of_output) continue;
    const uint32_t each = flag_region(program_, rank, a, 0).count;
    return first_[a] + chunk / each;
  }
  return kNone;
}

/// The other side reads as the caller does when the call is over: in calls, that is one more.
Event Flags::event(uint32_t rank, uint32_t number, bool of_output) const {
  const uint32_t call = calls_.now(rank);
  return {system_.caller_process(rank) + 1 + number, call + (of_output ? 2 : 1), kNone, call};
}

/// A flag of the output that the other side may wait for before it raises `awaited`, and that is
/// not complete; nullptr: there is none.
const Flags::Flag* Flags::missing(uint32_t rank, const Operand& awaited, Operand& which) const {
  for (uint32_t a = 0; a < program_.flags.size(); ++a) {
    const FlagArray& array = program_.flags[a];
    for (uint32_t f = 0; array.of_output && f < array.count; ++f) {
      const Flag& flag = flags_[rank][first_[a] + f];
      if (flag.raised >= array.raises) continue;
      if (!may_wait_for(program_, awaited.buffer, awaited.first, a, f)) continue;
      which = {kNone, a, f, 0};
      return &flag;
    }
  }
  return nullptr;
}

bool Flags::await(uint32_t process, const Op& op) {
  ThreadBlock& block = blocks_[process];
  for (const Operand& o : program_.dsts(op)) {
    Operand which;
    if (premise(Premise::raises_wait_for_notifies, missing(block.rank, o, which) == nullptr))
      continue;
    waits_[block.rank].push_back(process);
    return false;
  }
  for (const Operand& o : program_.dsts(op)) {
    const Event raised = event(block.rank, number(o), false);
    block.gains.push_back({.process = raised.process, .done = raised.time});
  }
  return true;
}

void Flags::notify(uint32_t process, const Op& op, const News& news,
                   std::vector<Raised>& complete) {
  const uint32_t rank = blocks_[process].rank;
  for (const Operand& o : program_.dsts(op)) {
    Flag& flag = this->flag(rank, o);
    learn(flag.known, news, system_.clock());
    if (++flag.raised == program_.flags[o.buffer].raises) {
      complete.push_back({o.buffer, o.first, blocks_[process].op, &flag.known});
    }
  }
  if (complete.empty()) return;
  for (const uint32_t waiting : std::exchange(waits_[rank], {})) blocks_.wake(waiting);
}

void Flags::end_call(uint32_t rank, Row& caller, FindingList& findings) {
  for (uint32_t a = 0; a < program_.flags.size(); ++a) {
    const FlagArray& array = program_.flags[a];
    for (uint32_t f = 0; f < array.count; ++f) {
      Flag& flag = flags_[rank][first_[a] + f];
      const Event over = event(rank, first_[a] + f, array.of_output);
      caller.raise(over.process, over.time, system_.clock());
      const uint32_t raised = flag.raised;
      flag = {};
      if (!array.of_output) continue;
      if (premise(Premise::flags_are_raised_as_declared, raised == array.raises)) continue;
      if (!findings.may_report(uint64_t{a} << 32 | f)) continue;
      Finding& finding = findings.add(Finding::Kind::flag_count);
      finding.rank = rank;
      finding.chunk.buffer = a;
      finding.text = fmt::format(
          "in each call '{}' of rank {} is notified {} time{}, and the other side waits for {}",
          flag_text(program_, a, f), rank, raised, raised == 1 ? "" : "s", array.raises);
    }
  }
}

bool Flags::explain_stuck(uint32_t rank, const Op& op, Finding& finding) const {
  if (!info(op.kind).has(kAwaitsFlags)) return false;
  for (const Operand& o : program_.dsts(op)) {
    Operand which;
    if (missing(rank, o, which) == nullptr) continue;
    const std::string awaited = flag_text(program_, o.buffer, o.first);
    const std::string wanted = flag_text(program_, which.buffer, which.first);
    finding.text = fmt::format("'await {}' waits forever: the other side may wait for '{}' first",
                               awaited, wanted);
    const bool declared = program_.flags[o.buffer].after == which.buffer;
    finding.notes = {
        declared ? fmt::format("'{}' is declared 'after: {}'", program_.flags[o.buffer].name,
                               program_.flags[which.buffer].name)
                 : fmt::format("it raises flag {} when it has seen flags of the output below {}, "
                               "or before",
                               o.first, o.first),
        fmt::format("let the plan 'notify {}' without waiting for '{}', in another block say",
                    wanted, awaited)};
    return true;
  }
  return false;
}

}  // namespace mscclc::proof
