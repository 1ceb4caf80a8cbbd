// For tests: a job of four ranks on two nodes, processes, which a FarNetwork joins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/runtime/far_network.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {

struct FarJob {
  static constexpr uint32_t kRanks = 4, kOnNode = 2, kNodes = kRanks / kOnNode;
  static constexpr std::chrono::seconds kTimeout{120};
  /// Silence after which a rank counts as dead, and lanes are given up: where nothing but silence
  /// shows it, and where it never should, however busy the machine is.
  static constexpr std::chrono::seconds kShort{5}, kLong{90};
};

/// What each rank says at its end; "": nothing was wrong. A rank that does not end says so, and
/// one that leaves descriptors open. REQUIRES: a network of FarJob::kNodes, and no other thread.
std::vector<std::string> run_far_ranks(FarNetwork& network, const RankBody& body,
                                       std::chrono::seconds silence);

/// Calls of a program of the library for nodes, of each size in turn; what went wrong.
RankBody far_calls(std::string_view program, std::vector<uint64_t> sizes, uint32_t times);

/// Does the first error name one of the ranks? Notes below it name what blocks waited for.
bool blames_any(const std::string& said, const std::vector<uint32_t>& ranks);

}  // namespace mscclc::testing
