// For tests: files in a folder of a test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace mscclc::testing {

/// A new folder that only this user may enter; it is removed at the end, with all that is in it.
class MadeUpFolder {
 public:
  MadeUpFolder() {
    const char* const base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/mscclc-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  ~MadeUpFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MadeUpFolder(const MadeUpFolder&) = delete;
  MadeUpFolder& operator=(const MadeUpFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Where a file of it lies, "dev/nvidia0" say.
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file, and the folders it needs. Where it lies.
  std::string write(const std::string& name, const std::string& text = "") const {
    const std::string whole = file(name);
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole, std::ios::binary) << text;
    return whole;
  }

 private:
  std::string path_;
};

}  // namespace mscclc::testing
