// A pass changes a program or reports why it cannot. The registry is the one list of passes, in
// the order in which the compiler runs them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

struct PassInfo {
  std::string_view name;     ///< what --passes and --print-after take
  std::string_view summary;  ///< one line for `mscclc passes`
  /// Changes the program in place; returns false after reporting an error.
  bool (*run)(Program& program, Diagnostics& diagnostics);
};

/// All passes in compilation order.
std::span<const PassInfo> passes();
const PassInfo* find_pass(std::string_view name);

struct PipelineOptions {
  /// Names of the passes to run, in this order; empty: all of passes().
  std::vector<std::string> only;
  bool none = false;  ///< run no pass at all
  bool verify_each = false;
  uint32_t max_thread_blocks = 0;  ///< of a rank, instances and all; 0: any number
  /// Called before and after each pass.
  void (*before)(const PassInfo&, const Program&, void*) = nullptr;
  void (*after)(const PassInfo&, const Program&, void*) = nullptr;
  void* context = nullptr;
};

/// Runs the passes; stops at the first that fails. An unknown name is an error.
bool run_passes(Program& program, const PipelineOptions& options, Diagnostics& diagnostics);

}  // namespace mscclc
