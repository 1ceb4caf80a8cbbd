// Which calls of the library's plans a device that takes programs along gets as short programs.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "executor/interpreter/short_steps.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

/// What a launch takes along; nothing is run.
struct Taken {
  bool in_short = false;
  uint32_t steps = 0, operands = 0, turn = 0, targets = 0;
};

class TakesPrograms final : public testing::ForwardingDevice {
 public:
  TakesPrograms(std::unique_ptr<Device> host, Taken& taken)
      : ForwardingDevice(std::move(host)), taken_(taken) {}
  bool carries_programs() const override { return true; }
  bool launch(const device::LaunchPlan& plan, StreamHandle, Diagnostics&) override {
    taken_.in_short = plan.in_short != nullptr;
    if (!taken_.in_short) return true;
    taken_.steps = plan.in_short->steps;
    taken_.operands = plan.in_short->operands;
    taken_.turn = plan.in_short->turn;
    taken_.targets = plan.in_short->targets;
    return true;
  }

 private:
  Taken& taken_;
};

/// Of rank 0 of a program in calls of `bytes`, whose buffers begin `offset` bytes after a line.
std::string taken_by(std::string_view name,
                     const std::vector<std::pair<std::string, std::string>>& params, uint32_t ranks,
                     uint64_t bytes, uint64_t offset = 0) {
  const CompiledWorld world(name, {params.begin(), params.end()});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  std::vector<Taken> taken(ranks);
  const auto open = [&](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
    return std::make_unique<TakesPrograms>(testing::open_host(rank, diagnostics), taken[rank]);
  };
  const auto call = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto executable = communicator.load(plan, {.max_bytes = bytes}, diagnostics);
    if (executable == nullptr) return testing::text(diagnostics);
    const auto memory = communicator.device().allocate(2 * bytes + 256, "buffers", diagnostics);
    const auto buffer = communicator.register_buffer(memory->data(), memory->bytes(), diagnostics);
    const BoundCall bound = executable->bind({.bytes = bytes,
                                              .input = memory->data() + offset,
                                              .output = memory->data() + bytes + 128 + offset},
                                             diagnostics);
    const StreamHandle stream = communicator.device().create_stream(diagnostics);
    const bool good = bound && executable->launch(bound, stream, diagnostics);
    communicator.device().destroy_stream(stream);
    return good ? "" : testing::text(diagnostics);
  };
  REQUIRE(testing::run_threads(ranks, call, {}, open) == "");
  const Taken& one = taken[0];
  if (!one.in_short) return "long";
  std::string text =
      fmt::format("{} steps, {} operands, turn {}", one.steps, one.operands, one.turn);
  if (one.targets != 0) text += fmt::format(", {} targets", one.targets);
  return text;
}

TEST_CASE("plans for small messages are short") {
  CHECK(taken_by("allreduce_1shot_ordered", {{"R", "2"}, {"B", "2"}, {"F", "LL16"}}, 2, 1024) ==
        "2 steps, 2 operands, turn 2");
  CHECK(taken_by("allreduce_1shot_ordered", {{"R", "4"}, {"B", "48"}, {"F", "LL128"}}, 4, 65536) ==
        "2 steps, 4 operands, turn 16");
  CHECK(taken_by("allgather_packets", {{"R", "2"}, {"B", "64"}, {"F", "LL16"}}, 2, 65536) ==
        "2 steps, 2 operands, turn 64");
  CHECK(taken_by("reducescatter_packets", {{"R", "4"}, {"B", "8"}, {"F", "LL128"}}, 4, 65536) ==
        "2 steps, 4 operands, turn 8");
  CHECK(taken_by("alltoall_packets", {{"R", "2"}, {"B", "16"}, {"F", "LL16"}}, 2, 8192) ==
        "2 steps, 2 operands, turn 16");
  CHECK(taken_by("allreduce_2shot_packets", {{"R", "2"}, {"B", "64"}, {"F", "LL128"}}, 2,
                 1 << 20) == "3 steps, 2 operands, turn 64");
}

TEST_CASE("plans with a root are short, too: one block more signals or waits") {
  const auto of_two = [](std::string_view name) {
    return taken_by(name, {{"R", "2"}, {"B", "2"}, {"F", "LL16"}}, 2, 1024);
  };
  CHECK(of_two("broadcast_packets") == "1 steps, 2 operands, turn 2, 1 targets");
  CHECK(of_two("reduce_packets") == "1 steps, 2 operands, turn 2, 1 targets");
  CHECK(of_two("gather_packets") == "1 steps, 2 operands, turn 2, 1 targets");
  CHECK(of_two("scatter_packets") == "1 steps, 2 operands, turn 2, 1 targets");
  CHECK(of_two("sendrecv_packets") == "2 steps, 1 operands, turn 2, 2 targets");
  CHECK(taken_by("broadcast_packets", {{"R", "4"}, {"B", "2"}, {"F", "LL128"}}, 4, 65536) ==
        "1 steps, 4 operands, turn 2, 3 targets");
}

TEST_CASE("others are not") {
  const auto one_shot = [](uint64_t bytes, uint64_t offset) {
    return taken_by("allreduce_1shot_ordered", {{"R", "2"}, {"B", "2"}, {"F", "LL16"}}, 2, bytes,
                    offset);
  };
  CHECK(one_shot(1024 + 4, 0) == "long");
  CHECK(one_shot(1024, 4) == "long");
  CHECK(taken_by("allreduce_1shot_ordered", {{"R", "5"}, {"B", "2"}, {"F", "LL16"}}, 5, 1024) ==
        "long");
  CHECK(taken_by("broadcast_packets", {{"R", "5"}, {"B", "2"}, {"F", "LL16"}}, 5, 1024) == "long");
  CHECK(taken_by("allreduce_2shot", {{"R", "2"}}, 2, 1 << 20) == "long");
}

}  // namespace
}  // namespace mscclc
