#include <algorithm>

#include "tools/bench/contender.h"

namespace mscclc::bench {
namespace {

class PlanContender : public Contender {
 public:
  PlanContender(Communicator& communicator, std::shared_ptr<const Program> plan, bool every_size)
      : communicator_(communicator), plan_(std::move(plan)), every_size_(every_size) {}

  bool load(uint64_t max_bytes, Diagnostics& diagnostics) {
    const uint64_t most = every_size_ ? max_bytes : std::min(max_bytes, last_size());
    executable_ = communicator_.load(plan_, {.max_bytes = most, .zero_copy = true}, diagnostics);
    return executable_ != nullptr;
  }
  std::string name() const override { return plan_->name; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    if (!every_size_ && (w.bytes < first_size() || w.bytes > last_size())) return false;
    binding_ = executable_->bind(
        {.bytes = w.bytes, .dtype = w.dtype, .op = w.op, .input = w.input, .output = w.output},
        diagnostics);
    return static_cast<bool>(binding_);
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return executable_->launch(binding_, stream, diagnostics);
  }

 private:
  uint64_t first_size() const { return plan_->select.sizes.min; }
  uint64_t last_size() const { return plan_->select.sizes.max; }

  Communicator& communicator_;
  const std::shared_ptr<const Program> plan_;
  const bool every_size_;
  std::unique_ptr<Executable> executable_;
  BoundCall binding_;
};

}  // namespace

std::unique_ptr<Contender> make_plan_contender(Communicator& communicator,
                                               std::shared_ptr<const Program> plan,
                                               uint64_t max_bytes, bool every_size,
                                               Diagnostics& diagnostics) {
  auto made = std::make_unique<PlanContender>(communicator, std::move(plan), every_size);
  return made->load(max_bytes, diagnostics) ? std::move(made) : nullptr;
}

}  // namespace mscclc::bench
