// Groups: what a thread asks for between ncclGroupStart() and the outermost ncclGroupEnd() is only
// written down, and begins there; a call outside a group is a group of its own.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/doors/nccl/calls/call.h"
#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

/// Work that is done on a thread of its own: making a communicator, destroying it …
struct Job {
  std::function<ncclResult_t()> run;
  /// Undoes what asking for it has done: it will not run.
  std::function<void()> cancel;
  /// Whether the caller waits for it. If not, it gets the result from ncclCommGetAsyncError().
  bool blocking = true;
  /// Done for all jobs, in order, before any runs; nullptr: nothing.
  std::function<void()> begin = {};
  /// Jobs with the same run one after the other, in order: a communicator's, say. nullptr: no
  /// other.
  const void* in_turn = nullptr;
};

/// The group of the calling thread, and a text for it: NCCL's functions take no object for them.
class ThreadGroup {
 public:
  static ThreadGroup& of_thread();

  void start() { ++depth_; }
  /// Ends the group: at the outermost one, does all that was asked for. If anything has failed in
  /// it, nothing is done, and the last error is the result.
  ncclResult_t end();
  /// Ends it without doing anything: ncclGroupSimulateEnd(). `calls`: at the outermost end, those
  /// that were asked for.
  ncclResult_t drop(std::vector<NcclCall>& calls);
  bool is_open() const { return depth_ > 0; }

  /// Makes the group fail. Returns the code.
  ncclResult_t fail_with(ncclResult_t code);
  /// Asks for it; begins it if no group is open.
  ncclResult_t add(Job job);
  ncclResult_t add(NcclCall call);
  /// Keeps a text until it keeps another one.
  const char* keep(std::string text) { return (text_ = std::move(text)).c_str(); }

 private:
  ncclResult_t finish();

  int depth_ = 0;
  ncclResult_t error_ = ncclSuccess;
  std::vector<Job> jobs_;
  std::vector<NcclCall> calls_;
  std::string text_;
};

/// Does all jobs, each on a thread of its own except those that run in turn, and waits for those
/// that are to be waited for. The last error; ncclInProgress if there is none and not all were
/// waited for.
ncclResult_t run_jobs(std::vector<Job> jobs);

}  // namespace mscclc::nccl
