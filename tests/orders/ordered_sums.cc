#include "tests/orders/ordered_sums.h"

#include <fmt/format.h>

#include <cstring>

#include "executor/cpu/arith.h"
#include "executor/cpu/dice.h"
#include "executor/oracle/exact.h"
#include "executor/oracle/tree.h"

namespace mscclc::testing {
namespace {

/// Element `i` of a rank's input: of either sign, with exponents that lie close together, so that
/// sums are rounded; and some zeros of both signs.
uint64_t input_bits(const DtypeInfo& type, uint32_t rank, uint64_t i) {
  Dice dice(i * 1024 + rank + 1);
  (void)dice.next();
  uint64_t bits = dice.next();
  if (type.kind != DtypeKind::kFloat) return bits;
  const uint32_t width = 8 * type.bytes;
  const uint64_t top = uint64_t{0x7} << (width - 4);  // of the exponent
  bits = (bits & ~top) | (uint64_t{0x3} << (width - 4));
  if (i % 32 == 0) bits &= uint64_t{1} << (width - 1);
  if (i % 96 == 0) bits = uint64_t{1} << (width - 1);
  return bits;
}

Bytes input_of(const OrderedCall& call, uint32_t rank, uint64_t bytes) {
  const DtypeInfo& type = info(call.dtype);
  Bytes data(bytes);
  for (uint64_t i = 0; (i + 1) * type.bytes <= bytes; ++i) {
    const uint64_t bits = input_bits(type, rank, call.first_element + i);
    std::memcpy(data.data() + i * type.bytes, &bits, type.bytes);
  }
  return data;
}

class Callers final : public CallHooks {
 public:
  Callers(const Cluster& cluster, const OrderedCall& call, std::vector<Bytes>& outputs)
      : cluster_(cluster), call_(call), outputs_(outputs) {}
  void before(uint32_t rank, uint64_t call) override {
    const uint64_t bytes = cluster_.bytes(rank, kInput);
    OrderedCall made = call_;
    made.first_element += (call_.calls - 1 - call) * call_.elements;
    const Bytes input = input_of(made, rank, bytes);
    if (bytes > 0) std::memcpy(cluster_.data(rank, kInput), input.data(), bytes);
  }
  void after(uint32_t rank, uint64_t) override {
    const uint64_t bytes = cluster_.bytes(rank, kOutput);
    if (bytes > 0)
      outputs_[rank].assign(cluster_.data(rank, kOutput), cluster_.data(rank, kOutput) + bytes);
  }

 private:
  const Cluster& cluster_;
  const OrderedCall& call_;
  std::vector<Bytes>& outputs_;
};

/// Adds up rows of elements from the left, and rounds each sum once.
void add_in_order(const OrderedCall& call, const std::vector<const uint8_t*>& terms, Bytes& sums) {
  const DtypeInfo& type = info(call.dtype);
  const RowArith arith = row_arith(call.dtype, type.accumulate, call.op);
  for (uint64_t at = 0; at < sums.size(); at += type.bytes) {
    alignas(16) uint8_t sum[16];
    arith.start(sum, terms[0] + at, 1);
    for (size_t k = 1; k < terms.size(); ++k) arith.add(sum, terms[k] + at, 1);
    arith.finish(sums.data() + at, sum, 1);
  }
}

void add_as_tree(const OrderedCall& call, const std::vector<const uint8_t*>& terms, Bytes& sums) {
  std::vector<Bytes> sources;
  for (const uint8_t* const term : terms) sources.emplace_back(term, term + sums.size());
  sums = reduce_as_tree(call.dtype, info(call.dtype).accumulate, call.op, 1, sources);
}

void add_exactly(const OrderedCall& call, const std::vector<const uint8_t*>& terms, Bytes& sums) {
  std::vector<Bytes> sources;
  for (const uint8_t* const term : terms) sources.emplace_back(term, term + sums.size());
  const uint32_t divisor = call.op == ReduceOp::avg ? static_cast<uint32_t>(terms.size()) : 1;
  sums = reduce_exactly(call.dtype, info(call.dtype).accumulate, call.op, divisor, sources);
}

Call call_of(const Program& program, const OrderedCall& call) {
  const DtypeInfo& type = info(call.dtype);
  const uint64_t bytes = call.elements * type.bytes;
  return {.part_bytes = Chunking::part_for_message(program.contract, bytes, type.bytes),
          .dtype = call.dtype,
          .accumulate = type.accumulate,
          .reduce = call.op};
}

/// Where in the inputs the elements of a rank's output begin, in bytes.
uint64_t first_of(const Contract& contract, uint32_t rank, uint64_t output_bytes) {
  return contract.kind == CollectiveKind::reducescatter ? rank * output_bytes : 0;
}

std::string differs(const Bytes& a, const Bytes& b, uint32_t element, uint32_t rank) {
  if (a == b) return "";
  uint64_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return fmt::format("element {} of rank {}", i / element, rank);
}

}  // namespace

Outputs run_ordered(const Program& program, const OrderedCall& call) {
  return OrderedRuns(program, call).run(call.schedule_seed);
}

OrderedRuns::OrderedRuns(const Program& program, const OrderedCall& call)
    : call_(call), cluster_(program) {
  Diagnostics diagnostics;
  Call made = call_of(program, call);
  if (!check_call(program, made, diagnostics) || !cluster_.build(diagnostics) ||
      !cluster_.prepare(made, call.in_place, true, diagnostics)) {
    fault_ = render_text(diagnostics, Sources{}, 10);
  }
}

Outputs OrderedRuns::run(uint64_t schedule_seed, const Adversary* adversary) {
  Outputs outputs{.fault = fault_, .by_rank = {}};
  if (!fault_.empty()) return outputs;
  Diagnostics diagnostics;
  outputs.by_rank.resize(cluster_.program().ranks.size());
  Callers callers(cluster_, call_, outputs.by_rank);
  if (!cluster_.run(call_.calls, schedule_seed, callers, diagnostics, adversary) ||
      !cluster_.check_guards(diagnostics)) {
    outputs.fault = render_text(diagnostics, Sources{}, 10);
  }
  return outputs;
}

std::vector<Bytes> promised(const Program& program, const OrderedCall& call, SumOrder order) {
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  const Chunking chunking(program.contract, call_of(program, call).part_bytes,
                          program.launch.align);
  std::vector<Bytes> inputs, outputs(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    inputs.push_back(input_of(call, r, chunking.buffer_bytes(Side::input, r)));
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    if (!program.contract.exists(Side::output, r)) continue;
    outputs[r].resize(chunking.buffer_bytes(Side::output, r));
    const uint64_t first = first_of(program.contract, r, outputs[r].size());
    std::vector<const uint8_t*> terms;
    for (const Bytes& input : inputs) terms.push_back(input.data() + first);
    if (order == SumOrder::ranks) {
      add_in_order(call, terms, outputs[r]);
    } else if (order == SumOrder::exact) {
      add_exactly(call, terms, outputs[r]);
    } else {
      add_as_tree(call, terms, outputs[r]);
    }
  }
  return outputs;
}

std::string not_as_promised(const std::vector<Bytes>& found, const std::vector<Bytes>& wanted,
                            Dtype dtype) {
  for (uint32_t r = 0; r < wanted.size(); ++r) {
    const std::string at = differs(found[r], wanted[r], info(dtype).bytes, r);
    if (!at.empty()) return at + " is another sum";
  }
  return "";
}

std::string not_replicated(const Contract& contract, const std::vector<Bytes>& found, Dtype dtype) {
  if (contract.kind != CollectiveKind::allreduce) return "";
  for (uint32_t r = 1; r < found.size(); ++r) {
    const std::string at = differs(found[r], found[0], info(dtype).bytes, r);
    if (!at.empty()) return at + " is not that of rank 0";
  }
  return "";
}

std::string breaks(const Program& program, const OrderedCall& call, SumOrder order) {
  const Outputs found = run_ordered(program, call);
  if (!found.fault.empty()) return found.fault;
  if (order > SumOrder::replicated) {
    const std::string fault =
        not_as_promised(found.by_rank, promised(program, call, order), call.dtype);
    if (!fault.empty()) return fault;
  }
  return not_replicated(program.contract, found.by_rank, call.dtype);
}

}  // namespace mscclc::testing
