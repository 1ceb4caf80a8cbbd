// How long a rank takes to fit its plan to another message size: fit_rank_to_size() and the packing
// of its blocks' programs (executor/block_programs.h), once warm. Processor time of one rank.
//
//   bazel run //tests/bench:fit_time
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "executor/block_programs.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

double processor_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

/// A rank of a plan with addresses that nothing uses.
class Rank {
 public:
  explicit Rank(const Program& program) : program_(program) {
    lowered_ = lower_rank(program, 0, rank_, diagnostics_);
    slots_.emplace(rank_);
    bases_.resize(rank_.bases.size());
    ends_.resize(program.ranks[0].channels.size());
  }
  bool fit_to_size(uint64_t bytes) {
    const Chunking chunking(program_.contract, bytes, program_.launch.align);
    return lowered_ && fit_rank_to_size(rank_, program_, 0, chunking, chunking, diagnostics_);
  }
  bool pack() { return programs_.pack(rank_, {bases_, ends_}, *slots_); }
  uint64_t packed_bytes() const { return programs_.bytes(); }

 private:
  const Program& program_;
  RankProgram rank_;
  bool lowered_ = false;
  std::optional<WaitSlots> slots_;
  BlockPrograms programs_;
  std::vector<device::BaseAddress> bases_;
  std::vector<device::ChannelEnd> ends_;
  Diagnostics diagnostics_;
};

/// The least time of several rounds.
template <class Fn>
double least(Fn fn) {
  constexpr int kRounds = 9, kTimes = 2000;
  double best = 1e30;
  for (int r = 0; r < kRounds; ++r) {
    const double begin = processor_nanoseconds();
    for (int i = 0; i < kTimes; ++i) fn(i);
    best = std::min(best, (processor_nanoseconds() - begin) / kTimes);
  }
  return best;
}

void measure(const std::string& what, const Program& program) {
  Rank rank(program);
  bool right = true;
  const double fit = least([&](int i) { right &= rank.fit_to_size(i % 2 == 0 ? 4096 : 8192); });
  const double pack = least([&](int) { right &= rank.pack(); });
  fmt::print("{:<36} fit {:7.0f} ns, pack {:7.0f} ns, {:6} bytes{}\n", what, fit, pack,
             rank.packed_bytes(), right ? "" : " WRONG");
}

void run() {
  using testing::one_shot;
  using testing::two_shot;
  measure("one-shot LL16, 4 ranks, 1 block", one_shot(4, 1, PacketFormat::LL16).program);
  measure("one-shot LL16, 4 ranks, 16 blocks", one_shot(4, 16, PacketFormat::LL16).program);
  measure("one-shot LL16, 8 ranks, 1 block", one_shot(8, 1, PacketFormat::LL16).program);
  measure("one-shot LL128, 8 ranks, 64 blocks", one_shot(8, 64, PacketFormat::LL128).program);
  measure("two-shot, 4 ranks", two_shot(4).program);
  measure("two-shot, 8 ranks", two_shot(8).program);
}

}  // namespace
}  // namespace mscclc

int main() { mscclc::run(); }
