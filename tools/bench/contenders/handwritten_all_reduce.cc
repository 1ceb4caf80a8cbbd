// AllReduce written by hand, as contenders: blocks and threads by size, as they were the fastest on
// 4 H200.
#include "tools/bench/contenders/handwritten_contender.h"

namespace mscclc::bench {
namespace {

bool is_float_sum(const Workload& w) {
  return w.contract->kind == CollectiveKind::allreduce && w.dtype == Dtype::f32 &&
         w.op == ReduceOp::sum && w.bytes > 0;
}

bool is_aligned(const Workload& w) {
  const auto bits = reinterpret_cast<uintptr_t>(w.input) | reinterpret_cast<uintptr_t>(w.output);
  return (bits | w.bytes) % 16 == 0;
}

/// Gives a call its input, everyone's outputs, which lie alike in `buffers`, and how many floats
/// there are.
template <class Call>
void set_data(Call& call, const Workload& w, const PeerMemory& buffers) {
  const auto output = w.output - buffers.pointers().of[buffers.rank()];
  call.input = reinterpret_cast<const float*>(w.input);
  call.outputs = buffers.pointers();
  for (uint32_t r = 0; r < buffers.ranks(); ++r) call.outputs.of[r] += output;
  call.count = w.bytes / sizeof(float);
}

class OneShotContender : public Contender {
 public:
  explicit OneShotContender(Communicator& communicator) : communicator_(communicator) {
    call_.who = {communicator.rank(), communicator.size()};
    call_.row = kMax / 8;
  }
  bool open(Diagnostics& diagnostics) {
    return scratch_.open(communicator_, 2 * communicator_.size() * call_.row * 16,
                         OneShot::kMaxBlocks, diagnostics);
  }
  std::string name() const override { return "handwritten-1shot"; }
  Role role() const override { return Role::handwritten; }
  std::string ordered_by() const override { return "meeting"; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    if (!is_float_sum(w) || w.bytes > kMax) return false;
    call_.input = reinterpret_cast<const float*>(w.input);
    call_.output = reinterpret_cast<float*>(w.output);
    call_.count = w.bytes / sizeof(float);
    call_.scratch = scratch_.at(0);
    call_.epochs = scratch_.epochs();
    call_.threads = w.bytes <= 64 * kKiB ? 128 : 512;
    call_.blocks = blocks_for((call_.count + 1) / 2, call_.threads, communicator_.device());
    return scratch_.clear(diagnostics);
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(launch_one_shot(call_, stream), "launch a kernel", diagnostics);
  }

 private:
  static constexpr uint64_t kMax = kMiB;
  Communicator& communicator_;
  HandwrittenScratch scratch_;
  OneShot call_;
};

class TwoShotContender : public Contender {
 public:
  TwoShotContender(Communicator& communicator, const PeerMemory& buffers)
      : communicator_(communicator), buffers_(buffers) {
    lines_.who = push_.who = {communicator.rank(), communicator.size()};
    lines_.row = (kMaxLines / communicator.size() + 119) / 120 + 1;
  }
  bool open(Diagnostics& diagnostics) {
    const uint64_t ranks = communicator_.size();
    const uint64_t rings = TwoShotPush::kMaxBlocks * TwoShotPush::kRing * ranks *
                           TwoShotPush::slice(1024) * sizeof(float);
    const uint64_t flags = TwoShotPush::kMaxBlocks * ranks * sizeof(uint32_t);
    return line_scratch_.open(communicator_, 4 * ranks * lines_.row * 128, TwoShotLines::kMaxBlocks,
                              diagnostics) &&
           ring_scratch_.open(communicator_, rings, TwoShotPush::kMaxBlocks, diagnostics) &&
           flag_scratch_.open(communicator_, flags, 1, diagnostics);
  }
  std::string name() const override { return "handwritten-2shot"; }
  Role role() const override { return Role::handwritten; }
  std::string ordered_by() const override { return "meeting"; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    if (!is_float_sum(w)) return false;
    pushes_ = w.bytes > kMaxLines;
    return pushes_ ? prepare_push(w, diagnostics) : prepare_lines(w, diagnostics);
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(
        pushes_ ? launch_two_shot_push(push_, stream) : launch_two_shot_lines(lines_, stream),
        "launch a kernel", diagnostics);
  }

 private:
  static constexpr uint64_t kMaxLines = 4 * kMiB;

  bool prepare_lines(const Workload& w, Diagnostics& diagnostics) {
    lines_.input = reinterpret_cast<const float*>(w.input);
    lines_.output = reinterpret_cast<float*>(w.output);
    lines_.count = w.bytes / sizeof(float);
    lines_.scratch = line_scratch_.at(0);
    lines_.epochs = line_scratch_.epochs();
    lines_.threads = w.bytes <= 256 * kKiB ? 128 : w.bytes <= kMiB ? 256 : 544;
    const uint64_t lines = (w.bytes / communicator_.size() + 119) / 120;
    lines_.blocks = blocks_for(lines * 8, lines_.threads, communicator_.device());
    return line_scratch_.clear(diagnostics);
  }

  bool prepare_push(const Workload& w, Diagnostics& diagnostics) {
    if (!is_aligned(w) || communicator_.device().multiprocessors() < push_.blocks) return false;
    set_data(push_, w, buffers_);
    push_.scratch = ring_scratch_.at(0);
    push_.flags = flag_scratch_.at(0);
    push_.epochs = ring_scratch_.epochs();
    push_.threads = w.bytes < 64 * kMiB ? 544 : 1024;
    push_.blocks = TwoShotPush::kMaxBlocks;
    return ring_scratch_.clear(diagnostics) && flag_scratch_.clear(diagnostics);
  }

  Communicator& communicator_;
  const PeerMemory& buffers_;
  HandwrittenScratch line_scratch_, ring_scratch_, flag_scratch_;
  bool pushes_ = false;
  TwoShotLines lines_;
  TwoShotPush push_;
};

class SlicesContender : public Contender {
 public:
  SlicesContender(Communicator& communicator, const PeerMemory& buffers, uint64_t most)
      : communicator_(communicator), buffers_(buffers), most_(most) {
    call_.who = {communicator.rank(), communicator.size()};
  }
  bool open(Diagnostics& diagnostics) {
    const uint64_t ranks = communicator_.size();
    // Slices are whole lines, so the last one of a share may end after it.
    const uint64_t slack = uint64_t{TwoShotSlices::kBlocks} * kMaxSlices * 8;
    call_.row = (most_ / 16 + ranks - 1) / ranks + slack;
    const uint64_t flags = TwoShotSlices::kBlocks * ranks * sizeof(uint32_t);
    return scratch_.open(communicator_, ranks * call_.row * 16, TwoShotSlices::kBlocks,
                         diagnostics) &&
           flag_scratch_.open(communicator_, flags, 1, diagnostics);
  }
  std::string name() const override { return "handwritten-slices"; }
  Role role() const override { return Role::handwritten; }
  std::string ordered_by() const override { return "meeting"; }

  bool prepare(const Workload& w, Diagnostics& diagnostics) override {
    if (!is_float_sum(w) || !is_aligned(w) || w.bytes < kLeast || w.bytes > most_) return false;
    if (communicator_.device().multiprocessors() < call_.blocks) return false;
    set_data(call_, w, buffers_);
    call_.scratch = scratch_.at(0);
    call_.flags = flag_scratch_.at(0);
    call_.epochs = scratch_.epochs();
    call_.slices = w.bytes <= 24 * kMiB ? kMaxSlices : 1;
    call_.threads = w.bytes <= 24 * kMiB ? 512 : 1024;
    const uint64_t share = (w.bytes / 16 + communicator_.size() - 1) / communicator_.size();
    const uint64_t all = uint64_t{call_.blocks} * call_.slices;
    call_.slice = ((share + all - 1) / all + 7) / 8 * 8;
    return scratch_.clear(diagnostics) && flag_scratch_.clear(diagnostics);
  }
  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(launch_two_shot_slices(call_, stream), "launch a kernel", diagnostics);
  }

 private:
  static constexpr uint64_t kLeast = 8 * kMiB;
  static constexpr uint32_t kMaxSlices = 2;
  Communicator& communicator_;
  const PeerMemory& buffers_;
  const uint64_t most_;
  HandwrittenScratch scratch_, flag_scratch_;
  TwoShotSlices call_;
};

}  // namespace

std::unique_ptr<Contender> make_handwritten_one_shot(Communicator& communicator,
                                                     Diagnostics& diagnostics) {
  return opened(std::make_unique<OneShotContender>(communicator), communicator.size(), diagnostics);
}

std::unique_ptr<Contender> make_handwritten_two_shot(Communicator& communicator,
                                                     const PeerMemory& buffers,
                                                     Diagnostics& diagnostics) {
  return opened(std::make_unique<TwoShotContender>(communicator, buffers), communicator.size(),
                diagnostics);
}

std::unique_ptr<Contender> make_handwritten_slices(Communicator& communicator,
                                                   const PeerMemory& buffers, uint64_t most,
                                                   Diagnostics& diagnostics) {
  return opened(std::make_unique<SlicesContender>(communicator, buffers, most), communicator.size(),
                diagnostics);
}

}  // namespace mscclc::bench
