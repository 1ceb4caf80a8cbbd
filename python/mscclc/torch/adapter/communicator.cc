#include "python/mscclc/torch/adapter/communicator.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

namespace mscclc::torch_adapter {
namespace {

std::string reason(mscclc_result_t result) {
  std::string text = mscclc_result_text(result);
  if (const char* why = mscclc_last_error(); *why != '\0') text += std::string(": ") + why;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Without the frames that torch adds.
std::string text_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

constexpr auto kPause = std::chrono::milliseconds(5);  // between looks at a store

}  // namespace

void Communicator::check_result(mscclc_result_t result) const {
  if (result == MSCCLC_SUCCESS) return;
  if (result == MSCCLC_NO_PLAN) throw NoPlan(reason(result));
  reported_ = true;
  C10_THROW_ERROR(DistBackendError, reason(result));
}

Communicator::~Communicator() {
  if (::getpid() != process_) return;  // a child of fork(), whose parent has it
  const std::lock_guard lock(aborting_);
  mscclc_comm_t* comm = comm_.exchange(nullptr);
  if (comm == nullptr) return;
  // Calls on a GPU may have failed after the last query. That others have ended first is fine, and
  // no failure. An answer would keep the process from its end, if that is due.
  const auto ended = membership_.ends_process ? MSCCLC_SUCCESS : mscclc_comm_async_error(comm);
  if (ended != MSCCLC_SUCCESS && !reported_ && why_.empty()) {
    TORCH_WARN("mscclc: ranks have failed, perhaps after the last call of rank ", rank(), ": ",
               reason(ended));
  }
  if (host_stream_ != nullptr && mscclc_stream_destroy(comm, host_stream_) != MSCCLC_SUCCESS) {
    TORCH_WARN("mscclc: ", mscclc_last_error());
  }
  if (mscclc_comm_destroy(comm) != MSCCLC_SUCCESS) TORCH_WARN("mscclc: ", mscclc_last_error());
}

void Communicator::create() {
  if (comm_ != nullptr) return;
  store_ = membership_.store->clone();
  mscclc_store_t store = MSCCLC_STORE_INIT;
  store.user = this;
  store.set = set;
  store.get = get;
  store.remove = remove;
  store.given_up = given_up;
  mscclc_config_t config = MSCCLC_CONFIG_INIT;
  config.device = membership_.device;
  config.timeout_ms = static_cast<uint32_t>(
      std::clamp<int64_t>(membership_.timeout.count(), 1, int64_t{UINT32_MAX}));
  config.order = membership_.order;
  config.beside = static_cast<uint64_t>(membership_.beside);
  config.ends_process = membership_.ends_process ? 1 : 0;
  mscclc_comm_t* made = nullptr;
  const mscclc_result_t result = mscclc_comm_create_store(
      &made, static_cast<uint32_t>(membership_.ranks), static_cast<uint32_t>(membership_.rank),
      &store, membership_.name.c_str(), &config);
  store_.reset();
  const std::lock_guard lock(aborting_);
  if (result != MSCCLC_SUCCESS && !why_.empty()) C10_THROW_ERROR(DistBackendError, why_);
  check_result(result);
  comm_ = made;
  if (!why_.empty()) mscclc_comm_abort(made, why_.c_str());
  if (membership_.device == MSCCLC_HOST) check_result(mscclc_stream_create(made, &host_stream_));
}

void Communicator::call(const mscclc_call_t& call, mscclc_stream_t stream) {
  const bool host = membership_.device == MSCCLC_HOST;
  check_result(mscclc_collective(comm_, &call, host ? host_stream_ : stream));
  if (host) check_result(mscclc_stream_synchronize(comm_, host_stream_));
}

void Communicator::call(mscclc_call_t call, mscclc_stream_t stream,
                        const SymmetricBuffers& symmetric) {
  registered_.prepare(call, symmetric, *this);
  this->call(call, stream);
}

bool Communicator::waits(const mscclc_call_t& call, mscclc_stream_t stream) {
  if (comm_ == nullptr) return true;
  int32_t waits = 0;
  check_result(mscclc_waits(comm_, &call, stream, &waits));
  return waits != 0;
}

mscclc_memory_t* Communicator::allocate(size_t bytes) {
  mscclc_memory_t* memory = nullptr;
  check_result(mscclc_memory_create(comm_, bytes, &memory));
  return memory;
}

void Communicator::write(void* to, const void* from, size_t bytes) {
  check_result(mscclc_write(comm_, to, from, bytes));
}

uint64_t Communicator::share(void* address, size_t bytes) {
  uint64_t number = 0;
  check_result(mscclc_register(comm_, address, bytes, &number));
  return number;
}

Communicator::Seen Communicator::shared(uint64_t number, int rank) {
  Seen seen;
  check_result(mscclc_registered_address(comm_, number, static_cast<uint32_t>(rank), &seen.address,
                                         &seen.bytes));
  return seen;
}

void Communicator::unshare(uint64_t number) { check_result(mscclc_deregister(comm_, number)); }

void Communicator::check() const {
  if (comm_ != nullptr) check_result(mscclc_comm_async_error(comm_));
}

void Communicator::abort(const std::string& why) {
  const std::lock_guard lock(aborting_);
  give_up();
  why_ = why;
  if (comm_ != nullptr) mscclc_comm_abort(comm_, why.c_str());
}

int Communicator::set(void* self, const char* key, const void* value, size_t bytes) {
  try {
    const auto* data = static_cast<const uint8_t*>(value);
    static_cast<Communicator*>(self)->store_->set(key, std::vector<uint8_t>(data, data + bytes));
    return 0;
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: the store does not take ", key, ": ", text_of(error));
    return 1;
  }
}

int Communicator::get(void* self, const char* key, void* value, size_t* bytes,
                      uint32_t timeout_ms) {
  auto& own = *static_cast<Communicator*>(self);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  try {
    while (!own.store_->check({key})) {
      if (own.given_up_ || std::chrono::steady_clock::now() >= end) return 1;
      std::this_thread::sleep_for(kPause);  // wait() would log each time that it ends too early
    }
    const std::vector<uint8_t> found = own.store_->get(key);
    if (found.size() > *bytes) return 1;
    if (!found.empty()) std::memcpy(value, found.data(), found.size());
    *bytes = found.size();
    return 0;
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: the store does not give ", key, ": ", text_of(error));
    return 1;
  }
}

int Communicator::given_up(void* self) {
  return static_cast<Communicator*>(self)->given_up_ ? 1 : 0;
}

int Communicator::remove(void* self, const char* key) {
  try {
    static_cast<Communicator*>(self)->store_->deleteKey(key);
  } catch (const std::exception&) {  // FileStore keeps its keys; names are never used again
  }
  return 0;
}

}  // namespace mscclc::torch_adapter
