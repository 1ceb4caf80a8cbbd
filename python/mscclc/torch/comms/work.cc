#include "python/mscclc/torch/comms/work.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "python/mscclc/torch/comms/captures.h"

namespace mscclc::torch_comms {
namespace {

constexpr auto kLook = std::chrono::milliseconds(1);

}  // namespace

// ---- CommsWork ----

CommsWork::CommsWork(c10::intrusive_ptr<c10d::Work> work, c10::Device device,
                     std::chrono::milliseconds timeout, std::shared_ptr<Failures> failures,
                     std::function<bool()> ranks_failed)
    : work_(std::move(work)),
      device_(device),
      timeout_(timeout),
      failures_(std::move(failures)),
      ranks_failed_(std::move(ranks_failed)) {
  setStatus(WorkStatus::INPROGRESS);
  if (work_ == nullptr)
    on_stream_.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void CommsWork::end(WorkStatus status) {
  if (!ended_.exchange(true)) return setStatus(status);  // it calls hooks: without a lock
  while (this->status() == WorkStatus::INPROGRESS) std::this_thread::yield();
}

void CommsWork::end_on_stream() {
  if (!ranks_failed_()) return end(WorkStatus::COMPLETED);
  end(WorkStatus::ERROR);
  failures_->report("mscclc: ranks have failed, and a call has not been done");
}

void CommsWork::wait_for(std::chrono::milliseconds timeout) {
  if (work_ == nullptr) return;
  try {
    work_->wait(timeout);
  } catch (const c10::DistBackendError& error) {
    end(WorkStatus::ERROR);
    failures_->report(error);
  } catch (...) {
    end(WorkStatus::ERROR);
    throw;
  }
}

void CommsWork::order() {
  wait_for(timeout_);
  if (device_.is_cpu()) end(WorkStatus::COMPLETED);
}

void CommsWork::wait() {
  runWaitPreHooks();
  order();
  runWaitPostHooks();
}

void CommsWork::waitBlocking() {
  wait_for(timeout_);
  if (!device_.is_cpu()) {
    torch_adapter::PooledEvent here;
    here.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    here.synchronize();
  }
  if (work_ == nullptr) return end_on_stream();
  end(WorkStatus::COMPLETED);
}

bool CommsWork::has_ended() {
  if (status() != WorkStatus::INPROGRESS) return true;
  if (work_ == nullptr) {
    if (!on_stream_.query()) return false;
    try {
      end_on_stream();
    } catch (const c10::DistBackendError&) {  // the next call says it
    }
    return true;
  }
  if (!work_->isCompleted()) return false;
  if (work_->isSuccess()) {
    end(WorkStatus::COMPLETED);
    return true;
  }
  end(WorkStatus::ERROR);
  try {
    std::rethrow_exception(work_->exception());
  } catch (const c10::DistBackendError& error) {
    try {
      failures_->report(error);
    } catch (const std::exception&) {  // wait() says it
    }
  } catch (...) {
  }
  return true;
}

void CommsWork::is_late() {
  end(WorkStatus::TIMEDOUT);
  try {
    failures_->report("mscclc: a call has not ended within " + std::to_string(timeout_.count()) +
                      " ms");
  } catch (const std::exception&) {
    work_->abort();  // so that wait() says it, on all ranks
  }
}

// ---- Watch ----

void Watch::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Watch::add(c10::intrusive_ptr<CommsWork> work) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->works.push_back(std::move(work));
    if (state_->works.size() == 1) state_->oldest_since = std::chrono::steady_clock::now();
    if (!thread_.joinable()) thread_ = std::thread([state = state_] { run(*state); });
  }
  state_->changed.notify_all();
}

std::deque<c10::intrusive_ptr<CommsWork>> Watch::take() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->works, {});
}

void Watch::run(State& state) {
  relax_captures();
  std::unique_lock lock(state.mutex);
  while (!state.ends) {
    if (state.works.empty()) {
      state.changed.wait(lock);
      continue;
    }
    auto oldest = state.works.front();
    const auto since = state.oldest_since;
    lock.unlock();
    const bool ended = look_at(*oldest, since);
    lock.lock();
    if (!ended) {
      state.changed.wait_for(lock, kLook, [&] { return state.ends; });
    } else if (!state.works.empty() && state.works.front() == oldest) {
      state.works.pop_front();
      state.oldest_since = std::chrono::steady_clock::now();
    }
    lock.unlock();
    oldest.reset();  // its tensors need the interpreter, which a thread may have that adds a work
    lock.lock();
  }
}

bool Watch::look_at(CommsWork& work, std::chrono::steady_clock::time_point since) {
  const c10::DeviceGuard guard(work.device());
  if (work.has_ended()) return true;
  // What a GPU waits for may be its own: there the library says what takes too long.
  if (!work.device().is_cpu()) return false;
  if (std::chrono::steady_clock::now() - since <= work.getTimeout()) return false;
  work.is_late();
  return true;
}

}  // namespace mscclc::torch_comms
