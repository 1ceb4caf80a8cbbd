// All port channels of a device are served by one thread, whatever communicators and plans they are
// of: several communicators of two ranks in one process, each with several plans that have ports,
// driven by threads of their own. Plans are unloaded and a communicator is aborted meanwhile.

#include <array>
#include <barrier>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/helpers/runtime/named_threads.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 2, kCommunicators = 3;
constexpr uint32_t kAborted = 2;  ///< of the communicators
constexpr uint32_t kUnloads = 0;
constexpr int kRounds = 4;
constexpr uint64_t kMax = 64 << 10;
constexpr std::array kPortPlans = {"sendrecv_port", "alltoall_copy_engine",
                                   "allgather_copy_engine"};

/// Stands for one of several devices that a process has opened on one GPU.
class SameGpu final : public testing::ForwardingDevice {
 public:
  SameGpu(std::unique_ptr<Device> device, uint32_t gpu)
      : ForwardingDevice(std::move(device)), gpu_(gpu) {}
  std::vector<uint8_t> room() const override { return {'g', static_cast<uint8_t>(gpu_)}; }

 private:
  const uint32_t gpu_;
};

size_t proxy_threads() { return testing::threads_named("mscclc-proxy"); }

std::vector<std::shared_ptr<const Program>> port_plans() {
  std::vector<std::shared_ptr<const Program>> plans;
  for (const char* name : kPortPlans) {
    const CompiledWorld world(name, {{"R", std::to_string(kRanks)}});
    REQUIRE(world.errors() == "");
    plans.push_back(std::make_shared<const Program>(world.program()));
  }
  return plans;
}

/// One rank of one communicator. "" if all was well.
class Member {
 public:
  Member(std::unique_ptr<Bootstrap> bootstrap, uint32_t number)
      : number_(number),
        rank_(bootstrap->rank()),
        device_(std::make_shared<SameGpu>(make_host_device(said_), rank_)),
        communicator_(Communicator::create(std::move(bootstrap), device_,
                                           {.timeout = testing::kPatience}, said_)) {}

  std::string load(const std::vector<std::shared_ptr<const Program>>& plans) {
    if (communicator_ == nullptr) return testing::text(said_);
    for (const auto& plan : plans) {
      if (!add(plan)) return testing::text(said_);
    }
    return "";
  }

  std::string run(const std::vector<std::shared_ptr<const Program>>& plans) {
    for (int round = 0; round < kRounds; ++round) {
      for (const auto& runner : runners_) {
        const RunSpec spec{.bytes = kMax >> (2 * round), .iterations = 5};
        if (runner->run(spec, said_).run.status == RunStatus::right) continue;
        // The other rank may have ended it already.
        return number_ == kAborted && round > 0 ? abort() : testing::text(said_);
      }
      if (number_ == kAborted && round == 1) return abort();
      if (number_ != kUnloads) continue;
      runners_.erase(runners_.begin());
      if (!add(plans[static_cast<size_t>(round) % plans.size()])) return testing::text(said_);
    }
    return "";
  }

 private:
  bool add(const std::shared_ptr<const Program>& plan) {
    runners_.push_back(std::make_unique<RankRunner>(
        *communicator_, plan,
        RunnerOptions{.load = {.max_bytes = kMax, .proof = ProofPolicy::skip}}));
    return runners_.back()->load(said_);
  }

  std::string abort() {
    if (rank_ == 0) communicator_->abort("enough");
    Diagnostics ended;
    for (int calls = 0; calls < 1000 && !communicator_->has_failed(ended); ++calls) {
      (void)runners_[0]->run({.bytes = kMax, .iterations = 1}, ended);
    }
    return communicator_->has_failed(ended) ? "" : "an aborted communicator goes on";
  }

  const uint32_t number_, rank_;
  Diagnostics said_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<RankRunner>> runners_;
};

TEST_CASE("one thread for each device serves the ports of all communicators and plans") {
  const auto plans = port_plans();
  std::vector<std::vector<std::unique_ptr<Bootstrap>>> jobs;
  for (uint32_t c = 0; c < kCommunicators; ++c) {
    jobs.push_back(make_in_process_bootstraps(kRanks, testing::kPatience));
  }
  std::array<std::string, kRanks * kCommunicators> said;
  std::barrier<> loaded(kRanks * kCommunicators + 1), counted(kRanks * kCommunicators + 1);
  std::vector<std::thread> threads;
  for (uint32_t c = 0; c < kCommunicators; ++c) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      threads.emplace_back([&, c, r] {
        Member member(std::move(jobs[c][r]), c);
        std::string& text = said[c * kRanks + r];
        text = member.load(plans);
        loaded.arrive_and_wait();
        counted.arrive_and_wait();
        if (text.empty()) text = member.run(plans);
      });
    }
  }
  loaded.arrive_and_wait();
  const size_t proxies = proxy_threads();
  counted.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < said.size(); ++i) {
    INFO("communicator " << i / kRanks << ", rank " << i % kRanks);
    CHECK(said[i] == "");
  }
  CHECK(proxies == kRanks);
  testing::await_end_of_threads("mscclc-proxy");
}

}  // namespace
}  // namespace mscclc
