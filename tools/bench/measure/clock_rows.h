// The stamps of a rank's thread blocks (executor/stamps.h), on its GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "tools/bench/measure/timing.h"

namespace mscclc::bench {

class ClockRows {
 public:
  /// Calls from here on leave stamps. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<ClockRows> open(Device& device, Diagnostics& diagnostics);
  /// Stamps go nowhere again.
  ~ClockRows();
  ClockRows(const ClockRows&) = delete;
  ClockRows& operator=(const ClockRows&) = delete;

  /// Runs calls, and says what the last one has left (clocks_text()).
  [[nodiscard]] bool read(const std::function<bool(Diagnostics&)>& run, cudaStream_t stream,
                          std::string& text, Diagnostics& diagnostics);

 private:
  explicit ClockRows(std::unique_ptr<Memory> rows);

  const std::unique_ptr<Memory> rows_;
};

}  // namespace mscclc::bench
