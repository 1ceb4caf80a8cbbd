// The command line of mscclc-bench: nccl-tests' options and ours.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/contract/contract.h"
#include "ir/ops/ops.h"
#include "ir/support/result.h"

namespace mscclc::bench {

struct Options {
  uint32_t gpus = 2;
  std::vector<uint64_t> sizes;  ///< bytes, growing
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::vector<CollectiveKind> collectives;  ///< empty: all that the plans are of
  uint32_t root = 0;
  uint32_t ranks_per_node = 0;  ///< the machine is cut into nodes; 0: it is not
  uint32_t ranks_per_gpu = 1;   ///< more than one: ranks of one node share GPUs
  uint32_t iterations = 0;      ///< calls of a batch; 0: by size
  uint32_t aggregate = 0;       ///< calls of a unit (p50, p99); 0: by mode
  uint32_t replays = 0;         ///< of a batch's graph; 0: by size
  uint32_t warmup = 2;          ///< batches before those that count
  uint32_t repeats = 9;         ///< batches that count
  uint32_t check = 2;           ///< calls whose results are compared
  uint64_t offset = 0;          ///< bytes by which buffers are moved
  uint32_t timeout = 120;       ///< seconds that a step may take; 0: any time
  bool eager = true, graph = false, blocking = false;
  bool out_of_place = true, in_place = true;
  bool best = false, every_size = false;
  std::vector<std::string> contenders, plans;
  bool no_library = false;            ///< time no plans of ours
  std::string library;                ///< its folder; empty: where it is by default
  std::vector<std::string> recorded;  ///< files with results of baselines
  std::string json, svg, from_json;
  bool cliffs = false;
  double between = 0;          ///< microseconds of the kernels that calls stand between; 0: none
  bool between_early = false;  ///< also between such that let the next launch begin early
  bool clocks = false;         ///< where the time of thread blocks goes

  bool has_contender(const std::string& name) const;
};

struct CommandLine {
  Options options;
  std::string help;  ///< all there is to print; empty: it was not asked for
};

[[nodiscard]] mscclc::Result<CommandLine> parse_options(const std::vector<std::string>& arguments);

/// nccl-tests' name of a type, where it has one: f32 is float.
std::string_view nccl_name(Dtype dtype);

}  // namespace mscclc::bench
