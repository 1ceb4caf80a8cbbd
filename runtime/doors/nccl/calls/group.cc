#include "runtime/doors/nccl/calls/group.h"

#include <algorithm>
#include <memory>
#include <thread>
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

namespace {

ncclResult_t refuse_mixed(std::vector<Job>& jobs) {
  for (Job& job : jobs) job.cancel();
  return fail(ncclInvalidArgument, "a group holds blocking and non-blocking communicators");
}

bool are_mixed(const std::vector<Job>& jobs) {
  return std::ranges::any_of(jobs,
                             [&](const Job& job) { return job.blocking != jobs[0].blocking; });
}

/// Do callers not wait for work on a communicator of these calls? They are made after it.
bool come_later(const std::vector<NcclCall>& calls, const std::vector<Job>& jobs) {
  return std::ranges::any_of(jobs, [&](const Job& job) {
    return job.begin && !job.blocking && std::ranges::any_of(calls, [&](const NcclCall& call) {
             return call.comm.get() == job.in_turn;
           });
  });
}

/// Jobs of a thread that may come to its end without them: those that it has not taken are
/// cancelled then.
struct WaitingJobs {
  explicit WaitingJobs(std::vector<Job> asked) : jobs(std::move(asked)) {}
  ~WaitingJobs() {
    for (Job& job : jobs) job.cancel();
  }
  WaitingJobs(const WaitingJobs&) = delete;
  WaitingJobs& operator=(const WaitingJobs&) = delete;

  std::vector<Job> jobs;
};

ncclResult_t run_jobs_and_calls(std::vector<Job> jobs, std::vector<NcclCall> calls) {
  const auto blocks = [](const NcclCall& call) { return call.comm->blocking; };
  if (are_mixed(jobs) || std::ranges::any_of(calls, blocks)) return refuse_mixed(jobs);
  const auto all = std::make_shared<WaitingJobs>(std::move(jobs));
  const auto begin = [all] {
    for (Job& job : all->jobs) {
      if (job.begin) std::exchange(job.begin, {})();
      job.blocking = true;  // the calls wait
    }
  };
  const auto run = [all] { return run_jobs(std::exchange(all->jobs, {})); };
  return make_calls_after({begin, run}, std::move(calls));
}

}  // namespace

ncclResult_t ThreadGroup::finish() {
  std::vector<Job> jobs = std::exchange(jobs_, {});
  std::vector<NcclCall> calls = std::exchange(calls_, {});
  const ncclResult_t error = std::exchange(error_, ncclSuccess);
  if (error != ncclSuccess) {
    for (Job& job : jobs) job.cancel();
    return error;
  }
  if (come_later(calls, jobs)) return run_jobs_and_calls(std::move(jobs), std::move(calls));
  const ncclResult_t result = run_jobs(std::move(jobs));
  if (calls.empty() || (result != ncclSuccess && result != ncclInProgress)) return result;
  const ncclResult_t made = make_calls(std::move(calls));
  return made == ncclSuccess ? result : made;
}

namespace {

/// Jobs that run one after the other, on one thread.
struct Line {
  std::vector<Job> jobs;
  size_t next = 0;  ///< the first that has not ended

  /// The last error.
  ncclResult_t run() {
    ncclResult_t last = ncclSuccess;
    for (; next < jobs.size(); ++next) {
      const ncclResult_t result = jobs[next].run();
      if (result != ncclSuccess) last = result;
    }
    return last;
  }
  void cancel() {
    for (; next < jobs.size(); ++next) jobs[next].cancel();
  }
};

std::vector<std::shared_ptr<Line>> in_lines(std::vector<Job> jobs) {
  std::vector<std::shared_ptr<Line>> lines;
  for (Job& job : jobs) {
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const auto& one) {
      return job.in_turn != nullptr && one->jobs[0].in_turn == job.in_turn;
    });
    Line& its = line != lines.end() ? **line : *lines.emplace_back(std::make_shared<Line>());
    its.jobs.push_back(std::move(job));
  }
  return lines;
}

}  // namespace

ncclResult_t run_jobs(std::vector<Job> jobs) {
  if (are_mixed(jobs)) return refuse_mixed(jobs);
  for (const Job& job : jobs) {
    if (job.begin) job.begin();
  }
  const auto lines = in_lines(std::move(jobs));
  std::vector<std::thread> threads;
  std::vector<ncclResult_t> results(lines.size(), ncclSuccess);
  ncclResult_t last = ncclSuccess;
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool blocking = lines[i]->jobs[0].blocking;
    ncclResult_t* const result = blocking ? &results[i] : nullptr;
    const auto run = [line = lines[i], result] {
      const ncclResult_t done = line->run();
      if (result != nullptr) *result = done;
    };
    const auto without_memory = [line = lines[i], result] {
      if (result != nullptr) *result = ncclSystemError;
      (void)fail(ncclSystemError, "there is not enough memory");
      line->cancel();
    };
    std::thread thread = quiet_thread("mscclc-nccl", run, without_memory);
    Diagnostics diagnostics;
    if (!has_started(thread, "a communicator", diagnostics)) {
      lines[i]->cancel();
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
