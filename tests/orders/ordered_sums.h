// Runs a plan on the simulator with elements whose sums are rounded, and says which contract about
// the bits of sums (docs/bits.md) the outputs keep.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/simulator/cluster.h"
#include "ir/contract/order.h"

namespace mscclc::testing {

using Bytes = std::vector<uint8_t>;

/// What one call gives each rank; empty where it has no output.
struct Outputs {
  std::string fault;  ///< "" : it ran
  std::vector<Bytes> by_rank;
};

/// One call of a plan that adds up. The inputs follow from the rank and the type: an element is the
/// same whatever the size of the message, if it is `first_element` elements further on in a longer
/// one.
struct OrderedCall {
  uint64_t elements = 0;  ///< of the message, about
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  uint64_t schedule_seed = 0;
  uint64_t first_element = 0;
  uint64_t calls = 1;  ///< in a row, of which the last one is looked at; each has other inputs
};

Outputs run_ordered(const Program& program, const OrderedCall& call);

/// The same call again and again, each time under another schedule, one after the other in the same
/// memory. REQUIRES: the program outlives it.
class OrderedRuns {
 public:
  OrderedRuns(const Program& program, const OrderedCall& call);
  Outputs run(uint64_t schedule_seed, const Adversary* adversary = nullptr);

 private:
  const OrderedCall call_;
  std::string fault_;  ///< "": it can be run
  Cluster cluster_;
};

/// What `order` promises of that call. REQUIRES: `order` is ranks, tree or exact.
std::vector<Bytes> promised(const Program& program, const OrderedCall& call, SumOrder order);

/// "": the outputs are `wanted`, what an order promises; else the first element that is another
/// sum.
std::string not_as_promised(const std::vector<Bytes>& found, const std::vector<Bytes>& wanted,
                            Dtype dtype);

/// "": ranks that get the same elements have the same bits; else the first element that differs.
std::string not_replicated(const Contract& contract, const std::vector<Bytes>& found, Dtype dtype);

/// "": the outputs keep the contract; else the first element that does not. Of a plan that gives
/// several ranks the same elements, `replicated` compares these.
std::string breaks(const Program& program, const OrderedCall& call, SumOrder order);

}  // namespace mscclc::testing
