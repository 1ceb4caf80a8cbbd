// The emitted source of row functions, compiled for the host, gives the evaluator's bits: for any
// number of columns and threads, and in whatever order threads run between their meetings.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "executor/rows/evaluate.h"
#include "ir/rows/print_row.h"
#include "tests/rows/host_block.h"
#include "tests/rows/row_cases.h"
#include "tests/rows/row_inputs.h"

namespace mscclc::rows {
namespace {

using Bytes = std::vector<std::vector<uint8_t>>;

constexpr uint32_t kColumns[] = {1, 2, 7, 31, 64, 100, 129, 255, 768, 1000, 2880, 4097, 5120, 8192};
constexpr uint32_t kMaxThreads = 1024;

HostRow row_over(const RowCase& c, uint32_t columns, Bytes& params, Bytes& results) {
  HostRow row;
  for (size_t k = 0; k < params.size(); ++k) {
    const Stored& param = c.function.params[k];
    row.params.push_back({params[k].data(), values_of(param.kind, param.group, columns)});
  }
  for (const Stored& output : c.function.outputs) {
    const uint32_t count = values_of(output.kind, output.group, columns);
    results.emplace_back(size_t{count} * bytes_of(output.type, c.t), 0xab);
    row.results.push_back({results.back().data(), count});
    row.stores.emplace_back(count);
  }
  return row;
}

/// The case's text and sizes, for messages.
std::string shown(const RowCase& c, uint32_t columns, uint32_t chunk, uint32_t threads) {
  return print(c.function) + std::string(info(c.t).name) + ", " + std::to_string(columns) +
         " columns, " + std::to_string(chunk) + " a thread, " + std::to_string(threads) +
         " threads";
}

/// A number of threads that is enough.
uint32_t some_threads(uint32_t columns, const KernelEntry& entry, Dice& dice) {
  const uint32_t least = (columns + entry.chunk - 1) / entry.chunk;
  const uint32_t some = least + (dice.below(2) == 0 ? 0 : dice.below(40));
  return std::min(kMaxThreads, entry.warps ? (some + 31) / 32 * 32 : some);
}

void check_kernel(FiberPool& pool, const KernelEntry& entry, const RowCase& c, uint32_t columns,
                  Dice& dice) {
  Bytes params = row_inputs(c.function, c.t, columns, dice.below(4) == 0, dice);
  const Bytes wanted = evaluate(c.function, c.t, columns, params);
  const uint32_t threads = some_threads(columns, entry, dice);
  INFO(shown(c, columns, entry.chunk, threads));
  Bytes results;
  results.reserve(c.function.outputs.size());
  const HostRow row = row_over(c, columns, params, results);
  run_block(pool, threads, dice, [&](HostBlock& block) { entry.kernel(block, row, columns); });
  CHECK_FALSE(row.outside);
  for (size_t k = 0; k < wanted.size(); ++k) {
    INFO(c.function.outputs[k].name);
    CHECK(std::ranges::count(row.stores[k], 1u) == static_cast<ptrdiff_t>(row.stores[k].size()));
    // Not CHECK of the bytes: Catch2 would print all of them.
    CHECK((results[k] == wanted[k]));
  }
}

bool fits(uint32_t columns, uint32_t chunk) { return columns <= kMaxThreads * chunk; }

TEST_CASE("compiled row functions of the library give the evaluator's bits") {
  const std::vector<RowCase> cases = row_cases();
  FiberPool pool;
  Dice dice(1);
  uint32_t tried = 0;
  for (const KernelEntry& entry : row_kernels()) {
    if (entry.row_case >= cases.size() - kRandomRows) continue;
    for (const uint32_t columns : kColumns) {
      if (!fits(columns, entry.chunk)) continue;
      check_kernel(pool, entry, cases[entry.row_case], columns, dice);
      ++tried;
    }
  }
  CHECK(tried > 1000);
}

TEST_CASE("1000 compiled random row functions give the evaluator's bits") {
  const std::vector<RowCase> cases = row_cases();
  FiberPool pool;
  Dice dice(2);
  uint32_t tried = 0;
  std::map<uint32_t, uint32_t> by_columns;
  for (const KernelEntry& entry : row_kernels()) {
    if (entry.row_case < cases.size() - kRandomRows) continue;
    ++tried;
    for (uint32_t left = 2; left > 0;) {
      const uint32_t columns = kColumns[dice.below(std::size(kColumns))];
      if (!fits(columns, entry.chunk)) continue;
      check_kernel(pool, entry, cases[entry.row_case], columns, dice);
      ++by_columns[columns];
      --left;
    }
  }
  CHECK(tried == kRandomRows);
  for (const uint32_t columns : kColumns) CHECK(by_columns[columns] > 20);
}

TEST_CASE("random row functions are not trivial") {
  const std::vector<RowCase> cases = row_cases();
  Dice dice(3);
  uint32_t reducing = 0, grouping = 0, nested = 0, numbers = 0, values = 0;
  for (size_t i = cases.size() - kRandomRows; i < cases.size(); ++i) {
    const Function& function = cases[i].function;
    const auto count = [&](auto with) { return std::ranges::count_if(function.nodes, with); };
    const auto whole = count([](const Node& n) { return is_reduction(n.op) && n.over == 0; });
    reducing += whole > 0 ? 1 : 0;
    nested += whole > 1 ? 1 : 0;
    grouping += count([](const Node& n) { return n.over > 0; }) > 0 ? 1 : 0;
    const Bytes params = row_inputs(function, cases[i].t, 64, false, dice);
    const Bytes results = evaluate(function, cases[i].t, 64, params);
    const std::vector<uint8_t>& first = results[0];
    ++values;
    numbers += std::ranges::any_of(first, [&](uint8_t b) { return b != first.front(); }) ? 1 : 0;
  }
  CHECK(reducing > 500);
  CHECK(nested > 300);
  CHECK(grouping > 200);
  CHECK(numbers > values / 2);  // columns differ in more than half of the functions
}

/// Puts results where a parameter of their form lies, a parameter for each: by result, which.
std::vector<size_t> lay_over(const RowCase& c, HostRow& row, Bytes& params) {
  const Function& f = c.function;
  std::vector<size_t> over(f.outputs.size(), f.params.size());
  std::vector<bool> taken(f.params.size());
  for (size_t k = 0; k < f.outputs.size(); ++k) {
    for (size_t i = f.params.size(); i-- > 0;) {
      const Stored &result = f.outputs[k], &param = f.params[i];
      const bool alike = result.kind == param.kind && result.type == param.type &&
                         result.group == param.group && !taken[i];
      if (!alike) continue;
      taken[i] = true;
      over[k] = i;
      row.results[k].data = params[i].data();
      break;
    }
  }
  return over;
}

TEST_CASE("random results may lie where parameters of their form lie") {
  const std::vector<RowCase> cases = row_cases();
  FiberPool pool;
  Dice dice(5);
  std::map<Kind, uint32_t> tried;
  for (const KernelEntry& entry : row_kernels()) {
    const RowCase& c = cases[entry.row_case];
    const uint32_t columns = 768;
    if (!fits(columns, entry.chunk)) continue;
    const uint32_t threads = some_threads(columns, entry, dice);
    Bytes params = row_inputs(c.function, c.t, columns, false, dice), results;
    const Bytes wanted = evaluate(c.function, c.t, columns, params);
    results.reserve(wanted.size());
    HostRow row = row_over(c, columns, params, results);
    const std::vector<size_t> over = lay_over(c, row, params);
    run_block(pool, threads, dice, [&](HostBlock& block) { entry.kernel(block, row, columns); });
    INFO(shown(c, columns, entry.chunk, threads));
    for (size_t k = 0; k < wanted.size(); ++k) {
      INFO(c.function.outputs[k].name);
      const bool apart = over[k] == params.size();
      CHECK(((apart ? results[k] : params[over[k]]) == wanted[k]));
      if (!apart) ++tried[c.function.outputs[k].kind];
    }
  }
  for (const Kind kind : {Kind::row, Kind::token, Kind::groups}) CHECK(tried[kind] > 20);
}

TEST_CASE("results of rows may lie where parameters lie") {
  const std::vector<RowCase> cases = row_cases();
  FiberPool pool;
  Dice dice(4);
  uint32_t tried = 0;
  for (const KernelEntry& entry : row_kernels()) {
    const RowCase& c = cases[entry.row_case];
    if (c.function.name != "add_rmsnorm") continue;
    const uint32_t columns = 2880;
    if (!fits(columns, entry.chunk)) continue;
    const uint32_t threads = some_threads(columns, entry, dice);
    Bytes params = row_inputs(c.function, c.t, columns, false, dice), results;
    const Bytes wanted = evaluate(c.function, c.t, columns, params);
    HostRow row = row_over(c, columns, params, results);
    row.results[0].data = params[1].data();  // the residual stream
    row.results[1].data = params[0].data();
    run_block(pool, threads, dice, [&](HostBlock& block) { entry.kernel(block, row, columns); });
    INFO(shown(c, columns, entry.chunk, threads));
    CHECK((params[1] == wanted[0]));
    CHECK((params[0] == wanted[1]));
    ++tried;
  }
  CHECK(tried >= 3);
}

}  // namespace
}  // namespace mscclc::rows
