#include "runtime/doors/nccl/calls/group.h"

#include <algorithm>
#include <utility>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/process/per_thread.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::nccl {

ThreadGroup& ThreadGroup::of_thread() { return one_of_thread<ThreadGroup>(); }

ncclResult_t ThreadGroup::fail_with(ncclResult_t code) {
  if (depth_ > 0 && code != ncclSuccess) error_ = code;
  return code;
}

ncclResult_t ThreadGroup::add(Job job) {
  jobs_.push_back(std::move(job));
  return depth_ > 0 ? ncclSuccess : finish();
}

ncclResult_t ThreadGroup::add(NcclCall call) {
  calls_.push_back(std::move(call));
  return depth_ > 0 ? ncclSuccess : finish();
}

ncclResult_t ThreadGroup::end() {
  if (depth_ == 0) return fail(ncclInvalidUsage, "ncclGroupEnd: there was no ncclGroupStart()");
  return --depth_ > 0 ? ncclSuccess : finish();
}

ncclResult_t ThreadGroup::drop(std::vector<NcclCall>& calls) {
  if (depth_ == 0) {
    return fail(ncclInvalidUsage, "ncclGroupSimulateEnd: there was no ncclGroupStart()");
  }
  if (--depth_ > 0) return ncclSuccess;
  for (Job& job : std::exchange(jobs_, {})) job.cancel();
  calls = std::exchange(calls_, {});
  return std::exchange(error_, ncclSuccess);
}

ncclResult_t ThreadGroup::finish() {
  std::vector<Job> jobs = std::exchange(jobs_, {});
  std::vector<NcclCall> calls = std::exchange(calls_, {});
  const ncclResult_t error = std::exchange(error_, ncclSuccess);
  if (error != ncclSuccess) {
    for (Job& job : jobs) job.cancel();
    return error;
  }
  const ncclResult_t result = run_jobs(std::move(jobs));
  if (calls.empty() || (result != ncclSuccess && result != ncclInProgress)) return result;
  const ncclResult_t made = make_calls(calls);
  return made == ncclSuccess ? result : made;
}

ncclResult_t run_jobs(std::vector<Job> jobs) {
  const bool mixed = std::any_of(jobs.begin(), jobs.end(),
                                 [&](const Job& job) { return job.blocking != jobs[0].blocking; });
  if (mixed) {
    for (Job& job : jobs) job.cancel();
    return fail(ncclInvalidArgument, "a group holds blocking and non-blocking communicators");
  }
  std::vector<std::thread> threads;
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  ncclResult_t last = ncclSuccess;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const bool blocking = jobs[i].blocking;
    ncclResult_t* const result = blocking ? &results[i] : nullptr;
    const auto run = [job = jobs[i], result] {
      const ncclResult_t done = job.run();
      if (result != nullptr) *result = done;
    };
    const auto without_memory = [job = jobs[i], result] {
      if (result != nullptr) *result = ncclSystemError;
      (void)fail(ncclSystemError, "there is not enough memory");
      job.cancel();
    };
    std::thread thread = quiet_thread("mscclc-nccl", run, without_memory);
    Diagnostics diagnostics;
    if (!has_started(thread, "a communicator", diagnostics)) {
      jobs[i].cancel();
      last = fail(ncclSystemError, "cannot begin", diagnostics);
    } else if (blocking) {
      threads.push_back(std::move(thread));
    } else {
      thread.detach();
      last = ncclInProgress;
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) last = result;
  }
  return last;
}

}  // namespace mscclc::nccl
