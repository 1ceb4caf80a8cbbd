// Messages of two ranks, what a rank does alone, and calls that are coalesced.
#include <ATen/core/LegacyTypeDispatch.h>

#include "python/mscclc/torch/adapter/backend.h"
#include "python/mscclc/torch/adapter/calls.h"
#include "python/mscclc/torch/adapter/checks.h"

namespace mscclc::torch_adapter {

MscclcBackend::WorkPtr MscclcBackend::send(Tensors& tensors, int to, int) {
  check_rank(to, getSize(), "send");
  return message(c10d::OpType::SEND, "send", tensors,
                 {single(tensors, "send").device(), getRank(), to});
}

MscclcBackend::WorkPtr MscclcBackend::recv(Tensors& tensors, int from, int) {
  check_rank(from, getSize(), "recv");
  return message(c10d::OpType::RECV, "recv", tensors,
                 {single(tensors, "recv").device(), from, getRank()});
}

MscclcBackend::WorkPtr MscclcBackend::message(c10d::OpType op, const char* name, Tensors& tensors,
                                              Where where) {
  const bool sends = op == c10d::OpType::SEND;
  if (where.from == where.to) {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(batch_.has_value(), "mscclc ", name,
                ": a rank has messages for itself in batches only (batch_isend_irecv)");
    (sends ? batch_->own.sent : batch_->own.received).push_back(tensors[0]);
    return c10::make_intrusive<Works>(getRank(), std::vector<WorkPtr>());
  }
  Request request{about(op, name, sends ? tensors : Tensors(), sends ? Tensors() : tensors,
                        c10d::kUnsetTimeout)};
  request.about.name +=
      sends ? " to rank " + std::to_string(where.to) : " from rank " + std::to_string(where.from);
  request.body = [tensor = tensors[0]](const Runner& run) {
    mscclc::torch_adapter::broadcast(run, tensor, 0);
  };
  if (where.device.is_cpu()) return submit(where, std::move(request));
  // Two ranks may send to each other first, and a message of a batch may answer another one: a rank
  // that waited here for the other one to receive would wait forever.
  request.waits = [tensor = tensors[0]](const Runner& run) {
    return broadcast_waits(run, tensor, 0);
  };
  {
    const std::lock_guard lock(mutex_);
    if (batch_) {
      batch_->messages.push_back({where, std::move(request)});
      return c10::make_intrusive<Works>(getRank(), std::vector<WorkPtr>());
    }
  }
  return submit(where, std::move(request));
}

void MscclcBackend::OwnMessages::carry_out() const {
  TORCH_CHECK(sent.size() == received.size(), "mscclc batch_isend_irecv: the rank sends itself ",
              sent.size(), " messages, and receives ", received.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    TORCH_CHECK(sent[i].numel() == received[i].numel() &&
                    sent[i].scalar_type() == received[i].scalar_type(),
                "mscclc batch_isend_irecv: the rank sends itself ", sent[i].numel(), " of ",
                sent[i].scalar_type(), ", and receives ", received[i].numel(), " of ",
                received[i].scalar_type());
  }
  const at::AutoDispatchBelowADInplaceOrView guard;
  for (size_t i = 0; i < sent.size(); ++i) {
    received[i].copy_(sent[i].reshape(received[i].sizes()));
  }
}

MscclcBackend::WorkPtr MscclcBackend::alone(Alone what) {
  Request request{about(c10d::OpType::SEND, what.name, what.tensors, {}, c10d::kUnsetTimeout),
                  what.async};
  request.body = [body = std::move(what.body)](const Runner& run) {
    body([&run] { run.comm.check(); });
  };
  return submit({what.device}, std::move(request));
}

void MscclcBackend::startCoalescing() {
  std::optional<Batch> cut;  // short by an error: ended without the lock
  const std::lock_guard lock(mutex_);
  cut.swap(batch_);
  batch_.emplace();
}

MscclcBackend::WorkPtr MscclcBackend::endCoalescing() {
  std::optional<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(batch_);
  }
  if (!batch) batch.emplace();  // without a beginning
  batch->own.carry_out();
  for (Message& message : batch->messages) {
    batch->works.push_back(submit(message.where, std::move(message.request)));
  }
  return c10::make_intrusive<Works>(getRank(), std::move(batch->works));
}

}  // namespace mscclc::torch_adapter
