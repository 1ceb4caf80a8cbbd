// The ranks of a communicator as one of NCCL's, in whatever NCCL this process finds.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/api/communicator.h"
#include "runtime/doors/nccl/backends/real.h"

namespace mscclc::capi {

/// NCCL's communicator, which goes with it. Thread safety: the communicator's.
class NcclRanks {
 public:
  /// Collective. nullptr: reported, on all ranks, or the communicator has ended. REQUIRES:
  /// nccl::real_nccl() is there.
  [[nodiscard]] static std::unique_ptr<NcclRanks> make(Communicator& communicator,
                                                       Diagnostics& diagnostics);
  ~NcclRanks();
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  /// Collective: whether all ranks are. False: reported, by those that are able, too. No rank then
  /// waits for another, and the communicator goes on.
  [[nodiscard]] bool all_are_able(bool able, const char* what, Diagnostics& diagnostics) const;
  /// Ends its calls, which may wait for a rank that has failed: no call follows.
  void abort();
  const nccl::RealNccl& real() const { return real_; }
  ncclComm_t comm() const { return comm_; }
  Communicator& communicator() const { return communicator_; }
  /// Where it is a stream of the host device, all on it has to end first: there is only a fake
  /// there, which acts at once. False: reported.
  [[nodiscard]] bool begin_on(StreamHandle stream, Diagnostics& diagnostics) const;
  /// False: reports what could not be done (peer-failed).
  bool succeeded(ncclResult_t result, std::string_view what, Diagnostics& diagnostics) const;

 private:
  NcclRanks(const nccl::RealNccl& real, ncclComm_t comm, Communicator& communicator)
      : real_(real), comm_(comm), communicator_(communicator) {}

  const nccl::RealNccl& real_;
  const ncclComm_t comm_;
  bool aborted_ = false;  ///< and gone
  Communicator& communicator_;
};

}  // namespace mscclc::capi
