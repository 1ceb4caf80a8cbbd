#include "tests/structure/sources.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "ir/support/read_file.h"

namespace mscclc::structure {
namespace {

std::map<std::string, std::string> texts_of(std::initializer_list<std::string_view> ends) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> texts;
  for (const auto& entry : fs::recursive_directory_iterator(".")) {
    const fs::path path = entry.path().lexically_relative(".");
    const std::string extension = path.extension();
    if (std::ranges::count(ends, extension.empty() ? path.filename().string() : extension) > 0 &&
        fs::is_regular_file(path)) {
      texts[path.string()] = read_file(path).value();
    }
  }
  return texts;
}

}  // namespace

std::map<std::string, std::string> sources() { return texts_of({".cc", ".h", ".cu", ".cuh"}); }

std::map<std::string, std::string> texts() {
  return texts_of({".bazel", ".bzl", ".c", ".cc", ".cmake", ".cu", ".cuh", ".def", ".h", ".in",
                   ".mk", ".mscl", ".py", ".sh", "quickstart", "test"});
}

std::map<std::string, std::string> pages() { return texts_of({".md"}); }

std::set<std::string> files() {
  namespace fs = std::filesystem;
  std::set<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(".")) {
    if (fs::is_regular_file(entry.path())) paths.insert(entry.path().lexically_relative("."));
  }
  return paths;
}

}  // namespace mscclc::structure
