// How long bind() takes for every plan of the library at 4 and 8 ranks, as a GPU needs it: the plan
// is fitted to the message size, and its blocks' programs are packed. Processor time of rank 0.
//
//   bazel run //tests/bench:bind_time [NAME]      plans whose name contains NAME
//
// "other": each call has another size and other buffers than the one before. "same": the size
// stays, the buffers change. "again": a call that was bound not long ago. "launch": what launch()
// itself takes, checks and flight recorder; the device does nothing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ir/program/program.h"
#include "runtime/api/in_process.h"
#include "tests/bench/program_taker.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint64_t kMax = 1 << 20;

/// The longest message of at most so many bytes.
uint64_t message(const Program& plan, uint64_t bytes, Dtype dtype) {
  return Chunking::part_for_message(plan.contract, bytes, info(dtype).bytes) *
         Chunking::parts_of_message(plan.contract);
}

struct Times {
  double other = 0, same = 0, again = 0, launch = 0;
};

/// Binds at rank 0 while the others wait.
std::string measure(Communicator& communicator, const CompiledWorld& world, Times& times) {
  Diagnostics diagnostics;
  const Dtype dtype = world.dtypes().front();
  const auto plan = std::make_shared<const Program>(world.program());
  const auto executable = communicator.load(plan, {.max_bytes = kMax, .dtype = dtype}, diagnostics);
  const auto memory = communicator.device().allocate(4 * kMax, "buffers", diagnostics);
  if (executable == nullptr || memory == nullptr) return testing::text(diagnostics);
  const uint64_t sizes[2] = {message(*plan, 4096, dtype), message(*plan, 8192, dtype)};
  const bool in_place = world.in_place().back();
  bool right = true;
  const auto bind = [&](int size, uint64_t shift) {
    uint8_t* in = memory->data() + 16 * shift;
    CollectiveCall call{.bytes = sizes[size], .dtype = dtype, .input = in, .output = in + 2 * kMax};
    if (!world.reductions().empty()) call.op = world.reductions().front();
    if (in_place) call.output = in;
    right &= static_cast<bool>(executable->bind(call, diagnostics));
  };
  if (communicator.rank() == 0) {
    uint64_t shift = 0;
    times.other = testing::least_microseconds([&](int i) { bind(i % 2, ++shift % 8192); });
    times.same = testing::least_microseconds([&](int) { bind(0, ++shift % 8192); });
    times.again = testing::least_microseconds([&](int i) { bind(i % 2, 0); });
    const CollectiveCall options{
        .bytes = sizes[0],
        .dtype = dtype,
        .op = world.reductions().empty() ? ReduceOp::sum : world.reductions().front(),
        .input = memory->data(),
        .output = memory->data() + (in_place ? 0 : 2 * kMax)};
    const BoundCall call = executable->bind(options, diagnostics);
    if (!call) return testing::text(diagnostics);
    times.launch = testing::least_microseconds(
        [&](int) { right &= executable->launch(call, &times, diagnostics); });
  }
  right &= communicator.bootstrap().barrier("measured", diagnostics);
  return right ? "" : testing::text(diagnostics);
}

void run(const std::string& wanted) {
  fmt::print("{:<44} {:>9} {:>9} {:>9} {:>9}\n", "bind() in us", "other", "same", "again",
             "launch");
  for (const LibraryProgram& program : library()) {
    if (program.name.find(wanted) == std::string_view::npos) continue;
    for (const Defines& defines : program.worlds) {
      const CompiledWorld world(program.name, defines);
      if (!world.errors().empty()) continue;
      const size_t ranks = world.program().ranks.size();
      if (ranks != 4 && ranks != 8) continue;
      Times times;
      const auto open = [](uint32_t rank, Diagnostics& diagnostics) -> std::unique_ptr<Device> {
        return std::make_unique<testing::ProgramTaker>(testing::open_host(rank, diagnostics));
      };
      const std::string said = testing::run_threads(
          static_cast<uint32_t>(ranks),
          [&](Communicator& communicator) { return measure(communicator, world, times); }, {},
          open);
      fmt::print("{:<44} {:9.2f} {:9.2f} {:9.2f} {:9.3f}{}\n",
                 fmt::format("{} {}", program.name, text(defines)), times.other, times.same,
                 times.again, times.launch, said.empty() ? "" : " " + said);
    }
  }
}

}  // namespace
}  // namespace mscclc

int main(int count, char** arguments) {
  // Plans are found in the repository's root.
  if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY")) {
    if (chdir(root) != 0) return 2;
  }
  mscclc::run(count > 1 ? arguments[1] : "");
}
