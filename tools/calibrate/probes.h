// The calls that show a machine's figures: small programs (programs/*.mscl), each of which takes
// its time by a few of them, and programs of the library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc::calibrate {

/// What the machine can do, as far as probes depend on it.
struct ProbeLimits {
  uint32_t ranks = 2;
  uint64_t max_bytes = uint64_t{64} << 20;  ///< of a message
  uint32_t max_blocks = 64;                 ///< thread blocks of a rank that run at a time
  bool lines = true;                        ///< packets of 128 bytes arrive whole: NVLink
  bool network = false;                     ///< each rank is a node of its own
};

/// A call: a program with parameters, and a size.
struct Probe {
  std::string program;  ///< its name, without .mscl
  std::vector<std::pair<std::string, std::string>> params;
  uint64_t bytes = 0;
  /// "hops_of_puts K=9 B=1"
  std::string name() const;
};

/// The probes for a machine, of programs that compile within the limits.
std::vector<Probe> probes_for(const ProbeLimits& limits);

/// Compiles the program of a probe. nullptr: reported.
[[nodiscard]] std::shared_ptr<const Program> compile_probe(const Probe& probe,
                                                           Diagnostics& diagnostics);

}  // namespace mscclc::calibrate
