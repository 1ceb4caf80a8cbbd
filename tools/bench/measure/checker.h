// Are a contender's results what the collective promises? Inputs, and outputs once known to be
// right, stay on the device, so that each contender after the first costs a comparison there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/oracle/output_check.h"
#include "tools/bench/measure/contender.h"

namespace mscclc::bench {

/// Memory of this device alone; frees itself.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  /// Makes room for `bytes`; what was there is lost.
  [[nodiscard]] bool reserve(uint64_t bytes, Diagnostics& diagnostics);
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
};

class Checker {
 public:
  Checker(Communicator& communicator, cudaStream_t stream, uint32_t calls)
      : communicator_(communicator), stream_(stream), calls_(calls) {}

  /// Makes the inputs of some calls. Placement does not matter.
  [[nodiscard]] bool prepare(const Workload& workload, Diagnostics& diagnostics);
  /// Starts what leaves a call's result, be it one call or several with the same input.
  using Launch = std::function<bool(Diagnostics&)>;
  /// Collective: launches for each of the inputs. `wrong`: elements of this rank that are; the
  /// first are reported.
  [[nodiscard]] bool check(const Launch& launch, const Workload& workload, uint64_t& wrong,
                           Diagnostics& diagnostics);

 private:
  void begin_check(const Workload& workload);
  struct CheckedCall {
    DeviceBytes input, output;
    bool known = false;  ///< `output` is right
  };
  [[nodiscard]] bool run(const Launch& launch, const Workload& workload, CheckedCall& call,
                         Diagnostics& diagnostics);
  [[nodiscard]] bool same_as_known(const Workload& workload, const CheckedCall& call, bool& same,
                                   Diagnostics& diagnostics);
  [[nodiscard]] bool compare(const Workload& workload, uint32_t index, uint64_t& wrong,
                             Diagnostics& diagnostics);

  Communicator& communicator_;
  const cudaStream_t stream_;
  const uint32_t calls_;
  uint64_t input_bytes_ = 0, output_bytes_ = 0;
  std::optional<Contract> contract_;
  std::optional<TestValues> values_;
  std::optional<OutputCheck> check_;
  std::vector<std::unique_ptr<CheckedCall>> list_;
  std::vector<uint8_t> mirror_[2];
  DeviceBytes count_;
};

}  // namespace mscclc::bench
