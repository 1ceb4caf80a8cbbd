#include "tests/structure/room_graph.h"

#include <algorithm>
#include <sstream>

namespace mscclc::structure {
namespace {

/// "runtime/api/plan.h", of "runtime": "api". "": it lies elsewhere, or in the folder itself.
std::string room_of(std::string_view folder, std::string_view path) {
  if (!path.starts_with(std::string(folder) + "/")) return "";
  const std::string_view within = path.substr(folder.size() + 1);
  const size_t end = within.find('/');
  return end == std::string_view::npos ? "" : std::string(within.substr(0, end));
}

bool is_product(std::string_view path) {
  return path.find("_test.") == std::string_view::npos &&
         path.find("_test_text.") == std::string_view::npos &&
         path.find("_benchmark.") == std::string_view::npos;
}

/// The path in `#include "path"`. "": the line is another.
std::string included(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return "";
  const std::string_view rest = line.substr(kInclude.size());
  return std::string(rest.substr(0, rest.find('"')));
}

/// How many rooms stand above one another from `room` down, it counted. 0: they go in a circle.
/// `heights`: what is known; 0 while it is looked for.
size_t height(const RoomGraph& graph, const std::string& room,
              std::map<std::string, size_t>& heights) {
  const auto [at, is_new] = heights.try_emplace(room, 0);
  if (!is_new) return at->second;
  size_t below = 0;
  for (const auto& [arrow, lines] : graph.arrows) {
    if (arrow.first != room) continue;
    const size_t other = height(graph, arrow.second, heights);
    if (other == 0) return 0;
    below = std::max(below, other);
  }
  return heights[room] = below + 1;
}

}  // namespace

RoomGraph room_graph(const std::string& folder, const std::map<std::string, std::string>& sources) {
  RoomGraph graph;
  for (const auto& [path, text] : sources) {
    const std::string room = room_of(folder, path);
    if (room.empty()) continue;
    graph.rooms.insert(room);
    if (!is_product(path)) continue;
    std::stringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const std::string other = room_of(folder, included(line));
      if (!other.empty() && other != room) ++graph.arrows[{room, other}];
    }
  }
  return graph;
}

std::optional<size_t> floors(const RoomGraph& graph) {
  std::map<std::string, size_t> heights;
  size_t most = 0;
  for (const std::string& room : graph.rooms) {
    const size_t found = height(graph, room, heights);
    if (found == 0) return std::nullopt;
    most = std::max(most, found);
  }
  return most;
}

std::string text_of(const std::string& folder, const RoomGraph& graph) {
  const auto high = floors(graph);
  std::stringstream text;
  text << folder << ": " << graph.rooms.size() << " rooms, "
       << (high ? std::to_string(*high) + " floors" : "a circle") << ", " << graph.arrows.size()
       << " arrows\n";
  for (const auto& [arrow, lines] : graph.arrows) {
    text << "  " << arrow.first << " -> " << arrow.second << " (" << lines << " lines)\n";
  }
  return text.str();
}

}  // namespace mscclc::structure
