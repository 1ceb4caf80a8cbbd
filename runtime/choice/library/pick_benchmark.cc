// How long it takes until a plan of the compiled-in library is there when it is first needed,
// beside reading its JSON; and how long a choice takes after that.
// `bazel run //runtime/choice/library:pick_benchmark -- 8`: over 8 ranks.
// MSCCLC_PROOF_CACHE=$(mktemp -d) leaves out the proofs of earlier runs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <set>

#include "plans/format/embedded_library.h"
#include "plans/format/library_table.h"
#include "plans/format/plan_json.h"
#include "runtime/api/builtin_library.h"
#include "runtime/api/plan.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Of this thread: other work on the machine does not count.
double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Times {
  std::vector<double> all;

  std::string text() {
    std::ranges::sort(all);
    double sum = 0;
    for (const double t : all) sum += t;
    return fmt::format("median {:.2f} ms, slowest {:.1f} ms, all {:.0f} ms", all[all.size() / 2],
                       all.back(), sum);
  }
};

/// One call for each row of the table.
std::vector<PlanRequest> requests(uint32_t ranks, Diagnostics& diagnostics) {
  std::vector<PlanRequest> list;
  for (const LibraryFile& file : embedded_library()) {
    if (file.name != "library.json") continue;
    const auto table = LibraryTable::parse(file.text, std::string(file.name), diagnostics);
    for (const LibraryRow& row : table->rows()) {
      if (!row.for_ranks(ranks) || !row.for_nodes(1)) continue;
      const uint64_t bytes = std::min(row.bytes, uint64_t{1} << 30) / (16 * ranks) * (16 * ranks);
      list.push_back({.call = {row.kind, ranks, bytes, row.dtypes[0]}});
    }
  }
  return list;
}

double read_again(const Program& plan, Diagnostics& diagnostics) {
  const auto json = write_plan(plan, *find_target("sm_90", diagnostics), diagnostics);
  const auto begin = Clock::now();
  const bool read = json && load_plan(*json, "again.json", diagnostics) != nullptr;
  return read ? milliseconds_since(begin) : 0;
}

void measure_picks(const std::vector<PlanRequest>& requests, PlanRegistry& registry,
                   Diagnostics& diagnostics) {
  constexpr int kRounds = 20000;
  for (const PlanRequest& r : requests) (void)registry.pick(r, nullptr, diagnostics);
  const double begin = processor_ns();
  size_t found = 0;
  for (int i = 0; i < kRounds; ++i) {
    for (const PlanRequest& r : requests) {
      found += registry.pick(r, nullptr, diagnostics) != nullptr ? 1 : 0;
    }
  }
  const double picks = static_cast<double>(kRounds) * static_cast<double>(requests.size());
  fmt::print("a choice that was made before: {:.0f} ns ({} picks)\n",
             (processor_ns() - begin) / picks, found);
}

int run(uint32_t ranks) {
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  const auto registry =
      PlanRegistry::create({.library = builtin_library({}, diagnostics)}, diagnostics);
  if (registry == nullptr) return 1;
  fmt::print("registry and table: {:.2f} ms\n", milliseconds_since(begin));
  Times first, reading;
  std::set<std::string> names;
  const auto list = requests(ranks, diagnostics);
  for (const PlanRequest& r : list) {
    const auto start = Clock::now();
    const auto picked = registry->pick(r, nullptr, diagnostics);
    const double took = milliseconds_since(start);
    if (picked == nullptr || !names.insert(picked->name).second) continue;
    first.all.push_back(took);
    reading.all.push_back(read_again(*picked->plan, diagnostics));
  }
  fmt::print("{} plans over {} ranks\nfirst needed:    {}\nread as JSON:    {}\n", names.size(),
             ranks, first.text(), reading.text());
  measure_picks(list, *registry, diagnostics);
  fmt::print(stderr, "{}", render_text(diagnostics, Sources()));
  return diagnostics.has_errors() ? 1 : 0;
}

}  // namespace
}  // namespace mscclc

int main(int argc, char** argv) {
  const int ranks = argc == 2 ? std::atoi(argv[1]) : 0;
  if (ranks > 1) return mscclc::run(static_cast<uint32_t>(ranks));
  fmt::print(stderr, "pick_benchmark RANKS\n");
  return 2;
}
