// docs/design/architecture.md: its table has every room of the source, and the files at which to
// start are there.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "ir/support/read_file.h"
#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

namespace fs = std::filesystem;

/// Words in `code` of a text.
std::vector<std::string> code_words(const std::string& text) {
  std::vector<std::string> words;
  std::stringstream parts(text);
  bool code = false;
  for (std::string part; std::getline(parts, part, '`'); code = !code) {
    if (code) words.push_back(part);
  }
  return words;
}

/// A row "| `room` | what lies there, in `parts` | `file` |".
struct Room {
  std::vector<std::string> parts, files;
};

std::map<std::string, Room> rooms() {
  std::map<std::string, Room> rows;
  std::stringstream page(read_file("docs/design/architecture.md").value());
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| `")) continue;
    const size_t second = line.find('|', 1), last = line.rfind('|', line.size() - 2);
    rows[code_words(line).front()] = {code_words(line.substr(second, last - second)),
                                      code_words(line.substr(last))};
  }
  return rows;
}

/// Folders of source, two levels deep at most; those within are part of their room.
std::set<std::string> folders() {
  std::set<std::string> found;
  for (const auto& [path, text] : sources()) {
    const fs::path folder = fs::path(path).parent_path();
    auto part = folder.begin();
    fs::path room = *part++;
    if (room == "tests" || room == "python" || room == "third_party") continue;
    if (part != folder.end()) room /= *part;
    if (room.filename() != "testing" && room.filename() != "examples") found.insert(room);
  }
  return found;
}

TEST_CASE("architecture: files at which to start are there") {
  const auto all = rooms();
  REQUIRE(all.size() > 50);
  const auto texts = sources();
  for (const auto& [name, room] : all) {
    for (const std::string& file : room.files) {
      const std::string extension = fs::path(file).extension();
      if (extension != ".cc" && extension != ".h" && extension != ".cuh") continue;
      INFO(name << "/" << file);
      CHECK(texts.contains(name + "/" + file));
    }
  }
}

TEST_CASE("architecture: every folder of source is a room, or a part of one that names it") {
  const auto all = rooms();
  for (const std::string& folder : folders()) {
    const fs::path path(folder);
    const auto within = all.find(path.parent_path());
    INFO(folder);
    CHECK((all.contains(folder) ||
           (within != all.end() &&
            std::ranges::count(within->second.parts, path.filename().string()) > 0)));
  }
}

}  // namespace
}  // namespace mscclc::structure
