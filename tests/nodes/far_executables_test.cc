// Executables of ranks on two nodes: calls that differ are found without MSCCLC_CHECK_CALLS, of
// each executable by itself, and of those in turn also where a call has nothing to send. And what
// comes of a rank that has no memory for what it is to send.
#include <catch2/catch.hpp>
#include <chrono>
#include <new>
#include <thread>

#include "compiler/compile.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint64_t kBytes = 4096;

std::unique_ptr<Device> node_of_its_own(uint32_t rank, Diagnostics& diagnostics) {
  return make_host_device(diagnostics, {}, HostLanes::copies, rank);
}

std::shared_ptr<const Program> with_ports() {
  const CompiledWorld world("sendrecv_port", {{"R", "2"}});
  REQUIRE(world.errors() == "");
  return std::make_shared<const Program>(world.program());
}

/// A plan in which no rank has to do with another.
std::shared_ptr<const Program> without_ports() {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("alone.mscl",
                                  "program    alone\n"
                                  "collective custom(ranks: 2, input: 1, output: 1)\n"
                                  "ensure     output[c] at q = input[c] at q for q in 0..2, c in "
                                  "0..1\n"
                                  "launch     threads: 32\n\n"
                                  "rank r in 0..2 {\n"
                                  "  tb 0 { copy output[0] <- input[0] }\n"
                                  "}\n");
  auto plan = compile(sources, file, {}, {}, diagnostics);
  INFO(testing::text(diagnostics));
  REQUIRE(plan);
  return std::make_shared<const Program>(std::move(*plan));
}

/// Executables of one rank, and its buffers.
class Caller {
 public:
  Caller(Communicator& communicator, bool in_turn)
      : communicator_(communicator),
        in_turn_(in_turn),
        memory_(communicator.device().allocate(2 * kBytes, "buffers", diagnostics_)),
        stream_(communicator.device().create_stream(diagnostics_)) {}
  ~Caller() { communicator_.device().destroy_stream(stream_); }
  std::unique_ptr<Executable> load(const std::shared_ptr<const Program>& plan) {
    return communicator_.load(plan, {.max_bytes = kBytes, .in_turn = in_turn_}, diagnostics_);
  }
  bool launch(Executable& executable, uint64_t bytes, StreamHandle stream) {
    const BoundCall call = executable.bind(
        {.bytes = bytes, .input = memory_->data(), .output = memory_->data() + kBytes},
        diagnostics_);
    return call && executable.launch(call, stream, diagnostics_);
  }
  bool call(Executable& executable, uint64_t bytes) {
    return launch(executable, bytes, stream_) && communicator_.synchronize(stream_, diagnostics_);
  }
  /// Calls of two executables that need not come in one order.
  bool call_both(Executable& first, Executable& second, uint64_t bytes) {
    const StreamHandle other = communicator_.device().create_stream(diagnostics_);
    const bool launched = launch(first, bytes, stream_) && launch(second, bytes, other);
    const bool ended = launched && communicator_.synchronize(stream_, diagnostics_) &&
                       communicator_.synchronize(other, diagnostics_);
    communicator_.device().destroy_stream(other);
    return ended;
  }
  /// What this rank hears of the failure of the job, which may come to it late.
  std::string end() {
    const auto end = std::chrono::steady_clock::now() + testing::kPatience;
    while (!diagnostics_.has_errors() && std::chrono::steady_clock::now() < end) {
      if (communicator_.check(diagnostics_)) std::this_thread::yield();
    }
    return testing::text(diagnostics_);
  }

 private:
  Communicator& communicator_;
  const bool in_turn_;
  Diagnostics diagnostics_;
  const std::unique_ptr<Memory> memory_;
  const StreamHandle stream_;
};

void check_reported(const std::vector<std::string>& said) {
  for (const std::string& text : said) {
    INFO(text);
    CHECK(text.find("different calls") != std::string::npos);
  }
}

TEST_CASE("executables between nodes: a call of another size is found, of either by itself") {
  const auto plan = with_ports();
  for (const uint32_t odd : {0u, 1u}) {
    check_reported(testing::threads(
        2,
        [&](Communicator& communicator) {
          Caller caller(communicator, false);
          const auto first = caller.load(plan), second = caller.load(plan);
          if (first == nullptr || second == nullptr) return caller.end();
          const bool is_odd = communicator.rank() == odd;
          (void)(caller.call_both(is_odd ? *second : *first, is_odd ? *first : *second, 1024) &&
                 caller.call(*first, 1024) && caller.call(*second, is_odd ? 1020 : 1024));
          return caller.end();
        },
        {}, node_of_its_own));
  }
}

TEST_CASE("executables between nodes: a call that sends nothing is found by lanes of others") {
  const auto sends = with_ports(), alone = without_ports();
  for (const uint32_t odd : {0u, 1u}) {
    check_reported(testing::threads(
        2,
        [&](Communicator& communicator) {
          Caller caller(communicator, true);
          const auto first = caller.load(sends), second = caller.load(alone);
          if (first == nullptr || second == nullptr) return caller.end();
          const bool is_odd = communicator.rank() == odd;
          (void)(caller.call(*first, 1024) && caller.call(*second, 1024) &&
                 caller.call(*second, is_odd ? 512 : 1024));
          return caller.end();
        },
        {}, node_of_its_own));
  }
}

/// Its second put finds no memory.
class LackingLane final : public Lane {
 public:
  explicit LackingLane(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}
  uint64_t room() override { return lane_->room(); }
  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    if (++puts_ == 2) throw std::bad_alloc();
    return lane_->put(to, from, bytes, diagnostics);
  }
  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    return lane_->signal(count, value, diagnostics);
  }
  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    return lane_->complete(count, value, diagnostics);
  }
  bool note(const LaneNote& note, Diagnostics& diagnostics) override {
    return lane_->note(note, diagnostics);
  }
  FlushState try_flush(Diagnostics& diagnostics) override { return lane_->try_flush(diagnostics); }
  void cork() override { lane_->cork(); }
  bool uncork(Diagnostics& diagnostics) override { return lane_->uncork(diagnostics); }

 private:
  const std::unique_ptr<Lane> lane_;
  int puts_ = 0;
};

class LackingDevice final : public testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::unique_ptr<Lane> open_lane(const LanePeer& peer, Diagnostics& diagnostics) override {
    auto lane = ForwardingDevice::open_lane(peer, diagnostics);
    return lane == nullptr ? nullptr : std::make_unique<LackingLane>(std::move(lane));
  }
};

TEST_CASE("a rank that has no memory for what it sends ends the job, and every rank says why") {
  const auto plan = with_ports();
  const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    auto device = node_of_its_own(rank, diagnostics);
    if (rank != 1 || device == nullptr) return device;
    return std::make_unique<LackingDevice>(std::move(device));
  };
  const auto body = [&](Communicator& communicator) {
    Caller caller(communicator, false);
    const auto loaded = caller.load(plan);
    while (loaded != nullptr && caller.call(*loaded, 1024)) {
    }
    return caller.end();
  };
  for (const std::string& text : testing::threads(2, body, {}, open)) {
    INFO(text);
    CHECK(text.find("rank 1") != std::string::npos);
    CHECK(text.find("the proxy cannot continue: there is not enough memory") != std::string::npos);
  }
}

}  // namespace
}  // namespace mscclc
