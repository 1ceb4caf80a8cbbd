// Backend "mscclc" of TorchComms in C++: its interface over the backend of torch.distributed
// (adapter/backend.h). Unlike the one in Python it gets the options of single calls, batches of
// messages and the factor of PREMUL_SUM, and all that TorchComms passes on to backends in C++ only:
// abort(), windows, other ranks, persistent all-gathers, registered tensors.
#pragma once

#include <c10/util/Logging.h>  // TorchComms' header uses its LOG()

#include <comms/torchcomms/TorchCommBackend.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "python/mscclc/torch/adapter/changing_ranks.h"
#include "python/mscclc/torch/comms/session.h"

namespace mscclc::torch_comms {

/// Its functions are for one thread at a time, except abort() and those that report its state.
/// Errors are RuntimeErrors in Python; what no plan does is a NotImplementedError.
class CommsBackend final : public comms::TorchCommBackend {
 public:
  using Splits = std::vector<uint64_t>;
  using Ranks = std::vector<int>;

  CommsBackend() = default;
  ~CommsBackend() override;

  /// Collective: waits for all ranks, at most as long as the timeout of the options says. With
  /// `enable_reconfigure` it waits for no rank, and has none yet.
  void init(at::Device device, const std::string& name, const comms::CommOptions& options) override;
  /// Collective: waits for all that was queued, on all ranks, and frees the communicator.
  void finalize() override;
  /// -1 and 0 before and while reconfigure() finds ranks.
  int getRank() const override { return rank_; }
  int getSize() const override { return size_; }
  std::string_view getBackendName() const override { return "mscclc"; }
  std::string_view getBackendVersion() const override;
  std::string_view getCommName() const override { return name_; }
  const comms::CommOptions& getOptions() const override { return options_; }
  const at::Device& getDevice() const override { return device_; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setHints(std::unordered_map<std::string, std::string> hints) override;
  bool isInitialized() const override { return session_ != nullptr && !session_->is_aborted(); }
  std::shared_ptr<comms::TorchCommBackend> split(const Ranks& ranks, const std::string& name,
                                                 const comms::CommOptions& options) override;

  // ---- Failures, and other ranks ----

  bool isAbortSupported() const override { return true; }
  /// By abort() of any rank, or as ranks have failed. Any thread.
  bool isAborted() const override;
  /// Ends all calls of all ranks, which are errors then; does not wait for them. Any thread.
  void abort() override;
  void registerAbortHook(int64_t id, comms::AbortHook hook) override;
  void unregisterAbortHook(int64_t id) override;
  bool supportsReconfigure() const override { return true; }
  /// What other ranks call this one in reconfigure().
  comms::InitHandle getInitHandle() const override;
  /// Collective among the ranks that it names: waits for them, and for no others. What was queued
  /// before ends first, or is an error after abort().
  Work reconfigure(const comms::ReconfigureOptions& options) override;

  // ---- Memory ----

  bool supportsWindow() const override { return true; }
  /// Collective where a tensor is given.
  std::shared_ptr<comms::TorchCommWindow> new_window(
      const std::optional<at::Tensor>& tensor) override;
  /// Keeps the tensor: calls take any memory, and need no registration. Local.
  void tensor_register(const at::Tensor& tensor) override;
  void tensor_deregister(const at::Tensor& tensor) override;
  int64_t get_device_transport() override;
  AllGatherPHandle all_gather_p_init(at::Tensor& output,
                                     const comms::AllGatherPInitOptions& options) override;
  Work all_gather_p_exec(AllGatherPHandle handle, const at::Tensor& input, bool async,
                         const comms::AllGatherPExecOptions& options) override;
  void all_gather_p_free(AllGatherPHandle handle) override;

  // ---- Messages and collectives ----

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
  using Backend = Session::Backend;
  /// What init() and split() have in common; `store` is the communicator's own.
  void start(at::Device device, const std::string& name, const comms::CommOptions& options,
             c10::intrusive_ptr<c10d::Store> store);
  /// Collective: waits for all ranks, at most as long as the timeout of the options says.
  void join(Seat seat);
  /// Lets go of the ranks, for which nothing is queued any more.
  void part();
  /// Throws where there are no ranks, or no more.
  Session& session() const;
  std::shared_ptr<Session> shared_session() const;
  /// The options of a call, as torch.distributed has them.
  template <class Wanted, class Given>
  Wanted options_of(const Given& given, bool async) const;

  at::Device device_ = at::kCPU;
  std::string name_;
  comms::CommOptions options_;
  int rank_ = -1, size_ = 0;
  bool was_started_ = false, was_finalized_ = false;
  c10::intrusive_ptr<c10d::Store> store_;
  std::optional<torch_adapter::ChangingRank> changing_;
  const std::shared_ptr<AbortHooks> hooks_ = std::make_shared<AbortHooks>();
  std::map<const void*, std::vector<at::Tensor>> registered_;
  std::map<AllGatherPHandle, std::unique_ptr<at::Tensor>> persistent_;  ///< their outputs
  mutable std::mutex mutex_;  ///< guards the pointer, which others read when they abort
  std::shared_ptr<Session> session_;
};

}  // namespace mscclc::torch_comms
