// The hub of a bootstrap: one thread in one process of the job, to which every rank connects, also
// those of the same process. It serves one job and then ends.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/bootstrap/tcp/times.h"
#include "runtime/bootstrap/wire/frames.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

/// A rank that has joined, and its process on this machine.
struct RankProcess {
  uint32_t rank;
  int32_t process;
};

struct OtherJob {
  std::string why;                 ///< what to say of it; "": there is none
  std::vector<int32_t> processes;  ///< its ranks on this machine that are known
};

struct HubOptions {
  /// Listen at a unix socket whose name comes of the secret, for ranks of this machine and user.
  bool local = false;
  /// Where else to listen; port 0: any that is free. With several, the first that is free.
  std::vector<Address> addresses = {};
  /// Instead: on all addresses of this machine, at the first of these ports that is free.
  std::vector<uint16_t> ports = {};
  Secret secret{};
  uint32_t size = 0;                     ///< of the job; 0: what the first rank says
  uint32_t rank = wire::kNoRank;         ///< the rank of this process, for messages
  uint32_t process = 0;                  ///< the only one that may come as that rank; 0: any
  std::chrono::milliseconds timeout{0};  ///< of every step of the job
  std::chrono::milliseconds silence = kSilence;  ///< a rank that says nothing so long is dead
  std::chrono::milliseconds hello_time = kTimeToProve;  ///< in which a connection must prove itself
  /// Asked when all ranks have come, with those processes of them that run on this machine, from
  /// the hub's thread: whether there is another job of this name, whose ranks these may be.
  std::function<OtherJob(const std::vector<RankProcess>& ranks)> find_other_job = {};
  /// Why the job cannot be: all that comes of it is that ranks hear this, from the calling thread
  /// if there is no other. "": it can.
  std::string failed = {};
  bool two_jobs = false;  ///< `failed` is of interest to the ranks of two jobs of this name
};

/// What a rank hears that was welcome just as the job ended.
inline constexpr const char* kJustEnded = "the job has just ended";

class Hub {
 public:
  /// Listens and starts the thread. Errors: cannot-listen (with what was tried),
  /// two-jobs (another hub has the job's name), too-few-descriptors (each rank needs one). Warns:
  /// port-taken.
  [[nodiscard]] static std::unique_ptr<Hub> start(const HubOptions& options,
                                                  Diagnostics& diagnostics);
  /// Ends, after saying so to the ranks that are still there. Takes at most two seconds; five if
  /// the job has failed before all ranks had come, or a rank was about to join, so that they hear
  /// why.
  virtual ~Hub() = default;
  /// Ends the job, for all ranks that have come or still come: there cannot be one.
  /// `announced_elsewhere`: ranks that still come learn it from another hub, so this one does not
  /// wait for them.
  virtual void fail(const std::string& why, bool announced_elsewhere) = 0;
  /// Where this process reaches it: its unix socket, if it has one.
  virtual Address address() const = 0;
};

}  // namespace mscclc
