// The options of the compiler's front end, which the command line gives.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mscclc {

struct FrontEndOptions {
  /// `-D name=value`, as written.
  std::vector<std::pair<std::string, std::string>> defines;
  /// Reads an imported file (path already relative to the importer's folder); nullopt: that
  /// cannot be done; errno says why, unless it is as it was.
  std::function<std::optional<std::string>(const std::string& path)> read_file;
  uint32_t threads = 0;  ///< see thread_count (ir/program/rank_parts.h); changes no result
  /// Ops that a program may unroll to before the compiler gives up.
  uint64_t max_ops = 64'000'000;
  /// compile() names the program's files as seen from the folder of the main one: the bytes of a
  /// plan must not depend on where it was compiled.
  bool relative_names = false;
};

}  // namespace mscclc
