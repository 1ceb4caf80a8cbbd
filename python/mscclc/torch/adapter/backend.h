// The backend "mscclc" of torch.distributed: every virtual function of c10d::Backend that torch's
// users call. What they do is in calls.h; here is what they are called with, and where it runs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/changing_ranks.h"
#include "python/mscclc/torch/adapter/older_torch.h"
#include "python/mscclc/torch/adapter/parts.h"
#include "python/mscclc/torch/adapter/queues/call_queue.h"
#include "python/mscclc/torch/adapter/where.h"

namespace mscclc::torch_adapter {

class MscclcBackend : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  /// Backends that get calls which no plan serves, by the type of the device.
  using Others = std::map<c10::DeviceType, c10::intrusive_ptr<c10d::Backend>>;

  /// On which devices the process ends where a call of its was cut short.
  enum class EndsProcess : uint8_t { never, on_gpus, everywhere };

  struct Settings {
    std::string group;  ///< for messages
    std::chrono::milliseconds timeout;
    /// All ranks promise to give the same parts of symmetric memory to each call.
    bool symmetric = false;
    int32_t order = 0;  ///< mscclc_order_t, of calls that do not say it
    /// There are no ranks until reconfigure() gives the group some.
    bool changing = false;
    EndsProcess ends_process = EndsProcess::never;  ///< of a group that is not changing
  };
  MscclcBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Settings settings,
                Others others);
  ~MscclcBackend() override;

  const std::string getBackendName() const override { return "mscclc"; }
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  // Virtual in some versions of torch only, and so without `override`.
  bool supportsSplitting() const { return kTorchSplits && !changing_; }
  /// Of split_group(): a group of these ranks; nullptr where this one is not among them. It is set
  /// as this group is; the options say its name and timeout. Parts in the same `store` are one.
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                          const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options);
  /// Of later calls. Where ranks have met, it may become shorter on the host, and not change on a
  /// GPU.
  void setTimeout(std::chrono::milliseconds timeout);
  c10::intrusive_ptr<Options> getBackendOptions();
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return numbers_.collectives; }
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  /// torch calls it when the last owner goes; the destructor waits for what refers to this weakly.
  void release_resources() override { end(); }
#ifdef C10D_BACKEND_HAS_RECONFIGURE
  bool supportsReconfigure() const override { return changing_.has_value(); }
  c10d::ReconfigureHandle get_reconfigure_handle() const override;
  /// Waits for what was queued here, whether it ends well or not; if ranks have failed, it ends at
  /// once. Then waits until all of the new ranks have come. Throws where they do not; then there
  /// are none, and others may be asked for. No other call at the same time, except abort().
  WorkPtr reconfigure(const c10d::ReconfigureOptions& options) override;
#endif
  /// Where its ranks meet: parts of groups have not the store that torch gives their groups.
  c10::intrusive_ptr<c10d::Store> store() const;
  /// The group makes memory of such devices symmetric, which `find` looks up; `end` is called when
  /// the group has ended. On all ranks between the same calls.
  void expect_symmetric_memory(c10::DeviceType type, FindSymmetric find, void (*end)()) {
    if (type == c10::kCPU || settings_.symmetric) symmetric_memory_.find = find;
    symmetric_memory_.end = end;
  }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;

  /// What a rank does alone, in the order of its collectives: a copy into a peer's memory, say.
  struct Alone {
    const char* name = "";
    c10::Device device{c10::kCPU};
    Tensors tensors = {};  ///< which it reads and writes, of the device
    bool async = true;
    /// On a GPU what it does goes to the current stream; on the host it may wait, and calls `check`
    /// meanwhile, which throws where the ranks have failed.
    std::function<void(const std::function<void()>& check)> body = {};
  };
  WorkPtr alone(Alone what);

 private:
  struct Message {
    Where where;
    Request request;
  };
  /// What the rank sends to itself in a batch, and where it receives it, in order.
  struct OwnMessages {
    Tensors sent, received;
    /// Copies, in the order of the current stream. Throws where they do not match.
    void carry_out() const;
  };

  /// Calls between startCoalescing() and endCoalescing().
  struct Batch {
    std::vector<WorkPtr> works;
    std::vector<Message> messages;  ///< of GPUs, held back until the end
    OwnMessages own;
  };
  /// Where ranks meet.
  struct Meeting {
    c10::intrusive_ptr<c10d::Store> store;  ///< none before reconfigure()
    std::string keys;                       ///< what begins the keys of this backend there
    std::string aborted = {};               ///< why its ranks were given up; "": they were not
    bool closed = false;                    ///< there will be no calls any more
    UsedGpus gpus = {};
    /// What the communicator is called that such calls have.
    std::string name_of(const Where& where);
  };
  /// What expect_symmetric_memory() was given.
  struct SymmetricMemoryOfGroup {
    std::atomic<FindSymmetric> find{nullptr};  ///< nullptr: there is no such memory
    std::atomic<void (*)()> end{nullptr};      ///< nullptr: there was none
    /// What of a collective's tensors is symmetric, so far.
    SymmetricBuffers buffers(const MscclcBackend& group, const Where& where,
                             const Tensors& tensors) const;
  };
  /// Of the last ones.
  struct Numbers {
    std::atomic<uint64_t> collectives{0};  ///< the same on all ranks
    std::atomic<uint64_t> messages{0};
  };

  /// What a collective is called; the tensors are checked.
  About about(c10d::OpType op, const char* name, Tensors inputs, Tensors outputs,
              std::chrono::milliseconds timeout);
  WorkPtr submit(const Where& where, Request request);
  WorkPtr submit(Request request);
  std::shared_ptr<CallQueue> queue(const Where& where);
  std::chrono::milliseconds timeout_on(const CallQueue& queue);
  /// exchange_counts(), now, for a call on a GPU.
  std::vector<uint64_t> agree(const About& about, const std::vector<int64_t>& sent,
                              const std::vector<int64_t>& expected);
  WorkPtr message(c10d::OpType op, const char* name, Tensors& tensors, Where where);
  /// What sends a call to the other backend of a device, or nothing where there is none.
  template <class Call>
  std::function<void()> instead(c10::DeviceType type, const char* name, Call call);
  std::vector<std::shared_ptr<CallQueue>> queues();
  /// Waits for what was queued, and lets go of the ranks.
  void close_queues();
  void end() noexcept;

  Settings settings_;  ///< the timeout may change
  const Others others_;
  SymmetricMemoryOfGroup symmetric_memory_;

  std::optional<ChangingRank> changing_;  ///< of a group that reconfigure() is for

  mutable std::mutex mutex_;  ///< guards what follows, down to the batch
  Meeting meeting_;
  std::map<Where, std::shared_ptr<CallQueue>> queues_;
  std::optional<Batch> batch_;
  Numbers numbers_;
  LastPart last_part_;  ///< has a mutex of its own
};

}  // namespace mscclc::torch_adapter
