// Windows of TorchComms: a tensor of each rank, which all others read and write. The tensors lie in
// symmetric memory of mscclc (adapter/symmetric/); operations run in the order of the collectives.
#pragma once

#include <comms/torchcomms/TorchCommWindow.hpp>
#include <comms/torchcomms/TorchWork.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "python/mscclc/torch/comms/session.h"

namespace mscclc::torch_comms {

/// Of a communicator's ranks, as long as they are together. For one thread at a time.
class Window final : public comms::TorchCommWindow {
 public:
  explicit Window(std::weak_ptr<Session> session) : session_(std::move(session)) {}

  /// Collective: all ranks give as many bytes, or it is an error on all of them.
  void tensor_register(const at::Tensor& tensor, bool owning = true) override;
  /// Collective: what was put has arrived before.
  void tensor_deregister() override;
  /// Collective if a tensor is registered.
  std::shared_ptr<comms::TorchCommWindow> clone() override;

  Work put(const at::Tensor& tensor, int to, size_t offset, bool async,
           const comms::PutOptions& options) override;
  /// Does not wait; a rank waits as often as it is signalled.
  Work signal(int to, bool async, const comms::SignalOptions& options) override;
  Work wait_signal(int from, bool async, const comms::WaitSignalOptions& options) override;
  /// The peer's tensor; it must not be used after tensor_deregister().
  at::Tensor map_remote_tensor(int rank) override;
  std::shared_ptr<comms::TorchCommWindowAttr> get_attr(int rank) override;

  // Kernels of the user get addresses, by map_remote_tensor(); the rest is refused.
  void* get_device_window(int signals, int counters, int barriers) override;
  comms::RegisteredBuffer register_local_buffer(const at::Tensor& tensor) override;
  int64_t register_local_buffer_handle(const at::Tensor& tensor) override;

 private:
  using Mapping = std::shared_ptr<torch_adapter::SymmetricMapping>;
  /// What a registration has.
  struct Shared {
    Mapping data, signals;
    std::vector<size_t> offsets;  ///< of the tensors in the data, by rank
    std::vector<uint32_t> sent, awaited;
  };
  /// Throws where the ranks are not together any more.
  std::shared_ptr<Session> ranks(const char* call) const;
  /// Throws where nothing is registered, or there is no such rank.
  Shared& shared(const char* call, int rank);
  /// Where a rank's tensor begins; nullptr: not to be reached from here.
  uint8_t* address(int rank) const;
  static uint32_t* word(const Shared& shared, int owner, int writer);
  template <class Body>
  Work run(const char* name, at::Tensor tensor, bool async, std::chrono::milliseconds timeout,
           Body body);

  const std::weak_ptr<Session> session_;
  std::optional<Shared> shared_;
};

}  // namespace mscclc::torch_comms
