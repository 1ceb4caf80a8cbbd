// The other side of a plan's flags, in calls that are checked: it has raised all flags of the input
// before each launch, and looks at those of the output after it. (The simulator has a hostile one.)
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ir/program/program.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Of all calls of one executable. Thread safety: one thread at a time.
class EarlyFlags {
 public:
  /// The plan and the device must outlive it. nullopt: reported.
  [[nodiscard]] static std::optional<EarlyFlags> make(const Program& plan, Device& device,
                                                      Diagnostics& diagnostics);
  /// CollectiveCall::flags.
  const std::vector<CallFlags>& of_call() const { return given_; }
  /// Raises those of the input, for the launch that comes next.
  [[nodiscard]] bool raise(Diagnostics& diagnostics);
  /// All launches have ended. False: reported; the plan has not raised a flag of the output as
  /// often as it should.
  [[nodiscard]] bool compare(Diagnostics& diagnostics);

 private:
  struct Array {
    const FlagArray* declared;
    std::unique_ptr<Memory> words;
  };
  std::vector<uint8_t> complete(const FlagArray& array) const;

  Device* device_ = nullptr;
  std::vector<Array> arrays_;
  std::vector<CallFlags> given_;
  uint64_t calls_ = 0;
};

}  // namespace mscclc
