// The ranks of a communicator as one of NCCL's, in whatever NCCL this process finds.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/api/communicator.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/support/observe/watchdog.h"

namespace mscclc::capi {

/// NCCL's communicator, which goes with it. Once a rank has failed, it is aborted soon, as a stream
/// may wait for NCCL's kernel, and a thread for that stream. Thread safety: the communicator's,
/// except for what says more.
///
/// Objects that are alive at once have one: calls of several of NCCL's communicators, on several
/// streams, may wait for each other; those of one follow one another on all streams, as they were
/// made. It goes with the last of them, not with ours, whose end waits for no rank.
///
/// Threads may wait inside NCCL's calls: these are ended by ncclCommRevoke(), and what they use is
/// freed once the last one is out. An NCCL before 2.28.7 has no such function, and such calls of it
/// are not ended.
class NcclRanks {
 public:
  /// Collective: what is shared where all ranks have the same alive, whenever each has freed its
  /// objects; else a new one. nullptr: reported, on all ranks, or the communicator has ended.
  /// REQUIRES: nccl::real_nccl() is there.
  [[nodiscard]] static std::shared_ptr<NcclRanks> take(Communicator& communicator,
                                                       SharedLibraries& shared,
                                                       Diagnostics& diagnostics);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Collective: whether all ranks are. False: reported, by those that are able, too. No rank then
  /// waits for another, and the communicator goes on.
  [[nodiscard]] bool all_are_able(bool able, const char* what, Diagnostics& diagnostics) const;
  /// Ends its calls, which may wait for a rank that has failed: no call follows. Waits for none of
  /// them. From any thread.
  void abort();
  struct Leave {
    void operator()(NcclRanks* ranks) const { ranks->leave(); }
  };
  using Entered = std::unique_ptr<NcclRanks, Leave>;
  /// Until what it gives goes, the communicator is not freed. nullptr: it is aborted, which is
  /// reported.
  [[nodiscard]] Entered enter(Diagnostics& diagnostics);
  const nccl::RealNccl& real() const { return real_; }
  ncclComm_t comm() const { return comm_; }
  Communicator& communicator() const { return communicator_; }
  /// Where it is a stream of the host device, all on it has to end first: there is only a fake
  /// there, which acts at once. False: reported.
  [[nodiscard]] bool begin_on(StreamHandle stream, Diagnostics& diagnostics) const;
  /// False: reports what could not be done (peer-failed).
  bool succeeded(ncclResult_t result, std::string_view what, Diagnostics& diagnostics) const;

 private:
  NcclRanks(const nccl::RealNccl& real, const ncclUniqueId& id, ncclComm_t comm,
            Communicator& communicator)
      : real_(real), id_(id), comm_(comm), communicator_(communicator) {}
  /// Collective, and otherwise like take().
  static std::shared_ptr<NcclRanks> make(Communicator& communicator, Diagnostics& diagnostics);
  /// What says which one it is; empty: it is aborted.
  std::vector<uint8_t> name();
  void look();
  void leave();

  const nccl::RealNccl& real_;
  const ncclUniqueId id_;
  const ncclComm_t comm_;
  Communicator& communicator_;
  std::mutex mutex_;  ///< of the next two; held over no call of NCCL's
  bool aborted_ = false;
  uint32_t inside_ = 0;   ///< threads that may be in NCCL's calls
  bool failed_ = false;   ///< the watchdog has seen it
  std::thread aborting_;  ///< since then: it may take long, and the watchdog looks after others
  std::unique_ptr<Watchdog::Watch> watch_;
};

}  // namespace mscclc::capi
