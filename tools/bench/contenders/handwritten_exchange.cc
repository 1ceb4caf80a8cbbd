// AllGather, AllToAll and ReduceScatter written by hand, as a contender: blocks and threads by
// size, as they were the fastest on 4 H200.
#include <optional>

#include "tools/bench/contenders/handwritten_contender.h"

namespace mscclc::bench {
namespace {

/// What such a call exchanges in one step; nothing: another collective.
std::optional<Exchanged> exchanged(const Workload& w) {
  switch (w.contract->kind) {
    case CollectiveKind::allgather:
      return Exchanged::part;
    case CollectiveKind::alltoall:
      return Exchanged::rows;
    case CollectiveKind::reducescatter:
      return w.op == ReduceOp::sum ? std::optional(Exchanged::sums) : std::nullopt;
    default:
      return std::nullopt;
  }
}

class ExchangeContender : public Contender {
 public:
  explicit ExchangeContender(Communicator& communicator) : communicator_(communicator) {
    call_.who = {communicator.rank(), communicator.size()};
    call_.row = kMax / communicator.size() / 120 + 1;
  }
  bool open(Diagnostics& diagnostics) {
    return scratch_.open(communicator_, 2 * communicator_.size() * call_.row * 128,
                         ExchangeLines::kMaxBlocks, diagnostics);
  }
  std::string name() const override { return "handwritten-exchange"; }
  Role role() const override { return Role::handwritten; }
  std::string ordered_by() const override { return "meeting"; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    const std::optional<Exchanged> what = exchanged(w);
    if (!what || w.dtype != Dtype::f32 || w.in_place || w.bytes == 0 || w.bytes > kMax) {
      return false;
    }
    call_.what = *what;
    call_.input = reinterpret_cast<const float*>(w.input);
    call_.output = reinterpret_cast<float*>(w.output);
    call_.part = w.part / sizeof(float);
    call_.scratch = scratch_.at(0);
    call_.epochs = scratch_.epochs();
    call_.threads = w.bytes <= 256 * kKiB ? 128 : w.bytes <= kMiB ? 256 : 512;
    call_.blocks = blocks_for((w.part + 119) / 120 * 8, call_.threads, communicator_.device());
    return scratch_.clear(diagnostics);
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(launch_exchange_lines(call_, stream), "launch a kernel", diagnostics);
  }

 private:
  static constexpr uint64_t kMax = 4 * kMiB;
  Communicator& communicator_;
  HandwrittenScratch scratch_;
  ExchangeLines call_;
};

}  // namespace

std::unique_ptr<Contender> make_handwritten_exchange(Communicator& communicator,
                                                     Diagnostics& diagnostics) {
  return opened(std::make_unique<ExchangeContender>(communicator), communicator.size(),
                diagnostics);
}

}  // namespace mscclc::bench
