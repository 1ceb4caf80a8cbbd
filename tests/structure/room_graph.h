// The rooms of a folder, and the arrows between them: how tangled it is, in numbers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mscclc::structure {

struct RoomGraph {
  std::set<std::string> rooms;  ///< the folders at its top
  /// Room A includes from room B: so many lines do.
  std::map<std::pair<std::string, std::string>, int> arrows;
};

/// `sources`: text by path. Tests do not count, nor do benchmarks: they may include more.
RoomGraph room_graph(const std::string& folder, const std::map<std::string, std::string>& sources);

/// Rooms of the longest path of arrows. nullopt: they go in a circle.
std::optional<size_t> floors(const RoomGraph& graph);

/// "runtime: 8 rooms, 5 floors, 16 arrows", and a line for each arrow.
std::string text_of(const std::string& folder, const RoomGraph& graph);

}  // namespace mscclc::structure
