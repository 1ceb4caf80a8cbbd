#include "tools/bench/contenders/moves.h"
#include "tools/bench/kernels/kernels.h"
#include "tools/bench/measure/contender.h"
#include "tools/bench/measure/timing.h"

namespace mscclc::bench {
namespace {

class CopyContender : public Contender {
 public:
  explicit CopyContender(const PeerMemory& buffers) : buffers_(buffers) {}
  std::string name() const override { return "copy"; }
  Role role() const override { return Role::floor; }
  std::string ordered_by() const override { return "nothing"; }
  bool has_results() const override { return false; }

  // Outputs lie at the same place of all ranks' buffers; in place they need not.
  bool prepare(const Workload& w, Diagnostics&) override {
    moves_.count = 0;
    element_ = info(w.dtype).bytes;
    if (w.in_place || !has_least_moves(*w.contract, w.part)) return false;
    const uint64_t output =
        static_cast<uint64_t>(w.output - buffers_.pointers().of[buffers_.rank()]);
    for (const Move& m : least_moves(*w.contract, buffers_.rank(), w.part)) {
      if (moves_.count == CopyMoves::kMax) return false;
      moves_.move[moves_.count++] = {buffers_.pointers().of[m.to_rank] + output + m.to,
                                     w.input + m.from, m.bytes};
    }
    return true;
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(launch_copy(moves_, element_, stream), "launch a kernel", diagnostics);
  }

 private:
  const PeerMemory& buffers_;
  CopyMoves moves_;
  uint32_t element_ = 4;
};

}  // namespace

std::unique_ptr<Contender> make_copy_contender(const PeerMemory& buffers) {
  return std::make_unique<CopyContender>(buffers);
}

}  // namespace mscclc::bench
