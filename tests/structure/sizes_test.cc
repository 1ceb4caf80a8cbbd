// Folders and files of source stay small enough to be read.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

constexpr size_t kFiles = 30;   // of a folder, without its tests
constexpr size_t kLines = 640;  // of a file

bool is_test(const std::string& path) { return path.find("_test.") != std::string::npos; }

TEST_CASE("a folder has at most 30 sources, without tests") {
  std::map<std::string, size_t> files;
  for (const auto& [path, text] : sources()) {
    if (!is_test(path)) ++files[std::filesystem::path(path).parent_path().string()];
  }
  REQUIRE(files.size() > 50);
  for (const auto& [folder, count] : files) {
    INFO(folder << ": divide it by subject");
    CHECK(count <= kFiles);
  }
}

TEST_CASE("a source has at most 640 lines") {
  for (const auto& [path, text] : sources()) {
    INFO(path << ": divide it by purpose");
    CHECK(static_cast<size_t>(std::ranges::count(text, '\n')) <= kLines);
  }
}

}  // namespace
}  // namespace mscclc::structure
