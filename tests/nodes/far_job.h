// For tests: a job of four ranks on two nodes, processes, which a FarNetwork joins; or of as many
// as a place says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/nodes/far_network.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {

struct FarJob {
  static constexpr uint32_t kRanks = 4, kOnNode = 2, kNodes = kRanks / kOnNode;
  static constexpr std::chrono::seconds kTimeout{120};
  /// Silence after which a rank counts as dead, and lanes are given up: where nothing but silence
  /// shows it, and where it never should, however busy the machine is.
  static constexpr std::chrono::seconds kShort{5}, kLong{90};
};

/// Where ranks run, and what joins their nodes.
struct FarPlace {
  std::string interface;                          ///< at which ranks meet
  std::function<void(uint32_t rank)> enter = {};  ///< called first in the process of a rank
  std::chrono::seconds timeout = FarJob::kTimeout;
  OpenDevice open = open_host;
  std::function<uint64_t()> left = {};  ///< at its end: how much it leaves, besides descriptors
  uint32_t ranks = FarJob::kRanks;
};
/// Nodes that sockets join.
FarPlace place_in(const FarNetwork& network);

/// What each rank says at its end; "": nothing was wrong. A rank that does not end says so, and
/// one that leaves descriptors open. REQUIRES: FarJob::kNodes, and no other thread.
std::vector<std::string> run_far_ranks(const FarPlace& place, const RankBody& body,
                                       std::chrono::seconds silence);
inline std::vector<std::string> run_far_ranks(const FarNetwork& network, const RankBody& body,
                                              std::chrono::seconds silence) {
  return run_far_ranks(place_in(network), body, silence);
}

/// Calls of a program of the library for nodes, of each size in turn; what went wrong.
RankBody far_calls(std::string_view program, std::vector<uint64_t> sizes, uint32_t times);

/// Does the first error name one of the ranks? Notes below it name what blocks waited for.
bool blames_any(const std::string& said, const std::vector<uint32_t>& ranks);

}  // namespace mscclc::testing
