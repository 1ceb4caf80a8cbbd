// What `mscclc tune` does with GEMMs that overlap: shapes from the command line, and a table of the
// fastest backends in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/contract/order.h"
#include "ir/ops/dtypes.h"
#include "ir/support/result.h"
#include "runtime/api/overlap.h"
#include "tools/io/command_line.h"
#include "tools/measure/team_options.h"

namespace mscclc::tune {

/// Shapes: each of `m` with each layer.
struct GemmOptions {
  std::vector<uint64_t> m;
  uint64_t k = 0;
  std::vector<uint64_t> n;          ///< with k: a layer
  std::vector<std::string> layers;  ///< more of them, "K:N"; several N: columns of each B
};
/// Declares --m, --k, --n and --layer; what was declared.
std::vector<const CLI::Option*> add_gemm_options(CommandLine& line, CLI::App& app,
                                                 GemmOptions& options);

struct GemmTuning {
  std::vector<OverlapKind> kinds;
  const GemmOptions& shapes;
  Dtype dtype = Dtype::bf16;
  SumOrder order = kDefaultOrder;
  TeamChoice team;  ///< nccl: whether it is timed
  std::string output;
};

/// All shapes of a kind; of A and B of 8 bits the output is bf16. An error: of the options.
Result<std::vector<OverlapConfig>> shapes_of(const GemmTuning& tuning, OverlapKind kind);

/// Returns the exit code.
int tune_gemms(const GemmTuning& tuning);

}  // namespace mscclc::tune
