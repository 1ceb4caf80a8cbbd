// For tests: which memory this process has mapped.
#pragma once

#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace mscclc::testing {

/// How many files of memory this process has mapped: those of Device::allocate, own and peers'.
inline size_t mapped_files() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, access, offset, device, inode;
    words >> range >> access >> offset >> device >> inode;
    files.insert(inode);
  }
  return files.size();
}

}  // namespace mscclc::testing
