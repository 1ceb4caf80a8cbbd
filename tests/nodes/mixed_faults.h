// For tests: jobs of nodes at which something goes wrong, drawn from a seed: a program, sizes, how
// bad the network is, and at some moment a cut or a rank that is killed. What must come of each:
// right results, or an error at every rank, in bounded time, that names the ranks that are gone;
// and nothing is left behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mscclc::testing {

enum class FaultKind : uint8_t { lossy, killed, cut, paused };

/// A rank is stopped for a while, as one is that gets no processor.
struct Pause {
  uint32_t rank;
  uint32_t begin_us, ms;  ///< since its process began, or its pause before ended; how long
};

struct FaultTrial {
  FaultKind kind = FaultKind::lossy;
  std::string program;
  std::vector<uint64_t> sizes;
  uint32_t times = 1;                              ///< calls of each size
  uint32_t delay_us = 0, lost = 0, reordered = 0;  ///< as FarNetwork::Faults
  uint32_t victim = 0;                             ///< of a kill
  uint64_t moment = 0;  ///< of a kill or cut, in packets or orders that have passed
  bool verbs = false;   ///< the lanes, with fake devices; otherwise sockets
  std::vector<Pause> pauses = {};
  bool silent = false;  ///< over verbs: once the network is cut, devices report no error
  int slowness = 1;     ///< a cut: how much longer than mostly silence lasts until it counts
};

/// The same of the same seed.
FaultTrial draw_faults(uint64_t seed, bool verbs = false);
/// One whose ranks are stopped for up to eight seconds at any moment, from their first on: they
/// load and call until all pauses are over. Nothing but right results may come of it.
FaultTrial draw_pauses(uint64_t seed, bool verbs = false);
std::string text(const FaultTrial& trial);

struct FaultOutcome {
  bool right = false;   ///< the calls came to their end, before the fault or in spite of it
  uint32_t pauses = 0;  ///< times that a rank was seen to be stopped, and went on
  bool hung = false;    ///< a rank has not ended
  /// Descriptors and processes, of ranks and of what started them; memory regions, queue pairs and
  /// whatever else ranks have made of verbs.
  uint64_t leaked = 0;
  uint32_t not_the_victim = 0;  ///< ranks whose first error names another rank that has ended
  std::string wrong;            ///< what should not be; "": nothing
  std::string left_out;         ///< why the system does not permit it
};

/// REQUIRES: no other thread runs, and no child process; over verbs MSCCLC_IBV_SO is the fake
/// library (tests/fakes/verbs).
FaultOutcome try_faults(const FaultTrial& trial);

}  // namespace mscclc::testing
