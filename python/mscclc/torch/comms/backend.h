// Backend "mscclc" of TorchComms in C++: its interface over the backend of torch.distributed
// (adapter/backend.h). Unlike the one in Python it gets the options of single calls, batches of
// messages and the factor of PREMUL_SUM.
#pragma once

#include <c10/util/Logging.h>  // TorchComms' header uses its LOG()

#include <comms/torchcomms/TorchCommBackend.hpp>
#include <memory>
#include <string>
#include <vector>

#include "python/mscclc/torch/adapter/backend.h"
#include "python/mscclc/torch/comms/work.h"

namespace mscclc::torch_comms {

namespace comms = torch::comms;

/// Its functions are for one thread at a time. Errors are RuntimeErrors in Python; what no plan
/// does is a NotImplementedError.
class CommsBackend final : public comms::TorchCommBackend {
 public:
  using Work = c10::intrusive_ptr<comms::TorchWork>;
  using Tensors = std::vector<at::Tensor>;
  using Splits = std::vector<uint64_t>;
  using Ranks = std::vector<int>;

  CommsBackend() = default;
  ~CommsBackend() override;

  /// Collective: waits for all ranks, at most as long as the timeout of the options says.
  void init(at::Device device, const std::string& name, const comms::CommOptions& options) override;
  /// Collective: waits for all that was queued, on all ranks, and frees the communicator.
  void finalize() override;
  int getRank() const override { return rank_; }
  int getSize() const override { return size_; }
  std::string_view getBackendName() const override { return "mscclc"; }
  std::string_view getBackendVersion() const override;
  std::string_view getCommName() const override { return name_; }
  const comms::CommOptions& getOptions() const override { return options_; }
  const at::Device& getDevice() const override { return device_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_.timeout = timeout; }
  bool isInitialized() const override { return backend_ != nullptr; }
  std::shared_ptr<comms::TorchCommBackend> split(const Ranks& ranks, const std::string& name,
                                                 const comms::CommOptions& options) override;

  Work send(const at::Tensor& tensor, int to, bool async,
            const comms::SendOptions& options) override;
  Work recv(at::Tensor& tensor, int from, bool async, const comms::RecvOptions& options) override;
  Work batch_op_issue(const std::vector<comms::BatchSendRecv::P2POp>& ops, bool async,
                      const comms::BatchP2POptions& options) override;

  Work broadcast(at::Tensor& tensor, int root, bool async,
                 const comms::BroadcastOptions& options) override;
  Work all_reduce(at::Tensor& tensor, const comms::ReduceOp& op, bool async,
                  const comms::AllReduceOptions& options) override;
  Work reduce(const at::Tensor& tensor, int root, const comms::ReduceOp& op, bool async,
              const comms::ReduceOptions& options) override;
  Work all_gather(const Tensors& outputs, const at::Tensor& input, bool async,
                  const comms::AllGatherOptions& options) override;
  Work all_gather_v(const Tensors& outputs, const at::Tensor& input, bool async,
                    const comms::AllGatherOptions& options) override;
  Work all_gather_single(at::Tensor& output, const at::Tensor& input, bool async,
                         const comms::AllGatherSingleOptions& options) override;
  Work reduce_scatter(at::Tensor& output, const Tensors& inputs, const comms::ReduceOp& op,
                      bool async, const comms::ReduceScatterOptions& options) override;
  Work reduce_scatter_v(at::Tensor& output, const Tensors& inputs, const comms::ReduceOp& op,
                        bool async, const comms::ReduceScatterOptions& options) override;
  Work reduce_scatter_single(at::Tensor& output, const at::Tensor& input, const comms::ReduceOp& op,
                             bool async, const comms::ReduceScatterSingleOptions& options) override;
  Work all_to_all_single(at::Tensor& output, const at::Tensor& input, bool async,
                         const comms::AllToAllSingleOptions& options) override;
  Work all_to_all_v_single(at::Tensor& output, const at::Tensor& input, const Splits& output_splits,
                           const Splits& input_splits, bool async,
                           const comms::AllToAllvSingleOptions& options) override;
  Work all_to_all(const Tensors& outputs, const Tensors& inputs, bool async,
                  const comms::AllToAllOptions& options) override;
  Work barrier(bool async, const comms::BarrierOptions& options) override;
  Work scatter(at::Tensor& output, const Tensors& inputs, int root, bool async,
               const comms::ScatterOptions& options) override;
  Work gather(const Tensors& outputs, const at::Tensor& input, int root, bool async,
              const comms::GatherOptions& options) override;

 private:
  using Backend = torch_adapter::MscclcBackend;
  struct Seat {
    c10::intrusive_ptr<c10d::Store> store;
    int rank, size;
  };
  void start(at::Device device, const std::string& name, const comms::CommOptions& options,
             Seat seat);
  /// Throws where there is no communicator, or no more.
  Backend& backend() const;
  void check_devices(const char* call, const Tensors& tensors) const;
  /// The options of a call, as torch.distributed has them.
  template <class Wanted, class Given>
  Wanted options_of(const Given& given, bool async) const;
  /// Makes a call of the backend, on tensors of this device. Its work has ended, or its stream is
  /// ordered after it, unless it is async.
  template <class Call>
  Work run(const char* name, const Tensors& tensors, bool async, std::chrono::milliseconds timeout,
           Call call);

  at::Device device_ = at::kCPU;
  std::string name_;
  comms::CommOptions options_;
  int rank_ = 0, size_ = 1;
  bool was_started_ = false;
  uint64_t splits_ = 0;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<Backend> backend_;
  std::shared_ptr<Failures> failures_;
  std::unique_ptr<Watch> watch_;
  at::Tensor word_;  ///< what a barrier of a GPU adds up
};

}  // namespace mscclc::torch_comms
