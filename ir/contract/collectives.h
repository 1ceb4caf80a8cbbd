// The kinds of collectives, a row each of collectives.def. Whatever depends on the kind is a column
// there: shapes, promises, the options a program may write, bus bandwidth.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mscclc {

enum class CollectiveKind : uint8_t {
#define COLLECTIVE(name, input, output, source, in_place, bus) name,
#include "ir/contract/collectives.def"
#undef COLLECTIVE
};

enum class Side : uint8_t { input, output };

/// What one side of a collective is made of; see collectives.def.
enum class SideForm : uint8_t { nothing, whole, rows, counted, declared };
struct SideInfo {
  SideForm form;
  bool only_at_root = false;
};

/// Where the contributions to an output chunk come from; see collectives.def.
enum class Source : uint8_t {
  none,
  everyone,
  row_rank,
  root_rank,
  shifted,
  counted_row,
  promised,
};

/// The traffic that bus bandwidth counts; see collectives.def.
enum class BusTraffic : uint8_t { once, share, twice };

/// A row of the table.
struct CollectiveInfo {
  std::string_view name;
  SideInfo input, output;
  Source source;
  bool can_alias;  ///< in place is possible
  BusTraffic bus;

  const SideInfo& side(Side side) const { return side == Side::input ? input : output; }
  /// True if this side has a row for every rank.
  bool has_rows(Side s) const { return side(s).form == SideForm::rows; }
  /// True if one rank is the root: one side is there only.
  bool has_root() const { return input.only_at_root || output.only_at_root; }
  /// True if outputs are sums over all ranks.
  bool adds_up() const { return source == Source::everyone; }
  /// True if every rank gets a part of every rank: of allgather and alltoall.
  bool gets_parts_of_all() const { return source == Source::row_rank && !has_root(); }
  /// True if every rank has an output of the form of its input: a copy of the one fits the other.
  bool keeps_form() const { return !has_root() && input.form == output.form; }
};

const CollectiveInfo& info(CollectiveKind kind);
std::string_view name(CollectiveKind kind);
/// True if one rank is the root: of broadcast, reduce, gather and scatter.
inline bool has_root(CollectiveKind kind) { return info(kind).has_root(); }

/// The kind of this name in programs; nothing for other words, and for "none".
std::optional<CollectiveKind> find_collective(std::string_view name);

/// The names that programs may write, in the table's order.
std::vector<std::string_view> collective_names();

}  // namespace mscclc
