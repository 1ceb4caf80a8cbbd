// What a plan is compiled for: a named set of limits, read from plans/targets/*.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/op_limits.h"

namespace mscclc {

/// Limits of an executor; 0 means unlimited. Names are those of the JSON file.
struct Target {
  std::string name;
  std::string description;
  bool mscclpp_wire_only = false;  ///< only what MSCCL++'s executor runs correctly (target mscclpp)
  uint32_t max_threads_per_block = 0, max_blocks = 0;
  uint32_t max_ops_per_block = 0, max_operands_per_op = 0, max_channels_per_op = 0;
  uint32_t max_channels_per_block = 0, max_remote_buffers_per_block = 0;
  uint32_t max_semaphores_per_op = 0, max_channels = 0, max_barriers = 0;
  uint32_t shared_bytes_per_op = 0, max_shared_bytes = 0;  ///< shared memory of a block
  uint32_t vector_bytes = 0;  ///< what accesses take at once; offsets must be multiples
  uint64_t max_bytes = 0;     ///< largest offset or size

  /// What passes must keep to, so that no op is refused because of what was joined into it.
  OpLimits op_limits() const;
};

/// The built-in targets: host, sm_90, mscclpp (the files of plans/targets, embedded).
const std::vector<Target>& builtin_targets();
/// A built-in target by name, or a target file by path.
[[nodiscard]] std::optional<Target> find_target(const std::string& name_or_path,
                                                Diagnostics& diagnostics);

}  // namespace mscclc
