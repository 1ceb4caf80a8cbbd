#include "python/mscclc/torch/comms/window.h"

#include <utility>

#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/adapter/symmetric/signal_pad.h"

namespace mscclc::torch_comms {
namespace {

using torch_adapter::symmetric_allocator;
using torch_adapter::symmetric_empty;
using torch_adapter::SymmetricMapping;
using torch_adapter::WithoutInterpreter;

constexpr auto kWhereTensorsComeFrom =
    "tensors of windows lie in symmetric memory of mscclc: import mscclc.torch.symmetric, for GPUs "
    "choose it by torch.distributed._symmetric_memory.set_backend(\"MSCCLC\"), and allocate them "
    "by "
    "empty() there";

[[noreturn]] void refuse_device_call(const char* call) {
  C10_THROW_ERROR(NotImplementedError, std::string("mscclc ") + call +
                                           ": kernels of the user have no handle to its windows; "
                                           "map_remote_tensor() gives them addresses of peers");
}

}  // namespace

// ---- What is registered ----

std::shared_ptr<Session> Window::ranks(const char* call) const {
  auto ranks = session_.lock();
  TORCH_CHECK(ranks != nullptr, "mscclc ", call,
              ": the communicator of the window was finalized, or has other ranks now");
  TORCH_CHECK(!ranks->was_aborted(), "mscclc ", call, ": communicator '", ranks->name(),
              "' was aborted");
  return ranks;
}

void Window::tensor_register(const at::Tensor& tensor, bool owning) {
  const auto ranks = this->ranks("tensor_register");
  TORCH_CHECK(!shared_.has_value(), "mscclc tensor_register: the window has a tensor already");
  TORCH_CHECK(tensor.defined() && tensor.is_contiguous() && tensor.device() == ranks->device(),
              "mscclc tensor_register: a window needs a contiguous tensor of ", ranks->device());
  const auto piece = symmetric_allocator(tensor.device().type())->piece_at(tensor.data_ptr());
  const auto begin = static_cast<const uint8_t*>(tensor.const_data_ptr());
  const int64_t offset = piece.has_value() ? begin - piece->address() : -1;
  const at::Tensor all = ranks->gather({offset, static_cast<int64_t>(tensor.nbytes())});
  Shared made;
  for (int r = 0; r < ranks->size(); ++r) {
    const int64_t at = all[r][0].item<int64_t>(), bytes = all[r][1].item<int64_t>();
    TORCH_CHECK(at >= 0, "mscclc tensor_register: the tensor of rank ", r,
                " is of another allocator; ", kWhereTensorsComeFrom);
    TORCH_CHECK(bytes == all[0][1].item<int64_t>(), "mscclc tensor_register: ranks 0 and ", r,
                " give ", all[0][1].item<int64_t>(), " and ", bytes, " bytes");
    made.offsets.push_back(static_cast<size_t>(at));
  }
  const auto words = static_cast<int64_t>(sizeof(uint32_t)) * ranks->size();
  const at::Tensor pad = symmetric_empty(words, tensor.device());  // the mapping keeps the memory
  const auto pad_piece = symmetric_allocator(tensor.device().type())->piece_at(pad.data_ptr());
  {
    const WithoutInterpreter other_threads;
    made.data = std::make_shared<SymmetricMapping>(ranks->team(), *piece);
    made.signals = std::make_shared<SymmetricMapping>(ranks->team(), *pad_piece);
  }
  made.sent.resize(made.offsets.size());
  made.awaited.resize(made.offsets.size());
  shared_ = std::move(made);
  win_size_ = tensor.nbytes();
  buf_dtype_ = tensor.scalar_type();
  buf_device_ = tensor.device();
  buf_shape_ = tensor.sizes().vec();
  if (owning) buf_tensor_ = tensor;
}

void Window::tensor_deregister() {
  const auto ranks = this->ranks("tensor_deregister");
  TORCH_CHECK(shared_.has_value(), "mscclc tensor_deregister: the window has no tensor");
  ranks->barrier(false, {})->hostSynchronize();
  shared_.reset();
  buf_tensor_.reset();
  win_size_ = 0;
}

std::shared_ptr<comms::TorchCommWindow> Window::clone() {
  ranks("clone");
  auto made = std::make_shared<Window>(session_);
  if (!shared_.has_value()) return made;
  TORCH_CHECK(buf_tensor_.has_value(), "mscclc clone: the window does not own its tensor");
  const auto bytes = static_cast<int64_t>(win_size_);
  const at::Tensor copy =
      symmetric_empty(bytes, buf_device_).view(buf_dtype_).view(buf_tensor_->sizes());
  copy.copy_(*buf_tensor_);
  made->tensor_register(copy);
  return made;
}

Window::Shared& Window::shared(const char* call, int rank) {
  const auto ranks = this->ranks(call);
  TORCH_CHECK(shared_.has_value(), "mscclc ", call,
              ": the window has no tensor; tensor_register() comes first");
  TORCH_CHECK(rank >= 0 && rank < ranks->size(), "mscclc ", call, ": there is no rank ", rank,
              " among ", ranks->size());
  return *shared_;
}

uint8_t* Window::address(int rank) const {
  const auto r = static_cast<size_t>(rank);
  auto* const begin = static_cast<uint8_t*>(shared_->data->buffers()[r]);
  return begin == nullptr ? nullptr : begin + shared_->offsets[r];
}

uint32_t* Window::word(const Shared& shared, int owner, int writer) {
  auto* const words = static_cast<uint32_t*>(shared.signals->buffers()[static_cast<size_t>(owner)]);
  return words + writer;
}

// ---- Operations ----

template <class Body>
Work Window::run(const char* name, at::Tensor tensor, bool async, std::chrono::milliseconds timeout,
                 Body body) {
  const auto ranks = this->ranks(name);
  Tensors tensors;
  if (tensor.defined()) tensors.push_back(std::move(tensor));
  Session::Backend::Alone alone{name, ranks->device(), tensors, async, std::move(body)};
  return ranks->run(name, tensors, async, timeout,
                    [&](Session::Backend& by) { return by.alone(std::move(alone)); });
}

Work Window::put(const at::Tensor& tensor, int to, size_t offset, bool async,
                 const comms::PutOptions& options) {
  const Shared& here = shared("put", to);
  TORCH_CHECK(tensor.device() == buf_device_, "mscclc put: a tensor of ", tensor.device(),
              " for a window of ", buf_device_);
  const size_t at = offset * tensor.element_size();
  TORCH_CHECK(offset <= win_size_ && at <= win_size_ && tensor.nbytes() <= win_size_ - at,
              "mscclc put: ", tensor.nbytes(), " bytes from byte ", at, " of a window of ",
              win_size_);
  TORCH_CHECK(address(to) != nullptr, "mscclc put: the window of rank ", to,
              " is not reached directly from here, as get_attr() says; use send() and recv()");
  const at::Tensor target =
      at::from_blob(
          address(to) + at, {static_cast<int64_t>(tensor.nbytes())},
          [mapping = here.data](void*) {}, at::TensorOptions().dtype(at::kByte).device(buf_device_),
          buf_device_)
          .view(tensor.scalar_type())
          .view(tensor.sizes());
  return run("put", tensor, async, options.timeout,
             [tensor, target](const auto&) { target.copy_(tensor); });
}

Work Window::signal(int to, bool async, const comms::SignalOptions& options) {
  Shared& here = shared("signal", to);
  const auto ranks = this->ranks("signal");
  TORCH_CHECK(address(to) != nullptr, "mscclc signal: the window of rank ", to,
              " is not reached directly from here, as get_attr() says; use send() and recv()");
  uint32_t* const to_write = word(here, to, ranks->rank());
  const uint32_t count = ++here.sent[static_cast<size_t>(to)];
  return run("signal", {}, async, options.timeout,
             [=, device = buf_device_, mapping = here.signals](const auto&) {
               torch_adapter::count_signal(device, to_write, count);
             });
}

Work Window::wait_signal(int from, bool async, const comms::WaitSignalOptions& options) {
  Shared& here = shared("wait_signal", from);
  const auto ranks = this->ranks("wait_signal");
  uint32_t* const to_read = word(here, ranks->rank(), from);
  const uint32_t count = ++here.awaited[static_cast<size_t>(from)];
  return run("wait_signal", {}, async, options.timeout,
             [=, device = buf_device_, mapping = here.signals](const auto& check) {
               torch_adapter::await_signal(device, to_read, count, {.check = check});
             });
}

at::Tensor Window::map_remote_tensor(int rank) {
  const Shared& here = shared("map_remote_tensor", rank);
  TORCH_CHECK(address(rank) != nullptr, "mscclc map_remote_tensor: the window of rank ", rank,
              " is not reached directly from here, as get_attr() says; use send() and recv()");
  return at::from_blob(
      address(rank), buf_shape_, [mapping = here.data](void*) {},
      at::TensorOptions().dtype(buf_dtype_).device(buf_device_), buf_device_);
}

std::shared_ptr<comms::TorchCommWindowAttr> Window::get_attr(int rank) {
  shared("get_attr", rank);
  auto attributes = std::make_shared<comms::TorchCommWindowAttr>();
  attributes->accessType = address(rank) != nullptr
                               ? comms::TorchCommWinAccessType::WIN_ACCESS_TYPE_UNIFIED
                               : comms::TorchCommWinAccessType::WIN_ACCESS_TYPE_SEPARATE;
  return attributes;
}

void* Window::get_device_window(int, int, int) { refuse_device_call("get_device_window"); }

comms::RegisteredBuffer Window::register_local_buffer(const at::Tensor&) {
  refuse_device_call("register_local_buffer");
}

int64_t Window::register_local_buffer_handle(const at::Tensor&) {
  refuse_device_call("register_local_buffer_handle");
}

}  // namespace mscclc::torch_comms
