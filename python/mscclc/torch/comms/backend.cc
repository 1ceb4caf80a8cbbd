#include "python/mscclc/torch/comms/backend.h"

#include <mscclc.h>

#include <algorithm>
#include <chrono>
#include <comms/torchcomms/utils/StoreManager.hpp>
#include <comms/torchcomms/utils/Utils.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/comms/window.h"

namespace mscclc::torch_comms {
namespace {

/// What begins the keys of a communicator. No two names give the same, whatever their characters.
std::string prefix_of(const std::string& name) {
  return "mscclc/torchcomms/" + std::to_string(name.size()) + ":" + name;
}

}  // namespace

// ---- The communicator ----

CommsBackend::~CommsBackend() {
  if (session_ != nullptr) TORCH_WARN("mscclc: communicator '", name_, "' was not finalized");
  hooks_->remove_all();
  // TorchComms ends it where the interpreter is, which tensors of works need.
  const torch_adapter::WithoutInterpreter other_threads;
  session_.reset();
}

void CommsBackend::init(at::Device device, const std::string& name,
                        const comms::CommOptions& options) {
  TORCH_CHECK(!was_started_, "mscclc: communicator '", name, "' was initialized before");
  const std::string prefix = prefix_of(name);
  c10::intrusive_ptr<c10d::Store> store;
  if (options.store == nullptr) {
    store = comms::createPrefixStore(prefix, options.timeout);
  } else {
    store = c10::make_intrusive<c10d::PrefixStore>(prefix, options.store);
  }
  start(device, name, options, std::move(store));
  if (options.enable_reconfigure) return;
  const auto [rank, size] = comms::query_ranksize();
  TORCH_CHECK(size > 0 && rank >= 0 && rank < size, "mscclc: ", rank, " of ", size,
              " is not a rank: see TORCHCOMM_RANK and TORCHCOMM_SIZE");
  join({store_, rank, size});
}

void CommsBackend::start(at::Device device, const std::string& name,
                         const comms::CommOptions& options, c10::intrusive_ptr<c10d::Store> store) {
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
  store_ = std::move(store);
  changing_.emplace(store_, "mscclc/" + name + "/" + std::to_string(store_->add("handles", 1)));
}

void CommsBackend::join(Seat seat) {
  auto met = std::make_shared<Session>(name_, device_, seat, options_.timeout, hooks_);
  met->barrier(false, {})->wait();
  // With other ranks to be had, a failure is for the caller.
  if (options_.abort_process_on_timeout_or_error && !options_.enable_reconfigure) {
    met->end_the_process();
  }
  rank_ = seat.rank;
  size_ = seat.size;
  const std::lock_guard lock(mutex_);
  session_ = std::move(met);
}

void CommsBackend::part() {
  std::shared_ptr<Session> gone;  // ends without the lock
  const torch_adapter::WithoutInterpreter other_threads;
  const std::lock_guard lock(mutex_);
  gone.swap(session_);
}

void CommsBackend::finalize() {
  TORCH_CHECK(was_started_, "mscclc: the communicator was not initialized");
  TORCH_CHECK(!was_finalized_, "mscclc: communicator '", name_, "' was finalized");
  was_finalized_ = true;
  const auto ranks = shared_session();
  part();
  persistent_.clear();
  registered_.clear();
  if (ranks == nullptr || ranks->was_aborted()) return;
  ranks->drain();
  if (options_.enable_reconfigure) return;  // the others may have gone to other ranks
  ranks->barrier(false, {})->hostSynchronize();
  ranks->drain();
}

std::string_view CommsBackend::getBackendVersion() const { return mscclc_version(); }

std::shared_ptr<Session> CommsBackend::shared_session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

Session& CommsBackend::session() const {
  TORCH_CHECK(was_started_, "mscclc: the communicator was not initialized");
  TORCH_CHECK(!was_finalized_, "mscclc: communicator '", name_, "' was finalized");
  TORCH_CHECK(session_ != nullptr, "mscclc: communicator '", name_,
              "' has no ranks: reconfigure() gives it some");
  TORCH_CHECK(!session_->was_aborted(), "mscclc: communicator '", name_, "' was aborted; ",
              options_.enable_reconfigure ? "reconfigure() gives it ranks again"
                                          : "finalize() it, and make another one");
  return *session_;
}

void CommsBackend::setTimeout(std::chrono::milliseconds timeout) {
  if (session_ != nullptr) session_->set_timeout(timeout);  // or an error: then all stays
  options_.timeout = timeout;
}

void CommsBackend::setHints(std::unordered_map<std::string, std::string> hints) {
  options_.hints = std::move(hints);
}

std::shared_ptr<comms::TorchCommBackend> CommsBackend::split(const std::vector<int>& ranks,
                                                             const std::string& name,
                                                             const comms::CommOptions& options) {
  session();
  const uint64_t number = session_->next_split();
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
      "split/" + std::to_string(number) + "/" + std::to_string(first), session_->store());
  auto child = std::make_shared<CommsBackend>();
  child->start(device_, name, options, store);
  child->join({store, static_cast<int>(mine - ranks.begin()), static_cast<int>(ranks.size())});
  return child;
}

// ---- Failures, and other ranks ----

bool CommsBackend::isAborted() const {
  const auto ranks = shared_session();
  return ranks != nullptr && ranks->is_aborted();
}

void CommsBackend::abort() {
  const torch_adapter::WithoutInterpreter other_threads;
  if (const auto ranks = shared_session()) ranks->abort();
}

void CommsBackend::registerAbortHook(int64_t id, comms::AbortHook hook) {
  hooks_->add(id, std::move(hook));
}

void CommsBackend::unregisterAbortHook(int64_t id) { hooks_->remove(id); }

comms::InitHandle CommsBackend::getInitHandle() const {
  TORCH_CHECK(was_started_, "mscclc: the communicator was not initialized");
  return changing_->handle();
}

Work CommsBackend::reconfigure(const comms::ReconfigureOptions& options) {
  TORCH_CHECK(was_started_ && !was_finalized_, "mscclc reconfigure: communicator '", name_,
              "' was finalized, or not initialized");
  TORCH_CHECK(options_.enable_reconfigure, "mscclc reconfigure: communicator '", name_,
              "' was made without enable_reconfigure=True");
  const torch_adapter::AskedRanks asked = changing_->asked(options);
  const torch_adapter::WithoutInterpreter other_threads;
  if (const auto old = shared_session()) old->end();
  part();
  rank_ = -1;
  size_ = 0;
  auto store = changing_->meet(asked, options.timeout.value_or(options_.timeout));
  join({std::move(store), asked.rank, static_cast<int>(asked.members.size())});
  return c10::make_intrusive<comms::TorchWorkCompleted>();
}

// ---- Memory ----

std::shared_ptr<comms::TorchCommWindow> CommsBackend::new_window(
    const std::optional<at::Tensor>& tensor) {
  session();
  auto window = std::make_shared<Window>(session_);
  if (tensor.has_value()) window->tensor_register(*tensor);
  return window;
}

void CommsBackend::tensor_register(const at::Tensor& tensor) {
  session().check_device("tensor_register", tensor);
  registered_[tensor.const_data_ptr()].push_back(tensor);
}

void CommsBackend::tensor_deregister(const at::Tensor& tensor) {
  session();
  const auto found = registered_.find(tensor.const_data_ptr());
  TORCH_CHECK(found != registered_.end(), "mscclc tensor_deregister: communicator '", name_,
              "' knows no such tensor; tensor_register() comes first");
  found->second.pop_back();
  if (found->second.empty()) registered_.erase(found);
}

int64_t CommsBackend::get_device_transport() {
  C10_THROW_ERROR(NotImplementedError,
                  "mscclc get_device_transport: kernels of the user have no handle to its "
                  "channels; map_remote_tensor() of a window gives them addresses of peers");
}

}  // namespace mscclc::torch_comms

// ---- How TorchComms finds it ----

/// The adapter's sources that it was built with: it makes objects of theirs itself.
extern "C" __attribute__((visibility("default"))) const char* mscclc_torchcomms_built_from() {
  return MSCCLC_ADAPTER_SOURCES;
}

extern "C" __attribute__((visibility("default"))) torch::comms::DynamicLoaderInterface
create_dynamic_loader_mscclc() {
  using torch::comms::TorchCommBackend;
  return {
      [] { return static_cast<TorchCommBackend*>(new mscclc::torch_comms::CommsBackend); },
      [](TorchCommBackend* comm) { delete comm; },
      [] { return torch::comms::TORCHCOMM_BACKEND_ABI_VERSION; },
  };
}
