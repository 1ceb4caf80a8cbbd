#include "python/mscclc/torch/adapter/backend.h"

#include <algorithm>
#include <functional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "python/mscclc/torch/adapter/barriers.h"
#include "python/mscclc/torch/adapter/calls.h"
#include "python/mscclc/torch/adapter/checks.h"
#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/adapter/process_state.h"
#include "python/mscclc/torch/adapter/queues/event_pool.h"

namespace mscclc::torch_adapter {
namespace {

using Op = c10d::OpType;

/// The name of the n-th backend of a group in this store: groups may be made again.
std::string next_keys(c10d::Store& store, int rank) {
  const int64_t n = store.add("mscclc/backends/" + std::to_string(rank), 1);
  return "backend" + std::to_string(n);
}

/// What is left where the first `done` tensors are done.
std::vector<at::Tensor> rest(const std::vector<at::Tensor>& tensors, size_t done) {
  return {tensors.begin() + static_cast<ptrdiff_t>(done), tensors.end()};
}

/// Whether this is the first time that the process has `line` to say.
bool is_first(const std::string& line) {
  ProcessState& process = ProcessState::get();
  const std::lock_guard lock(process.mutex);
  return process.said.insert(line).second;
}

}  // namespace

MscclcBackend::MscclcBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                             Settings settings, Others others)
    : Backend(rank, size), settings_(std::move(settings)), others_(std::move(others)) {
  if (settings_.changing) {
    const int64_t n = store->add("mscclc/handles", 1);
    changing_.emplace(std::move(store), "mscclc/" + settings_.group + "/" + std::to_string(n));
  } else {
    meeting_.keys = next_keys(*store, rank);
    meeting_.store = std::move(store);
  }
}

MscclcBackend::~MscclcBackend() { end(); }

void MscclcBackend::end() noexcept {
  const WithoutInterpreter other_threads;  // what has not ended lets go of tensors
  try {
    shutdown();
    if (const auto forget = symmetric_memory_.end.exchange(nullptr)) forget();
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: ", error.what());
  }
}

// ---- Where requests run ----

std::string MscclcBackend::Meeting::name_of(const Where& where) {
  std::string name = keys + (where.device.is_cpu() ? "/cpu" : "/cuda");
  if (where.from >= 0) name += "/" + std::to_string(where.from) + "-" + std::to_string(where.to);
  if (where.device.is_cpu()) return name;
  const size_t number = gpus.number_of(where);
  return number == 0 ? name : name + "." + std::to_string(number);
}

std::shared_ptr<CallQueue> MscclcBackend::queue(const Where& where) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!meeting_.closed, "mscclc: the process group ", settings_.group, " was shut down");
  TORCH_CHECK(meeting_.store != nullptr, "mscclc: the process group ", settings_.group,
              " has no ranks: reconfigure() gives it some");
  if (const auto made = queues_.find(where); made != queues_.end()) return made->second;
  const bool host = where.device.is_cpu(), two = where.from >= 0;
  Membership membership{meeting_.store, meeting_.name_of(where), getRank(), getSize()};
  if (two) {
    membership.rank = where.from == getRank() ? 0 : 1;
    membership.ranks = 2;
    membership.beside = 2 * (getSize() - 1);
  }
  membership.device = host ? MSCCLC_HOST : where.device.index();
  membership.timeout = settings_.timeout;
  membership.order = settings_.order;
  membership.ends_process = !changing_ && settings_.ends_process >= (host ? EndsProcess::everywhere
                                                                          : EndsProcess::on_gpus);
  std::shared_ptr<CallQueue> queue;
  if (host) {
    queue = std::make_shared<HostCallQueue>(std::move(membership));
  } else {
    queue = std::make_shared<DeviceCallQueue>(std::move(membership), where.device);
  }
  if (!meeting_.aborted.empty()) queue->abort(meeting_.aborted);
  queues_.emplace(where, queue);
  return queue;
}

std::vector<std::shared_ptr<CallQueue>> MscclcBackend::queues() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CallQueue>> all;
  for (const auto& [where, queue] : queues_) all.push_back(queue);
  return all;
}

About MscclcBackend::about(c10d::OpType op, const char* name, Tensors inputs, Tensors outputs,
                           std::chrono::milliseconds timeout) {
  Tensors all = joined(std::move(inputs), outputs);
  check_alike(all, name);
  About about;
  about.op = op;
  about.sequence = c10d::isP2POp(op) ? ++numbers_.messages : ++numbers_.collectives;
  about.name = std::string("mscclc ") + name + " " + std::to_string(about.sequence) + " of rank " +
               std::to_string(getRank()) + " in group " + settings_.group;
  about.rank = getRank();
  about.tensors = std::move(all);
  about.outputs = std::move(outputs);
  about.timeout = std::max(timeout, std::chrono::milliseconds(0));
  return about;
}

SymmetricBuffers MscclcBackend::SymmetricMemoryOfGroup::buffers(const MscclcBackend& group,
                                                                const Where& where,
                                                                const Tensors& tensors) const {
  const bool promised = group.settings_.symmetric;
  const FindSymmetric found = find;
  if (found == nullptr || !(promised || where.device.is_cpu()) || where.from >= 0) return {};
  SymmetricBuffers buffers{.possible = true, .promised = promised};
  for (const at::Tensor& tensor : tensors) found(tensor, group, buffers.ranges);
  return buffers;
}

MscclcBackend::WorkPtr MscclcBackend::submit(const Where& where, Request request) {
  request.symmetric = symmetric_memory_.buffers(*this, where, request.about.tensors);
  const auto own = queue(where);
  if (request.about.timeout.count() == 0) request.about.timeout = timeout_on(*own);
  WorkPtr work = own->submit(std::move(request));
  const std::lock_guard lock(mutex_);
  if (batch_ && work != nullptr) batch_->works.push_back(work);
  return work;
}

MscclcBackend::WorkPtr MscclcBackend::submit(Request request) {
  const c10::Device device = request.about.tensors.front().device();
  return submit({device}, std::move(request));
}

template <class Call>
std::function<void()> MscclcBackend::instead(c10::DeviceType type, const char* name, Call call) {
  const auto other = others_.find(type);
  if (other == others_.end()) return nullptr;
  return [backend = other->second, name = std::string(name), group = settings_.group, call] {
    if (is_first(group + name + backend->getBackendName())) {
      TORCH_WARN("mscclc: no plan serves ", name, " of group ", group, ", so ",
                 backend->getBackendName(), " does it");
    }
    if (const WorkPtr work = call(*backend)) work->wait();
  };
}

// ---- Collectives ----

MscclcBackend::WorkPtr MscclcBackend::allreduce(Tensors& tensors,
                                                const c10d::AllreduceOptions& options) {
  const at::Tensor tensor = single(tensors, "all_reduce");
  Request request{about(Op::ALLREDUCE, "all_reduce", {}, tensors, options.timeout),
                  options.asyncOp};
  request.body = [=](const Runner& run) { all_reduce(run, tensor, options.reduceOp); };
  request.instead = instead(tensor.device().type(), "all_reduce", [=](c10d::Backend& other) {
    Tensors own{tensor};
    return other.allreduce(own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  TORCH_CHECK(!tensors.empty(), "mscclc all_reduce_coalesced: no tensors");
  Request request{
      about(Op::ALLREDUCE_COALESCED, "all_reduce_coalesced", {}, tensors, options.timeout),
      options.asyncOp};
  const auto done = std::make_shared<size_t>(0);  // a sum of sums is wrong
  request.body = [=](const Runner& run) {
    for (; *done < tensors.size(); ++*done) all_reduce(run, tensors[*done], options.reduceOp);
  };
  request.instead =
      instead(tensors[0].device().type(), "all_reduce_coalesced", [=](c10d::Backend& other) {
        Tensors own = rest(tensors, *done);
        return other.allreduce_coalesced(own, options);
      });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor tensor = single(tensors, "reduce");
  check_rank(options.rootRank, getSize(), "reduce");
  Request request{about(Op::REDUCE, "reduce", {}, tensors, options.timeout), options.asyncOp};
  const int root = static_cast<int>(options.rootRank);
  request.body = [=](const Runner& run) {
    mscclc::torch_adapter::reduce(run, tensor, root, options.reduceOp);
  };
  request.instead = instead(tensor.device().type(), "reduce", [=](c10d::Backend& other) {
    Tensors own{tensor};
    return other.reduce(own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::broadcast(Tensors& tensors,
                                                const c10d::BroadcastOptions& options) {
  const at::Tensor tensor = single(tensors, "broadcast");
  check_rank(options.rootRank, getSize(), "broadcast");
  Request request{about(Op::BROADCAST, "broadcast", {}, tensors, options.timeout), options.asyncOp};
  const int root = static_cast<int>(options.rootRank);
  request.body = [=](const Runner& run) { mscclc::torch_adapter::broadcast(run, tensor, root); };
  request.instead = instead(tensor.device().type(), "broadcast", [=](c10d::Backend& other) {
    Tensors own{tensor};
    return other.broadcast(own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                const c10d::AllgatherOptions& options) {
  const at::Tensor input = single(inputs, "all_gather");
  check_lists(outputs, getSize(), true, "all_gather");
  const Tensors list = outputs[0];
  check_count(input, list[static_cast<size_t>(getRank())].numel(), "all_gather", "input");
  Request request{about(Op::ALLGATHER, "all_gather", inputs, list, options.timeout),
                  options.asyncOp};
  // As NCCL's, the future has all inputs in one tensor, where they are of one size.
  const at::Tensor rows = rows_for(list);
  if (rows.defined()) {
    request.about.outputs = {rows};
    request.about.tensors.push_back(rows);
  }
  request.body = [=](const Runner& run) { all_gather_list(run, list, input, rows); };
  const auto other = instead(input.device().type(), "all_gather", [=](c10d::Backend& other) {
    std::vector<Tensors> lists{list};
    Tensors own{input};
    return other.allgather(lists, own, options);
  });
  if (other != nullptr) {
    request.instead = [=] {
      other();
      if (rows.defined()) rows.copy_(at::stack(list));
    };
  }
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::AllgatherOptions& options) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

MscclcBackend::WorkPtr MscclcBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  constexpr auto kName = "all_gather_into_tensor";
  TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(), "mscclc ", kName, ": ",
              inputs.size(), " inputs and ", outputs.size(), " outputs");
  Request request{about(Op::_ALLGATHER_BASE, kName, inputs, outputs, options.timeout),
                  options.asyncOp};
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_count(outputs[i], inputs[i].numel() * getSize(), kName, "output");
    check_overlap(outputs[i], inputs[i], getRank(), kName);
  }
  request.body = [=](const Runner& run) {
    for (size_t i = 0; i < inputs.size(); ++i) all_gather(run, outputs[i], inputs[i]);
  };
  request.instead = instead(inputs[0].device().type(), kName, [=](c10d::Backend& other) {
    Tensors targets = outputs, own = inputs;
    return other.allgather_into_tensor_coalesced(targets, own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  const at::Tensor output = single(outputs, "reduce_scatter");
  check_lists(inputs, getSize(), true, "reduce_scatter");
  const Tensors list = inputs[0];
  check_count(output, list[static_cast<size_t>(getRank())].numel(), "reduce_scatter", "output");
  Request request{about(Op::REDUCE_SCATTER, "reduce_scatter", list, outputs, options.timeout),
                  options.asyncOp};
  request.body = [=](const Runner& run) {
    reduce_scatter_list(run, output, list, options.reduceOp);
  };
  request.instead = instead(output.device().type(), "reduce_scatter", [=](c10d::Backend& other) {
    Tensors targets{output};
    std::vector<Tensors> lists{list};
    return other.reduce_scatter(targets, lists, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

MscclcBackend::WorkPtr MscclcBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  constexpr auto kName = "reduce_scatter_tensor";
  TORCH_CHECK(!inputs.empty() && inputs.size() == outputs.size(), "mscclc ", kName, ": ",
              inputs.size(), " inputs and ", outputs.size(), " outputs");
  Request request{about(Op::_REDUCE_SCATTER_BASE, kName, inputs, outputs, options.timeout),
                  options.asyncOp};
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_count(inputs[i], outputs[i].numel() * getSize(), kName, "input");
    check_overlap(inputs[i], outputs[i], getRank(), kName);
  }
  const auto done = std::make_shared<size_t>(0);  // outputs may lie in inputs
  request.body = [=](const Runner& run) {
    for (size_t& i = *done; i < inputs.size(); ++i) {
      mscclc::torch_adapter::reduce_scatter(run, outputs[i], inputs[i], options.reduceOp);
    }
  };
  request.instead = instead(inputs[0].device().type(), kName, [=](c10d::Backend& other) {
    Tensors targets = rest(outputs, *done), own = rest(inputs, *done);
    return other.reduce_scatter_tensor_coalesced(targets, own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                             const c10d::GatherOptions& options) {
  const at::Tensor input = single(inputs, "gather");
  check_rank(options.rootRank, getSize(), "gather");
  const int root = static_cast<int>(options.rootRank);
  check_lists(outputs, getSize(), root == getRank(), "gather");
  const Tensors list = outputs.empty() ? Tensors() : outputs[0];
  Request request{about(Op::GATHER, "gather", inputs, list, options.timeout), options.asyncOp};
  for (const at::Tensor& output : list) check_count(output, input.numel(), "gather", "output");
  request.body = [=](const Runner& run) { mscclc::torch_adapter::gather(run, list, input, root); };
  request.instead = instead(input.device().type(), "gather", [=](c10d::Backend& other) {
    std::vector<Tensors> lists;
    if (!list.empty()) lists.push_back(list);
    Tensors own{input};
    return other.gather(lists, own, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                              const c10d::ScatterOptions& options) {
  const at::Tensor output = single(outputs, "scatter");
  check_rank(options.rootRank, getSize(), "scatter");
  const int root = static_cast<int>(options.rootRank);
  check_lists(inputs, getSize(), root == getRank(), "scatter");
  const Tensors list = inputs.empty() ? Tensors() : inputs[0];
  Request request{about(Op::SCATTER, "scatter", list, outputs, options.timeout), options.asyncOp};
  for (const at::Tensor& input : list) check_count(input, output.numel(), "scatter", "input");
  request.body = [=](const Runner& run) {
    mscclc::torch_adapter::scatter(run, output, list, root);
  };
  request.instead = instead(output.device().type(), "scatter", [=](c10d::Backend& other) {
    Tensors targets{output};
    std::vector<Tensors> lists;
    if (!list.empty()) lists.push_back(list);
    return other.scatter(targets, lists, options);
  });
  return submit(std::move(request));
}

// A rank that gives no splits on a GPU does not come here: it waits for the call itself.
Counts MscclcBackend::agree(const About& about, const std::vector<int64_t>& sent,
                            const std::vector<int64_t>& expected) {
  auto counts = std::make_shared<Counts>();
  Request request;
  request.about.name = about.name;
  request.about.rank = getRank();
  request.body = [=](const Runner& run) { *counts = exchange_counts(run, sent, expected); };
  try {
    queue({c10::Device(c10::kCPU)})->submit(std::move(request))->wait(kNoTimeout);
  } catch (const c10::DistBackendError& error) {
    const std::string why =
        c10::str(error.what_without_backtrace(), "; on GPUs all ranks give splits, or none does");
    queue({about.tensors.front().device()})->abort(why);
    C10_THROW_ERROR(DistBackendError, why);
  }
  return *counts;
}

MscclcBackend::WorkPtr MscclcBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                    std::vector<int64_t>& output_splits,
                                                    std::vector<int64_t>& input_splits,
                                                    const c10d::AllToAllOptions& options) {
  constexpr auto kName = "all_to_all_single";
  Request request{about(Op::ALLTOALL_BASE, kName, {input}, {output}, options.timeout),
                  options.asyncOp};
  const auto sent = parts_of(input, input_splits, getSize(), "input");
  const auto expected = parts_of(output, output_splits, getSize(), "output");
  const bool even = input_splits.empty() && output_splits.empty();
  if (even) check_count(output, input.numel(), kName, "output");
  const at::Tensor source = input, target = output;
  if (input.is_cpu()) {  // others may give splits where this rank gives none
    request.body = [=](const Runner& run) {
      const Counts counts = exchange_counts(run, sent, expected);
      if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end()) {
        all_to_all(run, target, source);
      } else {
        all_to_all_uneven(run, target, source, counts);
      }
    };
  } else if (even) {
    request.body = [=](const Runner& run) { all_to_all(run, target, source); };
  } else {
    const Counts counts = agree(request.about, sent, expected);
    request.body = [=](const Runner& run) { all_to_all_uneven(run, target, source, counts); };
  }
  request.instead = instead(input.device().type(), kName, [=](c10d::Backend& other) {
    at::Tensor to = target, from = source;
    std::vector<int64_t> out = output_splits, in = input_splits;
    return other.alltoall_base(to, from, out, in, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                               const c10d::AllToAllOptions& options) {
  constexpr auto kName = "all_to_all";
  const auto size = static_cast<size_t>(getSize());
  TORCH_CHECK(inputs.size() == size && outputs.size() == size, "mscclc ", kName, ": ",
              inputs.size(), " inputs and ", outputs.size(), " outputs for ", size, " ranks");
  Request request{about(Op::ALLTOALL, kName, inputs, outputs, options.timeout), options.asyncOp};
  const auto sent = sizes_of(inputs), expected = sizes_of(outputs);
  if (inputs[0].is_cpu()) {
    request.body = [=](const Runner& run) {
      all_to_all_list(run, outputs, inputs, exchange_counts(run, sent, expected));
    };
  } else {
    const Counts counts = agree(request.about, sent, expected);
    request.body = [=](const Runner& run) { all_to_all_list(run, outputs, inputs, counts); };
  }
  request.instead = instead(inputs[0].device().type(), kName, [=](c10d::Backend& other) {
    Tensors to = outputs, from = inputs;
    return other.alltoall(to, from, options);
  });
  return submit(std::move(request));
}

MscclcBackend::WorkPtr MscclcBackend::barrier(const c10d::BarrierOptions& options) {
  const std::optional<c10::Device> named = named_gpu(options);
  c10::Device device = named.value_or(c10::kCPU);
  std::vector<Where> places;
  if (!named) {  // torch names the host for a group that has both
    const std::lock_guard lock(mutex_);
    for (const auto& [where, queue] : queues_) places.push_back(where);
    // All ranks take the same. Two ranks alone have the GPUs of their messages.
    device = meeting_.gpus.first_of_all();
  }
  const auto before =
      named ? std::make_shared<std::vector<PooledEvent>>() : work_beside(device, places);
  Request request{about(Op::BARRIER, "barrier", {}, {}, options.timeout)};
  request.body = [before](const Runner& run) {
    for (const PooledEvent& event : *before) event.synchronize();
    mscclc::torch_adapter::barrier(run);
  };
  return submit({device}, std::move(request));
}

// ---- The group as a whole ----

c10::intrusive_ptr<c10d::Backend> MscclcBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                       const std::vector<int>& ranks,
                                                       const c10::intrusive_ptr<Options>& options) {
  const uint64_t number = last_part_.count(store);  // the same on all ranks, which all are asked
  TORCH_CHECK(!ranks.empty(), "mscclc split_group: no ranks");
  for (const int rank : ranks) check_rank(rank, getSize(), "split_group");
  const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
  if (mine == ranks.end()) return nullptr;
  if (auto made = last_part_.in(store)) return made;
  Settings settings;
  PartOfGroup part{.rank = static_cast<int>(mine - ranks.begin()),
                   .size = static_cast<int>(ranks.size()),
                   .name = group_name_of(*options),
                   .parent = settings_.group,
                   .timeout = options->timeout};
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!meeting_.closed, "mscclc split_group: the process group ", settings_.group,
                " was shut down");
    TORCH_CHECK(meeting_.aborted.empty(), "mscclc split_group: ", meeting_.aborted);
    settings = settings_;
    // The store that torch gives is named by how many groups a rank has, which ranks may differ in.
    const int first = *std::min_element(ranks.begin(), ranks.end());
    part.store = c10::make_intrusive<c10d::PrefixStore>(
        c10::str(meeting_.keys, "/parts/", number, "/", first), meeting_.store);
  }
  settings.group = part.name;
  settings.timeout = part.timeout;
  auto made = c10::make_intrusive<MscclcBackend>(part.store, part.rank, part.size, settings,
                                                 part.begin(!others_.empty()));
  last_part_.keep(store, made);
  return made;
}

c10::intrusive_ptr<c10d::Store> MscclcBackend::store() const {
  const std::lock_guard lock(mutex_);
  return meeting_.store;
}

void MscclcBackend::setTimeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  for (const auto& [where, queue] : queues_) {
    if (timeout == queue->timeout()) continue;
    TORCH_CHECK(where.device.is_cpu(), "mscclc: ranks have met on ", where.device,
                ", where calls keep the timeout of ", queue->timeout().count(), " ms");
    TORCH_CHECK(timeout < queue->timeout(), "mscclc: ranks have met with a timeout of ",
                queue->timeout().count(), " ms, and later calls cannot have ", timeout.count());
  }
  settings_.timeout = timeout;
}

/// Of a call that does not say it: what was set since the ranks have met. Streams have no timeouts.
std::chrono::milliseconds MscclcBackend::timeout_on(const CallQueue& queue) {
  const std::lock_guard lock(mutex_);
  return settings_.timeout < queue.timeout() ? settings_.timeout : std::chrono::milliseconds(0);
}

c10::intrusive_ptr<c10d::Backend::Options> MscclcBackend::getBackendOptions() {
  const std::lock_guard lock(mutex_);
  return c10::make_intrusive<Options>("mscclc", settings_.timeout);
}

c10d::ErrorType MscclcBackend::getError() {
  try {
    for (const auto& queue : queues()) queue->check();
    return c10d::ErrorType::SUCCESS;
  } catch (const std::exception&) {
    return c10d::ErrorType::COMM_ERROR;
  }
}

void MscclcBackend::abort() {
  const std::string why = "the process group " + settings_.group + " was aborted";
  {
    const std::lock_guard lock(mutex_);
    meeting_.aborted = why;  // of queues that are made later
  }
  for (const auto& queue : queues()) queue->abort(why);
}

void MscclcBackend::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    meeting_.closed = true;
  }
  close_queues();
}

void MscclcBackend::close_queues() {
  for (const auto& queue : queues()) queue->close();
  std::map<Where, std::shared_ptr<CallQueue>> gone;  // a communicator ends without the lock
  const std::lock_guard lock(mutex_);
  gone.swap(queues_);
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE

c10d::ReconfigureHandle MscclcBackend::get_reconfigure_handle() const {
  TORCH_CHECK(changing_.has_value(), "mscclc: the process group ", settings_.group,
              " was made without enable_reconfigure=True");
  return changing_->handle();
}

MscclcBackend::WorkPtr MscclcBackend::reconfigure(const c10d::ReconfigureOptions& options) {
  (void)get_reconfigure_handle();
  std::chrono::milliseconds timeout{0};
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!meeting_.closed, "mscclc reconfigure: the process group ", settings_.group,
                " was shut down");
    TORCH_CHECK(!batch_, "mscclc reconfigure: calls are being coalesced");
    timeout = options.timeout.value_or(settings_.timeout);
  }
  const AskedRanks asked = changing_->asked(options);
  const WithoutInterpreter other_threads;
  if (getError() != c10d::ErrorType::SUCCESS) abort();
  {
    const std::lock_guard lock(mutex_);
    meeting_ = {};  // from now on there are no ranks
  }
  close_queues();
  auto store = changing_->meet(asked, timeout);
  const std::lock_guard lock(mutex_);
  meeting_ = {std::move(store), "ranks"};
  rank_ = asked.rank;
  size_ = static_cast<int>(asked.members.size());
  numbers_.collectives = numbers_.messages = 0;
  symmetric_memory_.find = nullptr;
  return c10::make_intrusive<Works>(rank_, std::vector<WorkPtr>());
}

#endif

}  // namespace mscclc::torch_adapter
