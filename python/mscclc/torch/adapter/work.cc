#include "python/mscclc/torch/adapter/work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

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

HostWork::HostWork(About about, std::function<void(const std::string&)> expire)
    : Work(about.rank, about.op),
      about_(std::move(about)),
      expire_(std::move(expire)),
      future_(make_future({})) {}

void HostWork::end(std::exception_ptr error) {
  std::vector<at::Tensor> outputs;
  {
    const std::lock_guard lock(mutex_);
    outputs = about_.outputs;
    about_.tensors.clear();
  }
  finish(error);
  if (error) {
    future_->setError(error);
  } else {
    future_->markCompleted(c10::IValue(outputs));
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
      device_(device),
      ended_(device.type()),
      future_(make_future({device})) {
  ended_.record(current_stream(device));
  future_->markCompleted(c10::IValue(about_.outputs));  // it waits for the stream, too
}

bool DeviceWork::isCompleted() { return ended_.query() || exception() != nullptr; }

bool DeviceWork::isSuccess() const { return exception() == nullptr; }

std::exception_ptr DeviceWork::exception() const {
  try {
    comm_->check();
    return nullptr;
  } catch (const std::exception&) {
    return std::current_exception();
  }
}

bool DeviceWork::wait(std::chrono::milliseconds) {
  synchronize();
  return true;
}

void DeviceWork::synchronize() {
  comm_->check();
  ended_.block(current_stream(device_));
  if (opType_ != c10d::OpType::BARRIER) return;
  ended_.synchronize();
  comm_->check();
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
