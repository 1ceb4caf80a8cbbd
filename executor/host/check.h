// Checks what a collective gives at every rank and call against its contract.
//
// Before a call the output is poisoned and the input filled; right after it, while other ranks may
// still run, the output must hold what was promised.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/host/cluster.h"
#include "executor/host/values.h"

namespace mscclc {

class CollectiveCheck : public CallHooks {
 public:
  /// REQUIRES: cluster.prepare() for a call on `values`' type and reduction.
  CollectiveCheck(Cluster& cluster, const TestValues& values);

  void before(uint32_t rank, uint64_t call) override;
  void after(uint32_t rank, uint64_t call) override;

  uint64_t wrong() const { return wrong_; }
  /// Seconds spent in here.
  double seconds() const { return seconds_; }
  /// Adds an error for every rank with wrong elements.
  void report(Diagnostics& diagnostics) const;

 private:
  struct Source {
    uint32_t rank;
    uint64_t first;  ///< element of its input
  };
  /// A stretch of output whose elements are made of the same ranks' inputs, side by side.
  struct Expected {
    uint64_t first, count;  ///< elements of the output
    bool reduced;
    uint32_t source, sources;  ///< in sources_
  };
  struct WrongElement {
    uint64_t call, element;
    std::string expected, got;
  };
  struct WrongRank {
    uint64_t count = 0;
    std::vector<WrongElement> first;
  };

  void collect(uint32_t rank, const Chunking& chunking);
  void add(const Promise& promise, const Chunking& chunking);
  bool extends(const Expected& e, const Promise& promise, uint64_t first,
               const Chunking& chunking) const;
  void compare(uint32_t rank, uint64_t call, const Expected& e);
  const uint8_t* expected_row(const Expected& e, uint64_t call, uint64_t at, uint32_t n);
  void compute(const Expected& e, uint64_t call, uint64_t at, uint32_t n, uint8_t* to);
  void count_wrong(uint32_t rank, uint64_t call, uint64_t element, const uint8_t* row,
                   const uint8_t* got, uint32_t n);
  void check_barrier(uint32_t rank, uint64_t call);

  Cluster& cluster_;
  const TestValues& values_;
  const uint32_t element_;
  bool shared_ = false;  ///< all ranks expect the same
  std::vector<Expected> expected_;
  std::vector<uint32_t> begin_;  ///< those of rank r are [begin_[r], begin_[r + 1])
  std::vector<Source> sources_;
  std::vector<int64_t> keys_;
  std::vector<uint8_t> row_;
  /// What all ranks expect of a call variant: computed once.
  std::vector<uint8_t> cache_[TestValues::kVariants];
  std::map<uint32_t, WrongRank> wrong_ranks_;
  uint64_t wrong_ = 0;
  double seconds_ = 0;
};

}  // namespace mscclc
