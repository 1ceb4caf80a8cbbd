#include "python/mscclc/torch/adapter/queues/work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace mscclc::torch_adapter {
namespace {

c10::intrusive_ptr<c10::ivalue::Future> make_future(std::vector<c10::Device> devices) {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                  std::move(devices));
}

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

std::exception_ptr named(const std::string& name, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const NoPlan& none) {
    return std::make_exception_ptr(
        c10::NotImplementedError({__func__, __FILE__, __LINE__}, name + ": " + none.what()));
  } catch (const c10::DistBackendError& failed) {
    return std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, __LINE__}, name + ": " + failed.what_without_backtrace()));
  } catch (const c10::Error&) {
    return error;
  } catch (const std::exception& failed) {
    return std::make_exception_ptr(
        c10::DistBackendError({__func__, __FILE__, __LINE__}, name + ": " + failed.what()));
  }
}

HostWork::HostWork(About about, std::function<void(const std::string&)> expire)
    : Work(about.rank, about.op),
      about_(std::move(about)),
      expire_(std::move(expire)),
      future_(make_future({})) {}

void HostWork::end(std::exception_ptr error) {
  std::vector<at::Tensor> let_go;
  {
    const std::lock_guard lock(mutex_);
    let_go.swap(about_.tensors);
  }
  // Needs the interpreter, which a thread may have that asks this work something.
  let_go.clear();
  finish(error);
}

void HostWork::end_future() {
  if (const auto error = exception()) {
    future_->setError(error);
  } else {
    future_->markCompleted(c10::IValue(result()));
  }
}

bool HostWork::wait(std::chrono::milliseconds timeout) {
  const auto most = timeout > kNoTimeout ? timeout : about_.timeout;
  std::unique_lock lock(mutex_);
  if (most <= kNoTimeout) {
    cv_.wait(lock, [&] { return completed_; });
  } else if (!cv_.wait_for(lock, most, [&] { return completed_; })) {
    lock.unlock();
    const std::string text =
        about_.name + " has not ended within " + std::to_string(most.count()) + " ms";
    expire_(text);
    C10_THROW_ERROR(DistBackendError, text);
  }
  if (exception_) std::rethrow_exception(exception_);
  return true;
}

void HostWork::synchronize() { wait(kNoTimeout); }

void HostWork::abort() { expire_(about_.name + " was aborted"); }

std::vector<at::Tensor> HostWork::result() {
  const std::lock_guard lock(mutex_);
  return about_.outputs;
}

DeviceWork::DeviceWork(About about, std::shared_ptr<Communicator> comm, c10::Device device)
    : Work(about.rank, about.op),
      about_(std::move(about)),
      comm_(std::move(comm)),
      device_(device) {}

void DeviceWork::keep_memory_for(const c10::Stream& stream) const {
  const c10::impl::VirtualGuardImpl impl(device_.type());
  for (const at::Tensor& tensor : about_.tensors) {
    impl.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
  }
}

void DeviceWork::queued(const c10::Stream& stream) {
  keep_memory_for(stream);
  {
    const std::lock_guard lock(mutex_);
    ended_.record(stream);
    stream_ = stream;
    is_queued_ = true;
  }
  cv_.notify_all();
}

void DeviceWork::refused(const c10::Stream& stream, std::exception_ptr error) {
  keep_memory_for(stream);
  {
    const std::lock_guard lock(mutex_);
    exception_ = error;
    is_queued_ = true;
  }
  cv_.notify_all();
}

c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    if (future_ == nullptr) future_ = make_future({device_});
    future = future_;
  }
  end_future();
  return future;
}

void DeviceWork::end_future() {
  {
    const std::lock_guard lock(mutex_);
    if (future_ == nullptr || !is_queued_ || future_has_ended_) return;
    future_has_ended_ = true;
  }
  if (exception_) {
    future_->setError(exception_);
  } else {
    const c10::StreamGuard on_its_stream(*stream_);
    future_->markCompleted(c10::IValue(about_.outputs));  // it waits for the stream, too
  }
}

void DeviceWork::wait_until_queued() {
  std::unique_lock lock(mutex_);
  cv_.wait(lock, [&] { return is_queued_; });
  if (exception_) std::rethrow_exception(exception_);
}

bool DeviceWork::isCompleted() {
  {
    const std::lock_guard lock(mutex_);
    if (is_queued_ && (exception_ || ended_.query())) return true;
  }
  return exception() != nullptr;
}

bool DeviceWork::isSuccess() const { return exception() == nullptr; }

std::exception_ptr DeviceWork::exception() const {
  {
    const std::lock_guard lock(mutex_);
    if (exception_) return exception_;
  }
  try {
    check();
    return nullptr;
  } catch (const std::exception&) {
    return std::current_exception();
  }
}

void DeviceWork::check() const {
  try {
    comm_->check();
  } catch (const std::exception&) {
    std::rethrow_exception(named(about_.name, std::current_exception()));
  }
}

bool DeviceWork::wait(std::chrono::milliseconds) {
  synchronize();
  return true;
}

void DeviceWork::synchronize() {
  wait_until_queued();
  check();
  ended_.block(current_stream(device_));
  if (opType_ != c10d::OpType::BARRIER) return;
  ended_.synchronize();
  check();
}

void DeviceWork::abort() { comm_->abort(about_.name + " was aborted"); }

Works::Works(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool Works::isCompleted() {
  for (const auto& work : works_) {
    if (!work->isCompleted()) return false;
  }
  return true;
}

bool Works::isSuccess() const { return exception() == nullptr; }

std::exception_ptr Works::exception() const {
  for (const auto& work : works_) {
    if (auto error = work->exception()) return error;
  }
  return nullptr;
}

bool Works::wait(std::chrono::milliseconds timeout) {
  for (const auto& work : works_) work->wait(timeout);
  return true;
}

void Works::synchronize() {
  for (const auto& work : works_) work->synchronize();
}

void Works::abort() {
  for (const auto& work : works_) work->abort();
}

std::vector<at::Tensor> Works::result() {
  std::vector<at::Tensor> all;
  for (const auto& work : works_) {
    for (auto& tensor : work->result()) all.push_back(tensor);
  }
  return all;
}

c10::intrusive_ptr<c10::ivalue::Future> Works::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> parts(
      c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
  for (const auto& work : works_) parts.push_back(work->getFuture());
  return c10::collectAll(parts);
}

}  // namespace mscclc::torch_adapter
