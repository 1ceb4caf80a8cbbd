// Which row is for a call, and what it picks.
#include "plans/format/library_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// The range of the same choice, sizes and this placement.
std::vector<LibraryRange>::iterator find_alike(std::vector<LibraryRange>& list,
                                               const LibraryRange& r, InPlace in_place) {
  return std::ranges::find_if(list, [&](const LibraryRange& other) {
    return *other.choice == *r.choice && other.min == r.min && other.max == r.max &&
           other.in_place == in_place;
  });
}

bool has(const std::vector<Dtype>& list, Dtype t) {
  return std::ranges::find(list, t) != list.end();
}

}  // namespace

std::string LibraryChoice::params_text() const {
  std::string text;
  for (const auto& [key, value] : params) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  }
  return text;
}

namespace {

/// A parameter that is the call's number of ranks, or of ranks on a node.
constexpr std::string_view kRanks = "ranks", kRanksPerNode = "ranks_per_node";

}  // namespace

std::vector<std::pair<std::string, std::string>> LibraryChoice::defines(
    const LibraryCall& call) const {
  precondition(!program.empty());
  std::vector<std::pair<std::string, std::string>> list;
  const auto is_ranks = [](const auto& param) { return param.second == kRanks; };
  if (std::ranges::none_of(params, is_ranks)) list.emplace_back("R", std::to_string(call.ranks));
  if (has_root(call.kind)) list.emplace_back("root", std::to_string(call.root));
  if (call.kind == CollectiveKind::sendrecv) {
    list.emplace_back("shift", std::to_string(call.shift));
  }
  for (const auto& [key, value] : params) {
    list.emplace_back(key, value == kRanks          ? std::to_string(call.ranks)
                           : value == kRanksPerNode ? std::to_string(call.ranks_per_node())
                                                    : value);
  }
  return list;
}

std::string LibraryChoice::name(const LibraryCall& call) const {
  return program_text(program, defines(call));
}

std::string LibraryChoice::plan_file(const LibraryCall& call) const {
  precondition(!program.empty());
  std::string name = fmt::format("{}-R{}", program, call.ranks);
  if (call.nodes != 1) name += fmt::format("-N{}", call.nodes);
  if (has_root(call.kind)) name += fmt::format("-root{}", call.root);
  if (call.kind == CollectiveKind::sendrecv)
    name += fmt::format("-shift{}", receiver_of_0(call.shift, call.ranks));
  for (const auto& [key, value] : params) {  // not what -R and -N say
    if (!value.starts_with(kRanks)) name += fmt::format("-{}{}", key, value);
  }
  return name + ".json";
}

bool LibraryChoice::lower_blocks(uint32_t blocks, uint32_t most) {
  if (most == 0 || blocks <= most) return false;
  bool lowered = false;
  for (auto& [name, value] : params) {
    if (name != "B" && name != "own" && name != "I") continue;
    uint64_t now = 0;
    const char* const end = value.data() + value.size();
    if (std::from_chars(value.data(), end, now).ptr != end || now > ~uint32_t{0}) continue;
    const uint64_t less = std::max<uint64_t>(1, now * most / blocks);
    if (less >= now) continue;
    lowered = true;
    value = std::to_string(less);
  }
  return lowered;
}

namespace {

bool adds_up_in(const std::vector<Dtype>& types, const LibraryCall& call) {
  return types.empty() || has(types, call.accumulate.value_or(info(call.dtype).accumulate));
}

/// "8 ranks", "2 to 8 ranks", "2 ranks or more"
std::string count_text(uint32_t min, uint32_t max, const char* unit) {
  if (min == max) return fmt::format("{} {}{}", min, unit, min == 1 ? "" : "s");
  if (max == kNoLimit) return fmt::format("{} {}s or more", min, unit);
  return fmt::format("{} to {} {}s", min, max, unit);
}

}  // namespace

Mismatch LibraryRow::mismatch(const LibraryCall& call) const {
  if (kind != call.kind) return Mismatch::collective;
  if (call.ranks == 0 || !for_ranks(call.ranks)) return Mismatch::ranks;
  if (!for_nodes(call.nodes)) return Mismatch::nodes;
  if (root && *root != call.root) return Mismatch::root;
  if (shift && *shift != receiver_of_0(call.shift, call.ranks)) return Mismatch::shift;
  if (call.bytes > bytes) return Mismatch::bytes;
  if (!has(dtypes, call.dtype)) return Mismatch::dtype;
  if (!adds_up_in(accumulate, call)) return Mismatch::accumulate;
  if (call.in_place && !in_place) return Mismatch::placement;
  if (call.captured && !captured) return Mismatch::capture;
  if (order_matters(call) ? !serves(order, call.order) : asked) return Mismatch::order;
  if (asked && call.order != order) return Mismatch::order;
  const bool same_links = !links || (*links == LinkKind::pcie) == (call.links == LinkKind::pcie);
  return same_links ? Mismatch::none : Mismatch::links;
}

std::optional<Error> LibraryRow::why_not(const LibraryCall& call) const {
  switch (mismatch(call)) {
    case Mismatch::none:
      return std::nullopt;
    case Mismatch::collective:
      return Error{fmt::format("it is for {}", name(kind))};
    case Mismatch::ranks:
      return Error{"it is for " + count_text(min_ranks, max_ranks, "rank")};
    case Mismatch::nodes:
      if (max_nodes == 0) return Error{"it is for ranks that are spread unevenly over nodes"};
      return Error{"it is for " + count_text(min_nodes, max_nodes, "node")};
    case Mismatch::root:
      return Error{fmt::format("it is for root {}", *root)};
    case Mismatch::shift:
      return Error{fmt::format("it is for shift {}", *shift)};
    case Mismatch::bytes:
      return Error{fmt::format("it is for {} bytes at most", bytes)};
    case Mismatch::dtype:
      return Error{fmt::format("it is not for {}", info(call.dtype).name)};
    case Mismatch::accumulate:
      return Error{fmt::format("it is not for sums in {}",
                               info(call.accumulate.value_or(info(call.dtype).accumulate)).name)};
    case Mismatch::placement:
      return Error{"it is not for calls in place"};
    case Mismatch::capture:
      return Error{
          "it is not for captured calls: a graph's launch may wait for room in the driver, and "
          "then no copy engine gets an order"};
    case Mismatch::order:
      if (asked) return Error{fmt::format("it is for calls that ask for '{}'", name(order))};
      return Error{fmt::format("its sums keep '{}', not '{}'", name(order), name(call.order))};
    case Mismatch::links:
      return Error{fmt::format("it is for {}", name(*links))};
  }
  return std::nullopt;
}

bool LibraryRow::covers(const LibraryRow& other) const {
  const bool all_sums =
      accumulate.empty() ||
      (!other.accumulate.empty() &&
       std::ranges::all_of(other.accumulate, [&](Dtype t) { return has(accumulate, t); }));
  return all_sums && kind == other.kind && min_ranks <= other.min_ranks &&
         max_ranks >= other.max_ranks && min_nodes <= other.min_nodes &&
         max_nodes >= other.max_nodes && bytes >= other.bytes && (in_place || !other.in_place) &&
         (captured || !other.captured) && (!root || root == other.root) &&
         (!links || links == other.links) && (!shift || shift == other.shift) &&
         serves(order, other.order) && (!asked || (other.asked && order == other.order)) &&
         std::ranges::all_of(other.dtypes, [&](Dtype t) { return has(dtypes, t); });
}

const LibraryChoice* LibraryTable::choose(const LibraryCall& call) const {
  const auto row = std::ranges::find_if(rows_, [&](const LibraryRow& r) { return r.fits(call); });
  return row == rows_.end() ? nullptr : &row->choice;
}

/// Stretches of sizes, for one data type and placement. `ends`: where rows end.
std::vector<LibraryRange> LibraryTable::stretches(LibraryCall call,
                                                  const std::vector<uint64_t>& ends) const {
  std::vector<LibraryRange> all;
  uint64_t min = 0;
  for (const uint64_t end : ends) {
    call.bytes = end;
    const LibraryChoice* choice = choose(call);
    const bool follows = !all.empty() && all.back().max + 1 == min;
    if (choice != nullptr && follows && *all.back().choice == *choice) {
      all.back().max = end;
    } else if (choice != nullptr) {
      all.push_back({choice, min, end, {call.dtype}, call.in_place ? InPlace::yes : InPlace::no});
    }
    min = end + 1;
  }
  return all;
}

std::vector<LibraryRange> LibraryTable::ranges(const LibraryCall& any) const {
  LibraryCall call = any;
  std::vector<uint64_t> ends;
  for (const LibraryRow& row : rows_) {
    const bool mine =
        row.kind == call.kind && row.for_ranks(call.ranks) && row.for_nodes(call.nodes);
    if (mine) ends.push_back(row.bytes);
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<LibraryRange> all;
  for (const DtypeInfo& t : dtype_table()) {
    call.dtype = t.dtype;
    call.in_place = false;
    std::vector<LibraryRange> mine = stretches(call, ends);
    call.in_place = true;
    for (LibraryRange& placed : stretches(call, ends)) {
      const auto twin = find_alike(mine, placed, InPlace::no);
      if (twin == mine.end()) {
        mine.push_back(std::move(placed));
      } else {
        twin->in_place = InPlace::either;
      }
    }
    for (LibraryRange& r : mine) {
      const auto known = find_alike(all, r, r.in_place);
      if (known == all.end()) {
        all.push_back(std::move(r));
      } else {
        known->dtypes.push_back(t.dtype);
      }
    }
  }
  std::ranges::stable_sort(all, {}, &LibraryRange::min);
  return all;
}

std::vector<CollectiveKind> LibraryTable::collectives() const {
  std::vector<CollectiveKind> kinds;
  for (const LibraryRow& row : rows_) {
    if (std::ranges::find(kinds, row.kind) == kinds.end()) kinds.push_back(row.kind);
  }
  return kinds;
}

}  // namespace mscclc
