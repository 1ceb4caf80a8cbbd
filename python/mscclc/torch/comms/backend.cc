#include "python/mscclc/torch/comms/backend.h"

#include <mscclc.h>

#include <algorithm>
#include <comms/torchcomms/utils/StoreManager.hpp>
#include <comms/torchcomms/utils/Utils.hpp>
#include <set>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/comms/captures.h"

namespace mscclc::torch_comms {
namespace {

c10d::ReduceOp reduction_of_comms(const comms::ReduceOp& op) {
  using Type = comms::ReduceOp::RedOpType;
  switch (op.type()) {
    case Type::SUM:
      return c10d::ReduceOp::SUM;
    case Type::PRODUCT:
      return c10d::ReduceOp::PRODUCT;
    case Type::MIN:
      return c10d::ReduceOp::MIN;
    case Type::MAX:
      return c10d::ReduceOp::MAX;
    case Type::BAND:
      return c10d::ReduceOp::BAND;
    case Type::BOR:
      return c10d::ReduceOp::BOR;
    case Type::BXOR:
      return c10d::ReduceOp::BXOR;
    case Type::AVG:
      return c10d::ReduceOp::AVG;
    case Type::PREMUL_SUM:
      TORCH_CHECK(op.factor().has_value(), "mscclc: PREMUL_SUM has no factor");
      return std::visit([](const auto& factor) { return c10d::makeNCCLPreMulSum(factor); },
                        *op.factor());
  }
  TORCH_CHECK(false, "mscclc: unknown reduction ", static_cast<int>(op.type()));
}

/// What begins the keys of a communicator: a name of any characters is told from another one.
std::string prefix_of(const std::string& name) {
  return "mscclc/torchcomms/" + std::to_string(name.size()) + ":" + name;
}

std::vector<int64_t> splits_of(const std::vector<uint64_t>& splits) {
  return {splits.begin(), splits.end()};
}

std::vector<at::Tensor> with(std::vector<at::Tensor> tensors, const at::Tensor& one) {
  tensors.push_back(one);
  return tensors;
}

}  // namespace

// ---- The communicator ----

CommsBackend::~CommsBackend() {
  if (watch_ == nullptr) return;
  if (backend_ != nullptr) TORCH_WARN("mscclc: communicator '", name_, "' was not finalized");
  // TorchComms ends it where the interpreter is, which hooks need, and tensors of works.
  const torch_adapter::WithoutInterpreter other_threads;
  failures_->forget_hooks();
  watch_.reset();
  backend_.reset();
}

void CommsBackend::init(at::Device device, const std::string& name,
                        const comms::CommOptions& options) {
  const auto [rank, size] = comms::query_ranksize();
  TORCH_CHECK(size > 0 && rank >= 0 && rank < size, "mscclc: ", rank, " of ", size,
              " is no rank: see TORCHCOMM_RANK and TORCHCOMM_SIZE");
  const std::string prefix = prefix_of(name);
  c10::intrusive_ptr<c10d::Store> store;
  if (options.store == nullptr) {
    store = comms::createPrefixStore(prefix, options.timeout);
  } else {
    store = c10::make_intrusive<c10d::PrefixStore>(prefix, options.store);
  }
  start(device, name, options, {std::move(store), rank, size});
}

void CommsBackend::start(at::Device device, const std::string& name,
                         const comms::CommOptions& options, Seat seat) {
  TORCH_CHECK(!was_started_, "mscclc: communicator '", name, "' was initialized before");
  const auto fallback = options.hints.find("fallback");
  TORCH_CHECK(fallback == options.hints.end() || fallback->second == "0",
              "mscclc: only the backend in Python takes the hint 'fallback'");
  if (device.is_cuda() && !device.has_index()) {
    device = c10::impl::VirtualGuardImpl(device.type()).getDevice();
  }
  was_started_ = true;
  device_ = device;
  name_ = name;
  options_ = options;
  rank_ = seat.rank;
  size_ = seat.size;
  store_ = seat.store;
  failures_ = std::make_shared<Failures>(name, [this] { runAbortHooks(); });
  watch_ = std::make_unique<Watch>();
  backend_ = c10::make_intrusive<Backend>(
      seat.store, rank_, size_, Backend::Settings{name, options.timeout}, Backend::Others());
  try {
    word_ = at::zeros({1}, at::TensorOptions().device(device));
    barrier(false, {})->wait();
  } catch (...) {
    backend_.reset();
    throw;
  }
  if (options.abort_process_on_timeout_or_error) failures_->end_the_process();
}

void CommsBackend::finalize() {
  Backend& ended = backend();
  const auto keep = backend_;
  try {
    for (const auto& work : watch_->take()) work->waitBlocking();
    barrier(false, {})->hostSynchronize();
  } catch (...) {
    backend_.reset();
    ended.shutdown();
    throw;
  }
  for (const auto& work : watch_->take()) work->waitBlocking();
  backend_.reset();
  ended.shutdown();
}

std::string_view CommsBackend::getBackendVersion() const { return mscclc_version(); }

CommsBackend::Backend& CommsBackend::backend() const {
  TORCH_CHECK(was_started_, "mscclc: the communicator was not initialized");
  TORCH_CHECK(backend_ != nullptr, "mscclc: communicator '", name_, "' was finalized");
  return *backend_;
}

std::shared_ptr<comms::TorchCommBackend> CommsBackend::split(const Ranks& ranks,
                                                             const std::string& name,
                                                             const comms::CommOptions& options) {
  backend();
  const uint64_t number = splits_++;
  for (const int rank : ranks) {
    TORCH_CHECK(rank >= 0 && rank < size_, "mscclc split: there is no rank ", rank, " among ",
                size_);
  }
  TORCH_CHECK(std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size(),
              "mscclc split: ranks are named twice in ", ranks);
  if (ranks.empty()) return nullptr;
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  TORCH_CHECK(mine != ranks.end(), "mscclc split: rank ", rank_, " is not one of ", ranks);
  const int first = *std::min_element(ranks.begin(), ranks.end());
  auto store = c10::make_intrusive<c10d::PrefixStore>(
      "split/" + std::to_string(number) + "/" + std::to_string(first), store_);
  auto child = std::make_shared<CommsBackend>();
  child->start(
      device_, name, options,
      {std::move(store), static_cast<int>(mine - ranks.begin()), static_cast<int>(ranks.size())});
  return child;
}

// ---- How calls are made ----

void CommsBackend::check_devices(const char* call, const Tensors& tensors) const {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.device() == device_, "mscclc ", call, ": communicator '", name_, "' is of ",
                device_, ", and a tensor of ", tensor.device());
  }
}

template <class Wanted, class Given>
Wanted CommsBackend::options_of(const Given& given, bool async) const {
  Wanted options;
  options.asyncOp = async;
  options.timeout = given.timeout.count() > 0 ? given.timeout : options_.timeout;
  return options;
}

template <class Call>
CommsBackend::Work CommsBackend::run(const char* name, const Tensors& tensors, bool async,
                                     std::chrono::milliseconds timeout, Call call) {
  Backend& made_by = backend();
  check_devices(name, tensors);
  if (timeout.count() <= 0) timeout = options_.timeout;
  c10::intrusive_ptr<c10d::Work> below;
  try {
    below = call(made_by);
  } catch (const c10::DistBackendError& error) {
    failures_->report(error);
  }
  const c10::DeviceGuard guard(device_);
  auto work = c10::make_intrusive<CommsWork>(std::move(below), device_, timeout, failures_);
  if (!async) work->order();
  const auto stream = c10::impl::VirtualGuardImpl(device_.type()).getStream(device_);
  if (!captures(stream) && !work->isCompleted()) watch_->add(work);
  return work;
}

// ---- Collectives ----

CommsBackend::Work CommsBackend::broadcast(at::Tensor& tensor, int root, bool async,
                                           const comms::BroadcastOptions& given) {
  auto options = options_of<c10d::BroadcastOptions>(given, async);
  options.rootRank = root;
  Tensors tensors{tensor};
  return run("broadcast", tensors, async, given.timeout,
             [&](Backend& to) { return to.broadcast(tensors, options); });
}

CommsBackend::Work CommsBackend::all_reduce(at::Tensor& tensor, const comms::ReduceOp& op,
                                            bool async, const comms::AllReduceOptions& given) {
  auto options = options_of<c10d::AllreduceOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  Tensors tensors{tensor};
  return run("all_reduce", tensors, async, given.timeout,
             [&](Backend& to) { return to.allreduce(tensors, options); });
}

CommsBackend::Work CommsBackend::reduce(const at::Tensor& tensor, int root,
                                        const comms::ReduceOp& op, bool async,
                                        const comms::ReduceOptions& given) {
  auto options = options_of<c10d::ReduceOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  options.rootRank = root;
  Tensors tensors{tensor};
  return run("reduce", tensors, async, given.timeout,
             [&](Backend& to) { return to.reduce(tensors, options); });
}

CommsBackend::Work CommsBackend::all_gather(const Tensors& outputs, const at::Tensor& input,
                                            bool async, const comms::AllGatherOptions& given) {
  const auto options = options_of<c10d::AllgatherOptions>(given, async);
  std::vector<Tensors> lists{outputs};
  Tensors inputs{input};
  return run("all_gather", with(outputs, input), async, given.timeout,
             [&](Backend& to) { return to.allgather(lists, inputs, options); });
}

CommsBackend::Work CommsBackend::all_gather_v(const Tensors& outputs, const at::Tensor& input,
                                              bool async, const comms::AllGatherOptions& given) {
  return all_gather(outputs, input, async, given);
}

CommsBackend::Work CommsBackend::all_gather_single(at::Tensor& output, const at::Tensor& input,
                                                   bool async,
                                                   const comms::AllGatherSingleOptions& given) {
  const auto options = options_of<c10d::AllgatherOptions>(given, async);
  at::Tensor from = input;
  return run("all_gather_single", {output, input}, async, given.timeout,
             [&](Backend& to) { return to._allgather_base(output, from, options); });
}

CommsBackend::Work CommsBackend::reduce_scatter(at::Tensor& output, const Tensors& inputs,
                                                const comms::ReduceOp& op, bool async,
                                                const comms::ReduceScatterOptions& given) {
  auto options = options_of<c10d::ReduceScatterOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  Tensors outputs{output};
  std::vector<Tensors> lists{inputs};
  return run("reduce_scatter", with(inputs, output), async, given.timeout,
             [&](Backend& to) { return to.reduce_scatter(outputs, lists, options); });
}

CommsBackend::Work CommsBackend::reduce_scatter_v(at::Tensor& output, const Tensors& inputs,
                                                  const comms::ReduceOp& op, bool async,
                                                  const comms::ReduceScatterOptions& given) {
  return reduce_scatter(output, inputs, op, async, given);
}

CommsBackend::Work CommsBackend::reduce_scatter_single(
    at::Tensor& output, const at::Tensor& input, const comms::ReduceOp& op, bool async,
    const comms::ReduceScatterSingleOptions& given) {
  auto options = options_of<c10d::ReduceScatterOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  at::Tensor from = input;
  return run("reduce_scatter_single", {output, input}, async, given.timeout,
             [&](Backend& to) { return to._reduce_scatter_base(output, from, options); });
}

CommsBackend::Work CommsBackend::all_to_all_single(at::Tensor& output, const at::Tensor& input,
                                                   bool async,
                                                   const comms::AllToAllSingleOptions& given) {
  comms::AllToAllvSingleOptions same;
  same.timeout = given.timeout;
  return all_to_all_v_single(output, input, {}, {}, async, same);
}

CommsBackend::Work CommsBackend::all_to_all_v_single(at::Tensor& output, const at::Tensor& input,
                                                     const Splits& output_splits,
                                                     const Splits& input_splits, bool async,
                                                     const comms::AllToAllvSingleOptions& given) {
  const auto options = options_of<c10d::AllToAllOptions>(given, async);
  at::Tensor from = input;
  auto out = splits_of(output_splits), in = splits_of(input_splits);
  return run("all_to_all_single", {output, input}, async, given.timeout,
             [&](Backend& to) { return to.alltoall_base(output, from, out, in, options); });
}

CommsBackend::Work CommsBackend::all_to_all(const Tensors& outputs, const Tensors& inputs,
                                            bool async, const comms::AllToAllOptions& given) {
  const auto options = options_of<c10d::AllToAllOptions>(given, async);
  Tensors all = outputs, to_fill = outputs, from = inputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  return run("all_to_all", all, async, given.timeout,
             [&](Backend& to) { return to.alltoall(to_fill, from, options); });
}

CommsBackend::Work CommsBackend::barrier(bool async, const comms::BarrierOptions& given) {
  if (!device_.is_cpu()) {
    comms::AllReduceOptions options;
    options.timeout = given.timeout;
    return all_reduce(word_, comms::ReduceOp(comms::ReduceOp::RedOpType::SUM), async, options);
  }
  auto options = options_of<c10d::BarrierOptions>(given, async);
  options.device = device_;
  return run("barrier", {}, async, given.timeout, [&](Backend& to) { return to.barrier(options); });
}

CommsBackend::Work CommsBackend::scatter(at::Tensor& output, const Tensors& inputs, int root,
                                         bool async, const comms::ScatterOptions& given) {
  auto options = options_of<c10d::ScatterOptions>(given, async);
  options.rootRank = root;
  Tensors outputs{output};
  std::vector<Tensors> lists;
  if (rank_ == root) lists.push_back(inputs);
  return run("scatter", rank_ == root ? with(inputs, output) : outputs, async, given.timeout,
             [&](Backend& to) { return to.scatter(outputs, lists, options); });
}

CommsBackend::Work CommsBackend::gather(const Tensors& outputs, const at::Tensor& input, int root,
                                        bool async, const comms::GatherOptions& given) {
  auto options = options_of<c10d::GatherOptions>(given, async);
  options.rootRank = root;
  Tensors inputs{input};
  std::vector<Tensors> lists;
  if (rank_ == root) lists.push_back(outputs);
  return run("gather", rank_ == root ? with(outputs, input) : inputs, async, given.timeout,
             [&](Backend& to) { return to.gather(lists, inputs, options); });
}

// ---- Messages ----

CommsBackend::Work CommsBackend::send(const at::Tensor& tensor, int to, bool async,
                                      const comms::SendOptions& given) {
  Tensors tensors{tensor};
  return run("send", tensors, async, given.timeout,
             [&](Backend& by) { return by.send(tensors, to, given.tag); });
}

CommsBackend::Work CommsBackend::recv(at::Tensor& tensor, int from, bool async,
                                      const comms::RecvOptions& given) {
  Tensors tensors{tensor};
  return run("recv", tensors, async, given.timeout,
             [&](Backend& by) { return by.recv(tensors, from, given.tag); });
}

CommsBackend::Work CommsBackend::batch_op_issue(const std::vector<comms::BatchSendRecv::P2POp>& ops,
                                                bool async, const comms::BatchP2POptions& given) {
  using Type = comms::BatchSendRecv::P2POp::OpType;
  Tensors all;
  for (const auto& op : ops) all.push_back(op.tensor);
  return run("batch_op_issue", all, async, given.timeout, [&](Backend& by) {
    by.startCoalescing();
    try {
      for (const auto& op : ops) {
        Tensors tensors{op.tensor};
        op.type == Type::SEND ? by.send(tensors, op.peer, 0) : by.recv(tensors, op.peer, 0);
      }
    } catch (...) {
      by.endCoalescing();
      throw;
    }
    return by.endCoalescing();
  });
}

}  // namespace mscclc::torch_comms

// ---- How TorchComms finds it ----

extern "C" __attribute__((visibility("default"))) torch::comms::DynamicLoaderInterface
create_dynamic_loader_mscclc() {
  using torch::comms::TorchCommBackend;
  return {
      [] { return static_cast<TorchCommBackend*>(new mscclc::torch_comms::CommsBackend); },
      [](TorchCommBackend* comm) { delete comm; },
      [] { return torch::comms::TORCHCOMM_BACKEND_ABI_VERSION; },
  };
}
