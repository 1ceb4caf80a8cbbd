#include <algorithm>
#include <filesystem>

#include "executor/compiled/name.h"
#include "tools/bench/measure/clock_rows.h"
#include "tools/bench/measure/contender.h"

namespace mscclc::bench {
namespace {

class PlanContender : public Contender {
 public:
  PlanContender(Communicator& communicator, const BenchPlan& plan, bool every_size,
                bool compiled_kernels)
      : communicator_(communicator),
        plan_(plan.program),
        as_read_(plan.as_read == nullptr ? plan.program : plan.as_read),
        kernels_beside_(compiled_kernels ? plan.file : ""),
        ordered_by_(plan.ordered_by),
        keeps_input_(plan.keeps_input),
        in_place_(plan.in_place),
        every_size_(every_size) {}

  bool load(uint64_t max_bytes, Dtype dtype, const ClockRows* clocks, Diagnostics& diagnostics) {
    const uint64_t most = every_size_ ? max_bytes : std::min(max_bytes, last_size());
    executable_ = communicator_.load(as_read_,
                                     {.max_bytes = most,
                                      .dtype = dtype,
                                      .zero_copy = true,
                                      .plan_file = kernels_beside_,
                                      .compiled_kernels = !kernels_beside_.empty()},
                                     diagnostics);
    if (executable_ == nullptr) return false;
    if (clocks != nullptr) {
      clocks->take_from(*executable_, executable_->plan().ranks[communicator_.rank()].blocks);
    }
    return true;
  }
  std::string name() const override {
    return kernels_beside_.empty() ? plan_->name : plan_->name + " (compiled kernel)";
  }
  Role role() const override { return Role::plan; }
  std::string ordered_by() const override { return ordered_by_; }
  bool keeps_input() const override { return keeps_input_; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    if (!every_size_ && !selected(w)) return false;
    if (in_place_ == (w.in_place ? InPlace::no : InPlace::yes)) return false;
    CollectiveCall call{
        .bytes = w.bytes, .dtype = w.dtype, .op = w.op, .input = w.input, .output = w.output};
    binding_ = executable_->bind(call, diagnostics);
    if (!binding_ || (!kernels_beside_.empty() && !binding_.has_compiled_kernel())) return false;
    call.previous_allows_early = true;
    if (w.previous_allows_early) binding_after_early_kernel_ = executable_->bind(call, diagnostics);
    return !w.previous_allows_early || binding_after_early_kernel_;
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return executable_->launch(binding_, stream, diagnostics);
  }
  bool launch_after_early_kernel(cudaStream_t stream, Diagnostics& diagnostics) override {
    return executable_->launch(binding_after_early_kernel_, stream, diagnostics);
  }

 private:
  uint64_t last_size() const { return plan_->select.sizes.max; }

  /// Does the plan's author mean it for such calls?
  bool selected(const Workload& w) const {
    const Select& select = plan_->select;
    const auto has = [](const auto& list, auto value) {
      return list.empty() || std::ranges::find(list, value) != list.end();
    };
    return w.bytes >= select.sizes.min && w.bytes <= last_size() && has(select.dtypes, w.dtype) &&
           (!w.contract->reduces() || has(select.ops, w.op));
  }

  Communicator& communicator_;
  const std::shared_ptr<const Program> plan_, as_read_;
  const std::string kernels_beside_;
  const std::string ordered_by_;
  const bool keeps_input_;
  const InPlace in_place_;
  const bool every_size_;
  std::unique_ptr<Executable> executable_;
  BoundCall binding_, binding_after_early_kernel_;
};

}  // namespace

bool has_kernels_beside(const Device& device, const BenchPlan& plan) {
  std::error_code none;
  return !plan.file.empty() && !device.architecture().empty() &&
         std::filesystem::is_regular_file(kernel_file(plan.file, device.architecture()), none);
}

std::unique_ptr<Contender> make_plan_contender(Communicator& communicator, const BenchPlan& plan,
                                               uint64_t max_bytes, Dtype dtype, bool every_size,
                                               bool compiled_kernels, const ClockRows* clocks,
                                               Diagnostics& diagnostics) {
  auto made = std::make_unique<PlanContender>(communicator, plan, every_size, compiled_kernels);
  return made->load(max_bytes, dtype, clocks, diagnostics) ? std::move(made) : nullptr;
}

}  // namespace mscclc::bench
