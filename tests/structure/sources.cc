#include "tests/structure/sources.h"

#include <filesystem>

#include "ir/base/read_file.h"

namespace mscclc::structure {

std::map<std::string, std::string> sources() {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> texts;
  for (const auto& entry : fs::recursive_directory_iterator(".")) {
    const fs::path path = entry.path().lexically_relative(".");
    const std::string extension = path.extension();
    if (extension == ".cc" || extension == ".h" || extension == ".cu" || extension == ".cuh") {
      texts[path.string()] = read_file(path).value();
    }
  }
  return texts;
}

}  // namespace mscclc::structure
