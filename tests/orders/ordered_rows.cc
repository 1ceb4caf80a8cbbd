#include "tests/orders/ordered_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/orders/ordered_sums.h"

namespace mscclc::testing {
namespace {

constexpr CollectiveKind kReductions[] = {CollectiveKind::allreduce, CollectiveKind::reducescatter,
                                          CollectiveKind::reduce};
constexpr Dtype kRounded[] = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3};
/// So many in a row that scratch with two copies is used again.
constexpr uint64_t kCallsInARow = 3;
/// One element, some that do not divide, and several units of every packet format.
constexpr uint64_t kElements[] = {1, 67, 301};

std::vector<bool> placements(InPlace in_place) {
  if (in_place == InPlace::either) return {false, true};
  return {in_place == InPlace::yes};
}

/// Adds what a range picks under a contract: to the row that is there, or as one more.
void add_row(std::vector<OrderedRow>& rows, const LibraryRange& range, const LibraryCall& call) {
  OrderedRow row{.program = range.choice->program,
                 .defines = range.choice->defines(call),
                 .types = {},
                 .in_place = placements(range.in_place),
                 .orders = {}};
  for (const Dtype type : kRounded) {
    if (std::ranges::find(range.dtypes, type) != range.dtypes.end()) row.types.push_back(type);
  }
  if (row.types.empty()) return;
  const auto same = std::ranges::find_if(rows, [&](const OrderedRow& other) {
    return other.program == row.program && other.defines == row.defines &&
           other.types == row.types && other.in_place == row.in_place;
  });
  std::vector<SumOrder>& orders = same != rows.end() ? same->orders : row.orders;
  if (std::ranges::find(orders, call.order) == orders.end()) orders.push_back(call.order);
  if (same == rows.end()) rows.push_back(std::move(row));
}

/// One call of a row, and what its contracts promise of it.
class RowCall {
 public:
  RowCall(const Program& program, const OrderedRow& row, const OrderedCall& call)
      : program_(program), row_(row), call_(call), runs_(program, call) {
    for (const SumOrder order : row.orders) {
      wanted_.push_back(order > SumOrder::replicated ? promised(program, call, order)
                                                     : std::vector<Bytes>());
    }
  }

  /// "" if the row's contracts are kept.
  std::string run(uint64_t schedule, ScheduleCounts& counts) {
    const Adversary adversary{.strands = 1 + static_cast<uint32_t>(schedule % 4)};
    const Outputs found = runs_.run(schedule, schedule % 4 != 0 ? &adversary : nullptr);
    std::string fault = found.fault;
    for (size_t i = 0; i < row_.orders.size() && fault.empty(); ++i) {
      if (!wanted_[i].empty()) fault = not_as_promised(found.by_rank, wanted_[i], call_.dtype);
      if (fault.empty()) fault = not_replicated(program_.contract, found.by_rank, call_.dtype);
      counts.kept[static_cast<size_t>(row_.orders[i])] += fault.empty();
    }
    ++counts.schedules;
    if (first_.empty()) first_ = found.by_rank;
    if (fault.empty()) fault = not_as_promised(found.by_rank, first_, call_.dtype);
    if (fault.empty()) return "";
    return fmt::format("{}, {} of {}{}, schedule {}: {}", row_.text(), call_.elements,
                       info(call_.dtype).name, call_.in_place ? " in place" : "", schedule, fault);
  }

 private:
  const Program& program_;
  const OrderedRow& row_;
  const OrderedCall call_;
  OrderedRuns runs_;
  std::vector<std::vector<Bytes>> wanted_;  ///< by contract of the row; none: no order is promised
  std::vector<Bytes> first_;                ///< what the first schedule gave
};

std::vector<OrderedCall> calls_of(const OrderedRow& row) {
  std::vector<OrderedCall> calls;
  for (const Dtype type : row.types) {
    for (const bool in_place : row.in_place) {
      for (const uint64_t elements : kElements) {
        calls.push_back(
            {.elements = elements, .dtype = type, .in_place = in_place, .calls = kCallsInARow});
      }
    }
  }
  return calls;
}

}  // namespace

const std::vector<OrderedWorld>& ordered_worlds() {
  static const std::vector<OrderedWorld> kWorlds = {{2}, {3},    {4},    {5},    {6},    {7},
                                                    {8}, {4, 2}, {3, 3}, {4, 4}, {6, 3}, {8, 2}};
  return kWorlds;
}

std::string OrderedRow::text() const {
  std::string text = program;
  for (const auto& [name, value] : defines) text += fmt::format(" {}={}", name, value);
  for (const SumOrder order : orders) {
    text += fmt::format("{} {}", order == orders[0] ? ":" : ",", name(order));
  }
  return text;
}

std::vector<OrderedRow> ordered_rows(const LibraryTable& table, const OrderedWorld& world) {
  std::vector<OrderedRow> rows;
  for (const CollectiveKind kind : kReductions) {
    for (const ProvedOrder& proved : kProvedOrders) {
      for (const LinkKind links : {LinkKind::nvlink, LinkKind::pcie}) {
        for (const bool captured : {false, true}) {
          const LibraryCall call{.kind = kind,
                                 .ranks = world.ranks,
                                 .links = links,
                                 .nodes = world.nodes,
                                 .order = proved.order,
                                 .captured = captured};
          for (const LibraryRange& range : table.ranges(call)) add_row(rows, range, call);
        }
      }
    }
  }
  return rows;
}

std::string broken_by_schedules(const Program& program, const OrderedRow& row,
                                const ScheduleRange& schedules, ScheduleCounts& counts) {
  const std::vector<OrderedCall> calls = calls_of(row);
  const uint64_t end = schedules.first + schedules.count;
  for (size_t i = 0; i < calls.size(); ++i) {
    uint64_t schedule = i;
    if (schedule < schedules.first) {
      schedule += (schedules.first - i + calls.size() - 1) / calls.size() * calls.size();
    }
    if (schedule >= end) continue;
    RowCall call(program, row, calls[i]);
    ScheduleCounts ignored;  // the first schedule, which the others are compared with
    std::string fault = schedule == i ? "" : call.run(i, ignored);
    for (; schedule < end && fault.empty(); schedule += calls.size()) {
      fault = call.run(schedule, counts);
    }
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace mscclc::testing
