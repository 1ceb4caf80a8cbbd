#include "python/mscclc/torch/comms/session.h"

#include <utility>

#include "python/mscclc/torch/adapter/interpreter.h"

namespace mscclc::torch_comms {
Session::Session(std::string name, at::Device device, Seat seat, std::chrono::milliseconds timeout,
                 std::shared_ptr<AbortHooks> hooks)
    : name_(std::move(name)),
      device_(device),
      seat_(std::move(seat)),
      timeout_(timeout),
      failures_(std::make_shared<Failures>(name_, std::move(hooks))),
      backend_(c10::make_intrusive<Backend>(seat_.store, rank(), size(),
                                            Backend::Settings{name_, timeout}, Backend::Others())),
      word_(at::zeros({1}, at::TensorOptions().device(device))) {}

Session::~Session() {
  const torch_adapter::WithoutInterpreter other_threads;
  watch_.stop();  // what ends from now on is of no concern
  try {
    backend_->shutdown();
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: ", error.what());
  }
}

void Session::check_device(const char* call, const at::Tensor& tensor) const {
  const at::Device device = tensor.device();
  TORCH_CHECK(device == device_ || device.is_cpu() || (device_.is_cpu() && device.is_cuda()),
              "mscclc ", call, ": communicator '", name_, "' is of ", device_, ", and a tensor of ",
              device);
}

at::Device Session::device_of(const char* call, const Tensors& tensors) const {
  for (const at::Tensor& tensor : tensors) {
    check_device(call, tensor);
    TORCH_CHECK(tensor.device() == tensors[0].device(), "mscclc ", call, ": tensors of ",
                tensors[0].device(), " and ", tensor.device(), " in one call");
  }
  return tensors.empty() ? device_ : tensors[0].device();
}

Work Session::barrier(bool async, std::chrono::milliseconds timeout) {
  if (device_.is_cpu()) {
    c10d::BarrierOptions options;
    options.asyncOp = async;
    options.timeout = timeout_of(timeout);
    options.device = device_;
    return run("barrier", {}, async, timeout, [&](Backend& to) { return to.barrier(options); });
  }
  c10d::AllreduceOptions options;
  options.asyncOp = async;
  options.timeout = timeout_of(timeout);
  Tensors words{word_};
  return run("barrier", words, async, timeout,
             [&](Backend& to) { return to.allreduce(words, options); });
}

at::Tensor Session::gather(const std::vector<int64_t>& own) {
  const auto count = static_cast<int64_t>(own.size());
  at::Tensor mine = at::tensor(own, at::kLong).to(device_);
  at::Tensor all = at::empty({size() * count}, mine.options());
  c10d::AllgatherOptions options;
  options.asyncOp = false;
  options.timeout = timeout_;
  run("gather", {all, mine}, false, timeout_,
      [&](Backend& to) { return to._allgather_base(all, mine, options); });
  return all.cpu().view({size(), count});
}

void Session::drain() {
  for (const auto& work : watch_.take()) work->waitBlocking();
}

void Session::abort() {
  if (aborted_.exchange(true)) return;
  failures_->expect();
  backend_->abort();
  const std::lock_guard lock(mutex_);
  if (team_ != nullptr) team_->abort("communicator '" + name_ + "' was aborted");
}

void Session::end() {
  if (is_aborted()) abort();
  try {
    drain();
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: communicator '", name_, "' gets other ranks: ", error.what());
  }
}

bool Session::is_aborted() const {
  return aborted_ || backend_->getError() != c10d::ErrorType::SUCCESS;
}

const std::shared_ptr<torch_adapter::SymmetricTeam>& Session::team() {
  if (team_ != nullptr) return team_;
  const torch_adapter::WithoutInterpreter other_threads;
  group_ = c10::make_intrusive<c10d::ProcessGroup>(seat_.store, rank(), size());
  group_->setBackend(device_.type(), c10d::ProcessGroup::BackendType::CUSTOM, backend_);
  group_->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  // Teams are found by it: no two groups that live have the same.
  const auto number = reinterpret_cast<uintptr_t>(group_.get());
  group_->setGroupName("mscclc/torchcomms/" + std::to_string(number));
  auto met = torch_adapter::symmetric_allocator(device_.type())->teams().of(group_, device_);
  const std::lock_guard lock(mutex_);
  team_ = std::move(met);
  return team_;
}

}  // namespace mscclc::torch_comms
