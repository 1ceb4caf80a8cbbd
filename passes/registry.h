// The registry: the one list of passes, in the order in which the compiler runs them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/op_limits.h"
#include "ir/program/program.h"
#include "passes/framework/pass.h"

namespace mscclc {

/// All passes in compilation order.
std::span<const PassInfo> passes();
const PassInfo* find_pass(std::string_view name);

struct PassOptions {
  /// Names of the passes to run, in this order; empty: all of passes().
  std::vector<std::string> only;
  bool none = false;  ///< run no pass at all
  bool verify_each = false;
  OpLimits limits;                 ///< how large ops may become
  uint32_t max_thread_blocks = 0;  ///< of a rank, instances and all; 0: any number
  uint32_t threads = 0;  ///< see thread_count (ir/program/rank_parts.h); changes no result
  /// Called before and after each pass.
  void (*before)(const PassInfo&, const Program&, void*) = nullptr;
  void (*after)(const PassInfo&, const Program&, void*) = nullptr;
  void* context = nullptr;
  /// If set: receives a record of every pass that was run, the failing one included.
  std::vector<PassRecord>* records = nullptr;
};

/// Runs the passes; stops at the first that fails. An unknown name is an error.
[[nodiscard]] bool run_passes(Program& program, const PassOptions& options,
                              Diagnostics& diagnostics);

}  // namespace mscclc
