// The stamps of a rank's thread blocks (executor/stamps.h), on its GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "tools/bench/measure/timing.h"

namespace mscclc::bench {

class ClockRows {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<ClockRows> open(Device& device, Diagnostics& diagnostics);
  ClockRows(const ClockRows&) = delete;
  ClockRows& operator=(const ClockRows&) = delete;

  /// Launches of a plan of so many blocks leave stamps from here on, unless there are too many.
  /// REQUIRES: this lives until they have ended.
  void take_from(Executable& executable, uint32_t blocks) const;
  /// Runs calls, and says what the last one has left (clocks_text()).
  [[nodiscard]] bool read(const std::function<bool(Diagnostics&)>& run, cudaStream_t stream,
                          std::string& text, Diagnostics& diagnostics);

 private:
  explicit ClockRows(std::unique_ptr<Memory> rows) : rows_(std::move(rows)) {}

  const std::unique_ptr<Memory> rows_;
};

}  // namespace mscclc::bench
