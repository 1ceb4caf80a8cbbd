#include "runtime/devices/cuda/launch/launch_epochs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace mscclc::cuda {
namespace {

using Launch = LaunchEpochs::Launch;
using InEpochs = LaunchEpochs::InEpochs;

constexpr uint32_t kRoom = 132;

/// What of a place a test looks at.
struct Seen {
  bool frees, opens, waits;
  bool operator==(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << (seen.frees ? "frees " : "") << (seen.opens ? "opens " : "")
             << (seen.waits ? "waits" : "");
}
constexpr Seen kJoins = {false, false, false}, kFrees = {true, false, false},
               kOpens = {false, true, true}, kWaits = {false, false, true};

struct Launches {
  Seen large(uint64_t stream, uint32_t blocks = 128) { return add({stream, blocks, kRoom, false}); }
  Seen small(uint64_t stream, uint32_t blocks = 4) { return add({stream, blocks, kRoom, true}); }
  Seen any_order(uint64_t stream, uint32_t blocks) {
    return add({stream, blocks, kRoom, true, true});
  }
  Seen add(const Launch& launch) {
    const InEpochs place = epochs.add(launch);
    return {place.frees, place.opens, place.waits};
  }
  LaunchEpochs epochs;
};

TEST_CASE("launches of one stream need no order, and small ones let the next begin at once") {
  Launches on;
  for (int i = 0; i < 300; ++i) {
    CHECK(on.large(1, 264) == kJoins);
    CHECK(on.small(1) == kFrees);
  }
}

TEST_CASE("launches that do not fit beside one another begin in order") {
  Launches on;
  CHECK(on.large(1) == kJoins);
  CHECK(on.large(2) == kOpens);
  CHECK(on.large(2) == kJoins);
  CHECK(on.large(1) == kOpens);
  CHECK(on.large(2) == kOpens);
}

TEST_CASE("launches that fit beside one another have no order") {
  Launches on;
  CHECK(on.large(1, 66) == kJoins);
  CHECK(on.large(2, 33) == kJoins);
  CHECK(on.large(3, 33) == kJoins);
  CHECK(on.large(1, 66) == kJoins);
  CHECK(on.large(4, 1) == kOpens);
  CHECK(on.large(2, 100) == kWaits);  // after all of the first epoch
  CHECK(on.large(2, 100) == kJoins);
}

TEST_CASE("a stream that had an epoch to itself comes after it") {
  Launches on;
  CHECK(on.large(1, 128) == kJoins);
  CHECK(on.large(2, 64) == kOpens);
  CHECK(on.large(1, 64) == kJoins);
  CHECK(on.large(3, 64) == kOpens);
  CHECK(on.large(1, 64) == kWaits);
}

TEST_CASE("what lets the next launch begin at once has an epoch to itself") {
  Launches on;
  CHECK(on.small(1) == kFrees);
  CHECK(on.small(2) == kOpens);
  CHECK(on.small(1) == kJoins);
  for (int i = 0; i < 63; ++i) CHECK(on.small(1) == kJoins);
  CHECK(on.small(1) == Seen{true, true, true});  // no other stream has come for long
  CHECK(on.small(1) == kFrees);
  CHECK(on.small(2) == kOpens);
}

TEST_CASE("the stream with the least room counts") {
  Launches on;
  CHECK(on.add({1, 30, 60, false}) == kJoins);
  CHECK(on.add({2, 30, kRoom, false}) == kJoins);
  CHECK(on.add({3, 1, kRoom, false}) == kOpens);
}

TEST_CASE("launches in any order have epochs of their own, where they have none") {
  Launches on;
  CHECK(on.large(1, 4) == kJoins);
  CHECK(on.any_order(2, 66) == kOpens);
  CHECK(on.any_order(3, 66) == kWaits);  // after stream 1, not after stream 2
  CHECK(on.any_order(2, 66) == kJoins);
  CHECK(on.any_order(3, 2) == kJoins);
  CHECK(on.large(1, 4) == kOpens);  // though it fits
  CHECK(on.any_order(3, 66) == kOpens);
  CHECK(on.any_order(4, 67) == kOpens);  // more than fit: callers must not make such communicators
}

TEST_CASE("launches in any order let nothing begin at once") {
  Launches on;
  for (int i = 0; i < 100; ++i) CHECK(on.any_order(1, 4) == kJoins);
  CHECK(on.any_order(2, 4) == kJoins);
}

TEST_CASE("a stream that could not be put after the others is put there by its next launch") {
  Launches on;
  CHECK(on.large(1) == kJoins);
  CHECK(on.large(2) == kOpens);
  on.epochs.forget(2);
  CHECK(on.large(2) == kWaits);
  CHECK(on.large(2) == kJoins);
}

/// Calls on GPUs of kMax multiprocessors, a block on each, and after some a kernel of the user's
/// that begins as soon as it may, takes all that is free, and waits for the call's end.
class Machine {
 public:
  static constexpr uint32_t kGpus = 2, kMax = 8;

  struct MachineCall {
    Launch launch;
    bool user;  ///< a user's kernel follows
    struct {
      InEpochs place;
      uint32_t blocks_before = 0;  ///< begun before, if place.waits
      int ahead = -1;              ///< the call before it on its stream
    } on[kGpus];
  };

  Machine(std::vector<MachineCall> calls, bool ordered, uint32_t seed)
      : calls_(std::move(calls)), ordered_(ordered), random_(seed) {
    for (auto& gpu : gpus_) gpu.at.resize(calls_.size());
  }

  /// Does whatever can be done, in any order. True if all calls end.
  bool run() {
    for (;;) {
      std::vector<Step> steps;
      for (uint32_t g = 0; g < kGpus; ++g) {
        for (uint32_t c = 0; c < calls_.size(); ++c) {
          if (may_begin(g, c)) steps.push_back({g, c, 0});
          if (may_end(g, c)) steps.push_back({g, c, 1});
          if (user_may_begin(g, c)) steps.push_back({g, c, 2});
        }
      }
      if (steps.empty()) break;
      take(steps[random_() % steps.size()]);
    }
    return std::all_of(gpus_, gpus_ + kGpus, [](const Gpu& gpu) {
      return std::all_of(gpu.at.begin(), gpu.at.end(), [](const At& at) { return at.ended; });
    });
  }

 private:
  struct At {
    uint32_t begun = 0, of_user = 0;
    bool ended = false;
  };
  struct Gpu {
    std::vector<At> at;
    uint32_t used = 0, begun = 0;
  };
  struct Step {
    uint32_t gpu, call;
    int what;
  };

  bool all_begun(uint32_t g, uint32_t c) const {
    return gpus_[g].at[c].begun == calls_[c].launch.blocks;
  }
  bool begun_everywhere(uint32_t c) const {
    for (uint32_t g = 0; g < kGpus; ++g) {
      if (!all_begun(g, c)) return false;
    }
    return true;
  }
  bool ahead_ended(uint32_t g, uint32_t c) const {
    const int ahead = calls_[c].on[g].ahead;
    return ahead < 0 || gpus_[g].at[static_cast<size_t>(ahead)].ended;
  }
  /// May what follows a call on its stream begin, if it may begin early?
  bool lets_next_begin(uint32_t g, uint32_t c) const {
    if (gpus_[g].at[c].ended) return true;
    return ahead_ended(g, c) &&
           (calls_[c].on[g].place.frees ? all_begun(g, c) : begun_everywhere(c));
  }
  bool may_begin(uint32_t g, uint32_t c) const {
    const auto& call = calls_[c].on[g];
    const Gpu& gpu = gpus_[g];
    if (all_begun(g, c) || gpu.used == kMax) return false;
    if (ordered_ && call.place.waits && gpu.begun < call.blocks_before) return false;
    if (call.ahead < 0) return true;
    const auto ahead = static_cast<uint32_t>(call.ahead);
    const bool early = !call.place.waits && !calls_[ahead].user;
    return early ? lets_next_begin(g, ahead) : gpu.at[ahead].ended;
  }
  bool may_end(uint32_t g, uint32_t c) const {
    return !gpus_[g].at[c].ended && begun_everywhere(c) && ahead_ended(g, c);
  }
  bool user_may_begin(uint32_t g, uint32_t c) const {
    return calls_[c].user && !gpus_[g].at[c].ended && gpus_[g].used < kMax && lets_next_begin(g, c);
  }
  void take(const Step& step) {
    Gpu& gpu = gpus_[step.gpu];
    At& at = gpu.at[step.call];
    if (step.what == 0) {
      ++at.begun;
      ++gpu.begun;
      ++gpu.used;
    } else if (step.what == 1) {
      at.ended = true;
      gpu.used -= at.begun + at.of_user;
    } else {
      at.of_user += kMax - gpu.used;
      gpu.used = kMax;
    }
  }

  const std::vector<MachineCall> calls_;
  const bool ordered_;
  std::mt19937 random_;
  Gpu gpus_[kGpus];
};

/// Launches the calls on a GPU in an order.
void launch(std::vector<Machine::MachineCall>& calls, uint32_t gpu,
            const std::vector<uint32_t>& order, uint32_t warm) {
  LaunchEpochs epochs;
  std::map<uint64_t, int> last;
  uint32_t launched = 0, epoch_begins = 0;
  // Calls that came and went before, on one stream.
  for (uint32_t i = 0; i < warm; ++i) epochs.add({1, 1, Machine::kMax, true});
  for (const uint32_t c : order) {
    const Launch& made = calls[c].launch;
    const InEpochs place = epochs.add(made);
    if (place.opens) epoch_begins = launched;
    const auto ahead = last.find(made.stream);
    calls[c].on[gpu] = {place, epoch_begins, ahead == last.end() ? -1 : ahead->second};
    last[made.stream] = static_cast<int>(c);
    launched += made.blocks;
  }
}

/// Another order of the calls that may come in any: those of one stream keep theirs.
std::vector<uint32_t> another_order(const std::vector<Machine::MachineCall>& calls,
                                    std::mt19937& random) {
  std::vector<uint32_t> order;
  for (uint32_t c = 0; c < calls.size();) {
    std::vector<uint32_t> run = {c++};
    while (calls[run[0]].launch.any_order && c < calls.size() && calls[c].launch.any_order) {
      run.push_back(c++);
    }
    while (!run.empty()) {
      const uint64_t stream = calls[run[random() % run.size()]].launch.stream;
      const auto first = std::find_if(run.begin(), run.end(),
                                      [&](uint32_t r) { return calls[r].launch.stream == stream; });
      order.push_back(*first);
      run.erase(first);
    }
  }
  return order;
}

/// Calls of streams from 4 on come in any order.
std::vector<Machine::MachineCall> random_calls(std::mt19937& random) {
  std::vector<Machine::MachineCall> calls;
  uint64_t stream = 0;
  const uint32_t stays = random() % 100;  // per cent of calls on the stream of the one before
  const uint32_t warm = random() % 80;
  const uint32_t streams = random() % 2 == 0 ? 4 : 6;
  for (uint32_t i = 0; i < 8; ++i) {
    if (random() % 100 >= stays) stream = random() % streams;
    const bool any_order = stream >= 4;
    const uint32_t most = any_order ? Machine::kMax / 2 : Machine::kMax;
    const uint32_t blocks = 1 + random() % (random() % 2 == 0 ? 2 : most);
    calls.push_back(
        {{stream, blocks, Machine::kMax, blocks <= 2, any_order}, random() % 2 == 0, {}});
  }
  std::vector<uint32_t> order(calls.size());
  std::iota(order.begin(), order.end(), 0);
  launch(calls, 0, order, warm);
  launch(calls, 1, another_order(calls, random), warm);
  return calls;
}

TEST_CASE("every call ends, whichever begins first on which GPU") {
  std::mt19937 random(5);
  uint32_t stuck = 0;
  for (uint32_t i = 0; i < 20000; ++i) {
    const std::vector<Machine::MachineCall> calls = random_calls(random);
    INFO("trial " << i);
    REQUIRE(Machine(calls, true, i).run());
    stuck += !Machine(calls, false, i).run();
  }
  CHECK(stuck > 1000);  // without an order they often do not
}

}  // namespace
}  // namespace mscclc::cuda
