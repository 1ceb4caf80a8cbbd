// `apply`: what stands for each result and parameter of a row function, and which rows of
// externals.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/builder/draft/texts.h"
#include "compiler/builder/ops/ops.h"
#include "ir/program/applied.h"
#include "ir/support/precondition.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

bool is_external(const Ref& ref) { return (ref.traits & kExternalTrait) != 0; }

/// Operands apart from externals, and what stands where.
struct Sides {
  std::vector<Ref> chunks;
  std::vector<RowValue> values;
  explicit Sides(std::span<const Ref> refs) {
    for (const Ref& ref : refs) {
      if (is_external(ref)) {
        values.push_back({true, ref.operand.buffer});
      } else {
        values.push_back({false, static_cast<uint32_t>(chunks.size())});
        chunks.push_back(ref);
      }
    }
  }
};

/// "2 parameters (x, gate)"
std::string listed(const std::vector<rows::Stored>& all, std::string_view what) {
  std::string names;
  for (const rows::Stored& one : all) names += (names.empty() ? "" : ", ") + one.name;
  return fmt::format("{} ({})", counted(all.size(), what), names);
}

}  // namespace

bool Ops::check_applied(const rows::Function& function, std::span<const Ref> results,
                        std::span<const Ref> params) {
  const auto fault = [&](std::string text) {
    reports_.fail("op-rows", {}, std::move(text));
    return false;
  };
  if (results.size() != function.outputs.size() || params.size() != function.params.size()) {
    return fault(fmt::format("'{}' has {} and {}; {} and {} are given", function.name,
                             listed(function.outputs, "result"),
                             listed(function.params, "parameter"), results.size(), params.size()));
  }
  if (std::ranges::all_of(results, is_external) || std::ranges::all_of(params, is_external)) {
    return fault("'apply' needs a chunk of a buffer on both sides of '<-'");
  }
  return true;
}

/// The chunk of the output whose rows those of all externals are. Without such externals it is the
/// first of a chunk of the caller's, as it is as long.
std::optional<uint32_t> Ops::first_rows(std::span<const Ref> results, std::span<const Ref> params) {
  const Ref* rows = nullptr;
  const Ref* callers = nullptr;
  for (const std::span<const Ref> side : {results, params}) {
    for (const Ref& ref : side) {
      if (!is_external(ref)) {
        if ((ref.traits & kCallerTrait) != 0 && callers == nullptr) callers = &ref;
        continue;
      }
      if (ref.operand.count == 0) continue;
      if (rows != nullptr &&
          (rows->operand.first != ref.operand.first || rows->operand.count != ref.operand.count)) {
        reports_.fail("op-rows", ref.mark, "the externals of one 'apply' must have the same rows");
        return {};
      }
      rows = &ref;
    }
  }
  if (rows == nullptr) {
    const uint32_t part = draft_.program.contract.part_chunks();
    return callers == nullptr ? 0 : callers->operand.first % std::max(part, 1u);
  }
  for (const Ref& ref : results) {
    if (is_external(ref) || ref.operand.count == rows->operand.count) continue;
    reports_.fail("chunk-count", rows->mark,
                  fmt::format("rows of {} chunks of an external, and {} of a buffer",
                              rows->operand.count, ref.operand.count));
    return {};
  }
  return rows->operand.first;
}

bool Ops::apply(uint32_t function, std::span<const Ref> results, std::span<const Ref> params,
                const OpOptions& options) {
  precondition(function < draft_.program.functions.size());
  if (budget_.gave_up() || !draft_.ready()) return false;
  const auto valid = [](const Ref& ref) { return ref.valid(); };
  if (!std::ranges::all_of(results, valid) || !std::ranges::all_of(params, valid)) return false;
  Program& program = draft_.program;
  if (!check_applied(program.functions[function], results, params)) return false;
  const std::optional<uint32_t> first = first_rows(results, params);
  if (!first) return false;
  const Sides dsts(results), srcs(params);
  return add_applied(OpKind::apply, dsts.chunks, srcs.chunks,
                     encode_applied(function, *first, dsts.values, srcs.values), options);
}

bool Ops::add_applied(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      std::span<const int64_t> applied, const OpOptions& options) {
  Program& program = draft_.program;
  const size_t before = draft_.out->ops.size();
  if (!add(kind, dsts, srcs, options)) return false;
  if (draft_.out->ops.size() == before) return true;  // it has nothing to do
  Op& op = draft_.out->ops.back();
  if (draft_.out->ops.size() != before + 1 || !may_apply(info(op.kind))) {
    reports_.fail(
        "op-rows", {},
        fmt::format("'{}' has one source here, and adds up nothing; use 'apply'", info(kind).name));
    return false;
  }
  op.applied = program.append(applied);
  const auto fault = applied_fault(program, draft_.rank, op);
  if (fault) reports_.fail(fault->code, {}, fault->message);
  return !fault;
}

/// The op's first destination and the externals, as the function has them; likewise its sum.
bool Ops::op_then(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                  const ThenRows& then, const OpOptions& options) {
  precondition(may_apply(info(kind)) && then.function < draft_.program.functions.size());
  if (budget_.gave_up() || !draft_.ready()) return false;
  const auto valid = [](const Ref& ref) { return ref.valid(); };
  for (const std::span<const Ref> side : {dsts, srcs, then.results, then.params}) {
    if (!std::ranges::all_of(side, valid)) return false;
  }
  if (dsts.empty() || srcs.empty()) return add(kind, dsts, srcs, options);
  const auto with = [](std::span<const Ref> externals, uint32_t place, const Ref& chunk) {
    std::vector<Ref> all(externals.begin(), externals.end());
    all.insert(all.begin() + place, chunk);
    return all;
  };
  const std::vector<Ref> results = with(then.results, then.output, dsts[0]);
  const std::vector<Ref> params = with(then.params, then.sum, srcs[0]);
  if (!check_applied(draft_.program.functions[then.function], results, params)) return false;
  const std::optional<uint32_t> first = first_rows(results, params);
  if (!first) return false;
  return add_applied(
      kind, dsts, srcs,
      encode_applied(then.function, *first, Sides(results).values, Sides(params).values), options);
}

}  // namespace mscclc
