#include "executor/simulator/check.h"

#include <chrono>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Adds the time of its life to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), start_(Clock::now()) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  Clock::time_point start_;
};

}  // namespace

CollectiveCheck::CollectiveCheck(Cluster& cluster, const TestValues& values, const Inputs& inputs)
    : cluster_(cluster),
      inputs_(inputs),
      outputs_(cluster.program().contract, cluster.call().part_bytes,
               cluster.program().granule(cluster.call().dtype), values) {
  precondition(cluster.call().dtype == values.dtype());
  if (!cluster.program().externals.empty() || !cluster.program().functions.empty()) {
    rows_.emplace(cluster.program(), cluster.call().part_bytes, values);
  }
}

void CollectiveCheck::before(uint32_t rank, uint64_t call) {
  const Stopwatch watch(seconds_);
  outputs_.fill(rank, inputs_.first + call * inputs_.step, cluster_.data(rank, kInput),
                cluster_.data(rank, kOutput));
  if (rows_) rows_->fill(rank, inputs_.first + call * inputs_.step, cluster_.externals(rank));
}

void CollectiveCheck::after(uint32_t rank, uint64_t call) {
  const Stopwatch watch(seconds_);
  if (cluster_.program().contract.kind == CollectiveKind::barrier) check_barrier(rank, call);
  if (rows_) {
    return rows_->compare(rank, inputs_.first + call * inputs_.step, cluster_.data(rank, kOutput),
                          cluster_.externals(rank));
  }
  outputs_.compare(rank, inputs_.first + call * inputs_.step, cluster_.data(rank, kOutput),
                   cluster_.states()[rank].call);
}

void CollectiveCheck::check_barrier(uint32_t rank, uint64_t call) {
  for (const SimRank& other : cluster_.states()) {
    if (other.entered <= call) outputs_.count_early(rank);
  }
}

}  // namespace mscclc
