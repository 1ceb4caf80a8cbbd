// NCCL as a contender (tools/measure/nccl.h).
#include "tools/measure/nccl.h"

#include "tools/bench/measure/contender.h"

namespace mscclc::bench {
namespace {

class NcclContender : public Contender {
 public:
  NcclContender(std::unique_ptr<NcclRank> nccl, bool symmetric)
      : nccl_(std::move(nccl)), symmetric_(symmetric) {}

  std::string name() const override { return symmetric_ ? "nccl-symmetric" : "nccl"; }
  Role role() const override { return Role::baseline; }
  std::string ordered_by() const override { return "the library"; }

  bool prepare(const Workload& w, Diagnostics&) override {
    call_ = {w.contract, w.part, w.dtype, w.op, w.input, w.output};
    return NcclRank::can_do(*w.contract, w.dtype, w.in_place) &&
           (!symmetric_ || NcclRank::has_window_kernel(w.contract->kind));
  }

  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return nccl_->start(call_, stream, diagnostics);
  }

 private:
  const std::unique_ptr<NcclRank> nccl_;
  const bool symmetric_;
  NcclCall call_;
};

}  // namespace

std::unique_ptr<Contender> make_nccl_contender(Communicator& communicator, bool symmetric,
                                               const Memory& memory, std::string& file,
                                               Diagnostics& diagnostics) {
  auto nccl = NcclRank::make(communicator.bootstrap(), diagnostics);
  if (nccl == nullptr) return nullptr;
  file = nccl->file();
  if (symmetric && !nccl->register_window(memory.data(), memory.bytes(), diagnostics)) {
    return nullptr;
  }
  return std::make_unique<NcclContender>(std::move(nccl), symmetric);
}

}  // namespace mscclc::bench
