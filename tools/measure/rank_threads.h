// Ranks as threads of this process, on GPUs or on the host device, that stay: each has a
// communicator, and all do one piece of work after the other together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/link_kind.h"
#include "runtime/api/communicator.h"
#include "tools/run/rank_device.h"

namespace mscclc {

/// Adds what the first rank says that has anything, of what all say, by rank: the others say the
/// same.
void add_first(const std::vector<Diagnostics>& problems, Diagnostics& diagnostics);

/// Thread safety: one thread at a time.
class RankThreads {
 public:
  /// nullptr: reported.
  [[nodiscard]] static std::unique_ptr<RankThreads> start(uint32_t ranks,
                                                          const RankDevices& devices,
                                                          Diagnostics& diagnostics);
  /// What is of a rank and of its thread must have gone by then.
  ~RankThreads();
  RankThreads(const RankThreads&) = delete;
  RankThreads& operator=(const RankThreads&) = delete;

  /// Does it on all ranks, each on its own thread, in which its device is current; waits for all.
  void run(const std::function<void(Communicator&)>& work);

  uint32_t ranks() const;
  /// Communicator::worst_link(): what joins the ranks of a node.
  LinkKind links() const;
  /// Thread blocks that run at once on the device of rank 0; 0: as many as there are.
  uint32_t multiprocessors() const;
  /// The device of rank 0, for reports.
  const std::string& device() const;

 private:
  struct State;
  explicit RankThreads(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mscclc
