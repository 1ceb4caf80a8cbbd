// The recorded run of growth_test.cc: as many launches and communicators as a long job has. Prints
// how much memory the process holds on the way; exits with 1 if that grows.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>

#include "tests/growth/growth.h"
#include "tests/growth/live_memory.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

/// Resident memory of this process, in KiB.
uint64_t resident() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> kib;
  }
  return kib;
}

struct Report {
  std::string what;
  int64_t first = -1, last = -1;
  testing::Look look() {
    return [this](uint64_t done) {
      last = testing::live_blocks();
      if (first < 0) first = last;
      fmt::print("{:>9} {:<15} {:>7} blocks {:>8} KiB\n", done, what, last, resident());
      std::fflush(stdout);
    };
  }
  bool grew() const { return last > first + 8; }
};

bool run(const char* what, const char* program, uint64_t count,
         std::string (*again)(const std::shared_ptr<const Program>&, uint64_t, uint64_t,
                              const testing::Look&)) {
  const CompiledWorld world(program, {{"R", "2"}});
  const auto plan = std::make_shared<const Program>(world.program());
  Report report{what};
  const std::string said = again(plan, count, std::max<uint64_t>(1, count / 10), report.look());
  if (!said.empty()) fmt::print("{}\n", said);
  return said.empty() && !report.grew();
}

}  // namespace
}  // namespace mscclc

int main(int argc, char** argv) {
  CLI::App app("Launches, registrations and communicators without end");
  uint64_t launches = 1'000'000, buffers = 10'000, communicators = 10'000;
  app.add_option("--launches", launches);
  app.add_option("--buffers", buffers);
  app.add_option("--communicators", communicators);
  CLI11_PARSE(app, argc, argv);
  using namespace mscclc;
  const bool flat =
      run("launches", "allreduce_ring", launches, testing::launch_again) &&
      run("buffers", "allreduce_switch_direct", buffers, testing::register_again) &&
      run("communicators", "allgather_direct", communicators, testing::communicate_again);
  fmt::print("{}\n", flat ? "flat" : "it grows");
  return flat ? 0 : 1;
}
