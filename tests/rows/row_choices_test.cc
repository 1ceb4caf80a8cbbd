// What the table of collectives of rows picks, against its other programs, by the cost model.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "executor/cost/explanation.h"
#include "executor/cost/machines.h"
#include "executor/cost/model.h"
#include "ir/support/sanitized.h"
#include "plans/format/machines/machine.h"
#include "plans/format/row_table.h"
#include "tests/rows/row_plans.h"

namespace mscclc {
namespace {

// The model's figures for rows are not fitted: it does not see what is closer.
constexpr double kFactor = 2;
// Of plain memory, for all: the table's 64 and 128 take long to compile. So the test holds kinds of
// programs against one another, not numbers of blocks.
constexpr unsigned long long kMostBlocks = 16;

struct Compiled {
  explicit Compiled(Program made) : program(std::move(made)), model(program) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  const Program program;
  cost::Model model;
};

/// What calls take by entries of the table, each program compiled once.
class Costs {
 public:
  double us(const RowEntry& entry, const RowCall& call) {
    const RowEntry small = with_few_blocks(entry);
    auto& made = made_[small.choice_text(call)];
    if (!made) {
      made =
          std::make_unique<Compiled>(testing::library_row_plan(small.program, small.defines(call)));
    }
    Diagnostics diagnostics;
    Machine machine = find_machine("8xH200", diagnostics).value();
    cost::resize(machine, call.ranks);
    const uint64_t bytes = call.rows * call.row_bytes();
    const auto timeline =
        made->model.predict(cost::call_of(made->program, bytes, call.dtype), machine, diagnostics);
    REQUIRE(timeline);
    return timeline->back_to_back_ns / 1e3;
  }

 private:
  static RowEntry with_few_blocks(RowEntry entry) {
    if (entry.program.find("_push") == std::string::npos) return entry;
    for (auto& [name, value] : entry.params) {
      if (name == "B") value = std::to_string(std::min(std::stoull(value), kMostBlocks));
    }
    return entry;
  }

  std::map<std::string, std::unique_ptr<Compiled>> made_;
};

/// The entries of the call's name, each program once: with the parameters for so many rows,
/// whatever number of ranks and bytes the entry is for.
std::vector<const RowEntry*> alternatives(const RowCall& call) {
  std::vector<const RowEntry*> found;
  for (const RowEntry& e : builtin_row_table().entries()) {
    const bool fits = e.name == call.name && e.max_ranks > 2 && e.rows >= call.rows;
    if (fits && std::ranges::find(found, e.program, [](auto* one) { return one->program; }) ==
                    found.end()) {
      found.push_back(&e);
    }
  }
  return found;
}

void check(const std::string& name, uint32_t ranks, const std::vector<uint64_t>& all_rows) {
  Costs costs;
  for (const uint64_t rows : all_rows) {
    const RowCall call{name, ranks, 4096, rows, Dtype::bf16};
    const RowEntry& picked = *builtin_row_table().choose(call).first;
    const double us = costs.us(picked, call);
    for (const RowEntry* other : alternatives(call)) {
      if (other->program == picked.program) continue;
      const double others_us = costs.us(*other, call);
      INFO(fmt::format("{}: {} rows over {} ranks: {} in {:.1f} us, {} in {:.1f}", name, rows,
                       ranks, picked.program, us, other->program, others_us));
      CHECK(us <= kFactor * others_us);
    }
  }
}

TEST_CASE("no other program of the rows' table takes half the time of the one that it picks") {
  for (const std::string& name : builtin_row_table().names()) {
    for (const uint32_t ranks : {3, 4, 5, 8, 12, 16, 24}) {
      // Large ones take long to compile.
      if (ranks > testing::amount(4u, 12u, 24u) || (ranks == 5 && !testing::kThorough)) continue;
      check(name, ranks, {1, 4, 8, 16, 32, 64, 128, 512});
    }
  }
}

TEST_CASE("nor of as many ranks as NVLink joins") {
  if (testing::kSanitized) return;
  for (const char* const name : {"allreduce_norm", "allreduce_norm_quantize_token"}) {
    check(name, 72,
          testing::kThorough ? std::vector<uint64_t>{1, 8, 32} : std::vector<uint64_t>{8});
  }
}

}  // namespace
}  // namespace mscclc
