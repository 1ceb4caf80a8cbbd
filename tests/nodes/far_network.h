// For tests: a network between nodes that delays, loses and reorders packets, or is cut. Each node
// is a network namespace of this machine with one interface; a process passes packets between them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/support/fd.h"

namespace mscclc::testing {

class FarNetwork {
 public:
  /// What happens to packets, in parts of a thousand; changes at once.
  struct Faults {
    std::atomic<uint32_t> delay_us{0};
    std::atomic<uint32_t> lost{0};                ///< so many of 1000 packets
    std::atomic<uint32_t> reordered{0};           ///< so many of 1000 come a few delays later
    std::atomic<uint64_t> cut_after{UINT64_MAX};  ///< packets; then none comes any more
    std::atomic<uint64_t> passed{0};              ///< packets so far
  };

  /// "": ready. Otherwise why the system does not permit it. REQUIRES: no other thread runs.
  [[nodiscard]] std::string make(uint32_t nodes);
  ~FarNetwork();

  /// Moves this process to a node.
  void enter(uint32_t node) const;
  Faults& faults() { return *faults_; }
  /// "10.77.0.1" for node 0, and so on.
  static std::string address(uint32_t node);
  /// The name of each node's interface.
  static constexpr const char* kInterface = "mscclc0";

 private:
  bool make_node(uint32_t node);
  [[noreturn]] void pass_packets();

  std::vector<Fd> namespaces_, wires_;  ///< by node
  Faults* faults_ = nullptr;
  pid_t process_ = -1;
};

}  // namespace mscclc::testing
