// The calls of TorchComms' backend: collectives and messages, as calls of torch.distributed's.
#include "python/mscclc/torch/comms/backend.h"

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

std::vector<int64_t> splits_of(const std::vector<uint64_t>& splits) {
  return {splits.begin(), splits.end()};
}

std::vector<at::Tensor> with(std::vector<at::Tensor> tensors, const at::Tensor& one) {
  tensors.push_back(one);
  return tensors;
}

}  // namespace

template <class Wanted, class Given>
Wanted CommsBackend::options_of(const Given& given, bool async) const {
  Wanted options;
  options.asyncOp = async;
  options.timeout = given.timeout.count() > 0 ? given.timeout : options_.timeout;
  return options;
}

// ---- Collectives ----

Work CommsBackend::broadcast(at::Tensor& tensor, int root, bool async,
                             const comms::BroadcastOptions& given) {
  auto options = options_of<c10d::BroadcastOptions>(given, async);
  options.rootRank = root;
  Tensors tensors{tensor};
  return session().run("broadcast", tensors, async, given.timeout,
                       [&](Backend& to) { return to.broadcast(tensors, options); });
}

Work CommsBackend::all_reduce(at::Tensor& tensor, const comms::ReduceOp& op, bool async,
                              const comms::AllReduceOptions& given) {
  auto options = options_of<c10d::AllreduceOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  Tensors tensors{tensor};
  return session().run("all_reduce", tensors, async, given.timeout,
                       [&](Backend& to) { return to.allreduce(tensors, options); });
}

Work CommsBackend::reduce(const at::Tensor& tensor, int root, const comms::ReduceOp& op, bool async,
                          const comms::ReduceOptions& given) {
  auto options = options_of<c10d::ReduceOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  options.rootRank = root;
  Tensors tensors{tensor};
  return session().run("reduce", tensors, async, given.timeout,
                       [&](Backend& to) { return to.reduce(tensors, options); });
}

Work CommsBackend::all_gather(const Tensors& outputs, const at::Tensor& input, bool async,
                              const comms::AllGatherOptions& given) {
  const auto options = options_of<c10d::AllgatherOptions>(given, async);
  std::vector<Tensors> lists{outputs};
  Tensors inputs{input};
  return session().run("all_gather", with(outputs, input), async, given.timeout,
                       [&](Backend& to) { return to.allgather(lists, inputs, options); });
}

Work CommsBackend::all_gather_v(const Tensors& outputs, const at::Tensor& input, bool async,
                                const comms::AllGatherOptions& given) {
  return all_gather(outputs, input, async, given);
}

Work CommsBackend::all_gather_single(at::Tensor& output, const at::Tensor& input, bool async,
                                     const comms::AllGatherSingleOptions& given) {
  const auto options = options_of<c10d::AllgatherOptions>(given, async);
  at::Tensor from = input;
  return session().run("all_gather_single", {output, input}, async, given.timeout,
                       [&](Backend& to) { return to._allgather_base(output, from, options); });
}

Work CommsBackend::reduce_scatter(at::Tensor& output, const Tensors& inputs,
                                  const comms::ReduceOp& op, bool async,
                                  const comms::ReduceScatterOptions& given) {
  auto options = options_of<c10d::ReduceScatterOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  Tensors outputs{output};
  std::vector<Tensors> lists{inputs};
  return session().run("reduce_scatter", with(inputs, output), async, given.timeout,
                       [&](Backend& to) { return to.reduce_scatter(outputs, lists, options); });
}

Work CommsBackend::reduce_scatter_v(at::Tensor& output, const Tensors& inputs,
                                    const comms::ReduceOp& op, bool async,
                                    const comms::ReduceScatterOptions& given) {
  return reduce_scatter(output, inputs, op, async, given);
}

Work CommsBackend::reduce_scatter_single(at::Tensor& output, const at::Tensor& input,
                                         const comms::ReduceOp& op, bool async,
                                         const comms::ReduceScatterSingleOptions& given) {
  auto options = options_of<c10d::ReduceScatterOptions>(given, async);
  options.reduceOp = reduction_of_comms(op);
  at::Tensor from = input;
  return session().run("reduce_scatter_single", {output, input}, async, given.timeout,
                       [&](Backend& to) { return to._reduce_scatter_base(output, from, options); });
}

Work CommsBackend::all_to_all_single(at::Tensor& output, const at::Tensor& input, bool async,
                                     const comms::AllToAllSingleOptions& given) {
  comms::AllToAllvSingleOptions same;
  same.timeout = given.timeout;
  return all_to_all_v_single(output, input, {}, {}, async, same);
}

Work CommsBackend::all_to_all_v_single(at::Tensor& output, const at::Tensor& input,
                                       const Splits& output_splits, const Splits& input_splits,
                                       bool async, const comms::AllToAllvSingleOptions& given) {
  const auto options = options_of<c10d::AllToAllOptions>(given, async);
  at::Tensor from = input;
  auto out = splits_of(output_splits), in = splits_of(input_splits);
  return session().run(
      "all_to_all_single", {output, input}, async, given.timeout,
      [&](Backend& to) { return to.alltoall_base(output, from, out, in, options); });
}

Work CommsBackend::all_to_all(const Tensors& outputs, const Tensors& inputs, bool async,
                              const comms::AllToAllOptions& given) {
  const auto options = options_of<c10d::AllToAllOptions>(given, async);
  Tensors all = outputs, to_fill = outputs, from = inputs;
  all.insert(all.end(), inputs.begin(), inputs.end());
  return session().run("all_to_all", all, async, given.timeout,
                       [&](Backend& to) { return to.alltoall(to_fill, from, options); });
}

Work CommsBackend::barrier(bool async, const comms::BarrierOptions& given) {
  return session().barrier(async, given.timeout);
}

Work CommsBackend::scatter(at::Tensor& output, const Tensors& inputs, int root, bool async,
                           const comms::ScatterOptions& given) {
  auto options = options_of<c10d::ScatterOptions>(given, async);
  options.rootRank = root;
  Tensors outputs{output};
  std::vector<Tensors> lists;
  if (rank_ == root) lists.push_back(inputs);
  return session().run("scatter", rank_ == root ? with(inputs, output) : outputs, async,
                       given.timeout,
                       [&](Backend& to) { return to.scatter(outputs, lists, options); });
}

Work CommsBackend::gather(const Tensors& outputs, const at::Tensor& input, int root, bool async,
                          const comms::GatherOptions& given) {
  auto options = options_of<c10d::GatherOptions>(given, async);
  options.rootRank = root;
  Tensors inputs{input};
  std::vector<Tensors> lists;
  if (rank_ == root) lists.push_back(outputs);
  return session().run("gather", rank_ == root ? with(outputs, input) : inputs, async,
                       given.timeout,
                       [&](Backend& to) { return to.gather(lists, inputs, options); });
}

// ---- Messages ----

Work CommsBackend::send(const at::Tensor& tensor, int to, bool async,
                        const comms::SendOptions& given) {
  Tensors tensors{tensor};
  return session().run("send", tensors, async, given.timeout,
                       [&](Backend& by) { return by.send(tensors, to, given.tag); });
}

Work CommsBackend::recv(at::Tensor& tensor, int from, bool async, const comms::RecvOptions& given) {
  Tensors tensors{tensor};
  return session().run("recv", tensors, async, given.timeout,
                       [&](Backend& by) { return by.recv(tensors, from, given.tag); });
}

Work CommsBackend::batch_op_issue(const std::vector<comms::BatchSendRecv::P2POp>& ops, bool async,
                                  const comms::BatchP2POptions& given) {
  using Type = comms::BatchSendRecv::P2POp::OpType;
  Tensors all;
  for (const auto& op : ops) all.push_back(op.tensor);
  return session().run("batch_op_issue", all, async, given.timeout, [&](Backend& by) {
    by.startCoalescing();
    try {
      for (const auto& op : ops) {
        Tensors tensors{op.tensor};
        op.type == Type::SEND ? by.send(tensors, op.peer, 0) : by.recv(tensors, op.peer, 0);
      }
    } catch (...) {
      by.startCoalescing();  // which forgets this batch
      by.endCoalescing();
      throw;
    }
    return by.endCoalescing();
  });
}

// ---- Persistent all-gathers ----

CommsBackend::AllGatherPHandle CommsBackend::all_gather_p_init(
    at::Tensor& output, const comms::AllGatherPInitOptions&) {
  const Session& ranks = session();
  ranks.check_device("all_gather_p_init", output);
  TORCH_CHECK(output.numel() % ranks.size() == 0, "mscclc all_gather_p_init: an output of ",
              output.numel(), " elements has no equal parts for ", ranks.size(), " ranks");
  auto kept = std::make_unique<at::Tensor>(output);
  const AllGatherPHandle handle = kept.get();
  persistent_.emplace(handle, std::move(kept));
  return handle;
}

Work CommsBackend::all_gather_p_exec(AllGatherPHandle handle, const at::Tensor& input, bool async,
                                     const comms::AllGatherPExecOptions& given) {
  const auto found = persistent_.find(handle);
  TORCH_CHECK(found != persistent_.end(),
              "mscclc all_gather_p_exec: no such handle of communicator '", name_,
              "'; all_gather_p_init() makes them");
  comms::AllGatherSingleOptions same;
  same.timeout = given.timeout;
  return all_gather_single(*found->second, input, async, same);
}

void CommsBackend::all_gather_p_free(AllGatherPHandle handle) {
  TORCH_CHECK(persistent_.erase(handle) == 1,
              "mscclc all_gather_p_free: no such handle of communicator '", name_,
              "', or it was freed before");
}

}  // namespace mscclc::torch_comms
