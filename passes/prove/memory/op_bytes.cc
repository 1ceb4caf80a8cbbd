#include "passes/prove/memory/op_bytes.h"

#include <span>

#include "ir/program/applied.h"
#include "passes/framework/thread_partition.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

namespace {

/// Units of packets hold so many bytes of an element, of kinds that are not as long as rows too.
uint32_t element_of(const rows::Form& form) {
  const uint32_t kind = form.kind == rows::Kind::row ? 0 : form.group + 1;
  return rows::fixed_bytes(form.type) | kind << 8;
}

}  // namespace

Extent OpBytes::piece_of(const ThreadBlock& block, const Op& op, const Operand& o, uint32_t k,
                         const ChunkName& name) const {
  const uint32_t rank = block.rank;
  // An op that computes rows is cut between rows, as plain data is, whatever the type. Units of
  // packets hold more elements of a narrow type.
  CutUnit unit;
  if (is_packet_op(op) && !applies(op)) {
    unit = {.data = info(packet_format(program_, rank, op)).data,
            .element = element_of(program_.form_of(buffer(name)))};
  }
  const uint32_t units = buffer(name).units;
  Extent extent = cuts_.extent(op, unit, k, o.count, block.round, units,
                               calls_.instance(rank, calls_.now(rank)));
  // Which loops use a unit of scratch. (Each call cuts in ways of its own.)
  if (units != 0) extent.turn = 1 + groups_.group(block.loop);
  return extent;
}

uint64_t OpBytes::round_of(const ThreadBlock& block, const Op& op, const Operand& o,
                           uint32_t k) const {
  if (op.loop == kNone) return 0;
  const uint64_t call = calls_.instance(block.rank, calls_.now(block.rank));
  const Extent extent = cuts_.extent(op, {}, k, o.count, block.round, 0, call);
  return uint64_t{extent.way} << 32 | extent.piece;
}

uint64_t OpBytes::length_of(uint32_t rank, const Op& op, Position position, uint32_t call) const {
  const Part& part = calls_.part(rank, call);
  if (part.contract().even_only) return 0;
  std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  if (info(op.kind).srcs.slot[0].pairwise) {
    dsts = dsts.subspan(position.pair, 1);
    srcs = srcs.subspan(position.pair, 1);
  }
  for (const std::span<const Operand> operands : {dsts, srcs}) {
    for (const Operand& o : operands) {
      if (!system_.is_callers(o.buffer)) continue;
      const Side side = o.buffer == part.input + kInput ? Side::input : Side::output;
      const bool far = o.channel != kNone && !at_switch(rank, o);
      const uint32_t owner = far ? program_.ranks[rank].channels[o.channel].peer : rank;
      return part.contract().size_class(side, part.local[owner], o.first + position.chunk) + 1;
    }
  }
  return 0;
}

/// The first class is the longest, but not at the images of this rank if it turns into another one
/// there (lemma S1).
uint64_t OpBytes::as_limit(uint32_t rank, uint64_t length) const {
  const bool ragged =
      calls_.part(rank, calls_.now(rank)).contract().kind == CollectiveKind::alltoallv;
  return length == 1 && !ragged &&
                 premise(Premise::the_longest_class_stays_so, system_.symmetry().keeps(0))
             ? 0
             : length;
}

/// Sums of chunks that are not equally long have ends in other places, which a machine may deal out
/// otherwise.
bool OpBytes::same_threads(uint32_t rank, const Record& old, const Record& access) const {
  const Op& a = program_.ranks[rank].ops[old.event.op];
  const Op& b = program_.ranks[rank].ops[access.event.op];
  const auto whole_chunk = [&](const Op& op, Position position) {
    const size_t pair = info(op.kind).srcs.slot[0].pairwise ? position.pair : 0;
    return premise(Premise::no_rounds_between, op.loop == kNone) &&
           premise(Premise::ops_over_one_chunk, program_.dsts(op)[pair].count == 1);
  };
  if (!whole_chunk(a, old.position) || !whole_chunk(b, access.position)) return false;
  if (!premise(Premise::rows_belong_to_no_thread, !applies(a) && !applies(b))) return false;
  if (!premise(Premise::dealt_out_alike, share_alike(program_, rank, a, b))) return false;
  return is_packet_op(a) || premise(Premise::sums_equally_long,
                                    length_of(rank, a, old.position, old.event.call) ==
                                        length_of(rank, b, access.position, access.event.call));
}

bool OpBytes::copies_onto_itself(uint32_t rank, const Op& op, uint32_t k) const {
  if (!premise(Premise::only_copies_onto_themselves, op.kind == OpKind::copy)) return false;
  const Operand &to = program_.dsts(op)[0], &from = program_.srcs(op)[0];
  return system_.chunk(rank, to.buffer, to.first + k, calls_.now(rank)) ==
         system_.chunk(rank, from.buffer, from.first + k, calls_.now(rank));
}

}  // namespace mscclc::proof
