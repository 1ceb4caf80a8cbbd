// What the checks see of a machine: its files, variables, what programs print, what the driver
// answers. Tests have machines of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/cuda_facts.h"

namespace mscclc::doctor {

struct Machine {
  using Variables = std::map<std::string, std::string, std::less<>>;

  std::string root;  ///< before each absolute path; "": this machine
  Variables variables;
  /// What a command of the shell prints; nothing if it is not there, fails or takes too long.
  std::function<std::optional<std::string>(const std::string& command)> run;
  /// What the driver of CUDA says.
  CudaFacts cuda;

  // Files; nothing if they are not there or cannot be read.
  std::optional<std::string> read(const std::string& path) const;
  /// The first line, without blanks at its ends.
  std::optional<std::string> line(const std::string& path) const;
  std::optional<uint64_t> number(const std::string& path) const;
  bool exists(const std::string& path) const;
  bool can_write(const std::string& path) const;
  /// Names in a folder, sorted.
  std::vector<std::string> list(const std::string& path) const;
  /// Where a symbolic link leads, as it is written.
  std::string link(const std::string& path) const;
  /// Bytes of the file system that a path is on.
  std::optional<uint64_t> file_system_bytes(const std::string& path) const;
  /// True if the first bytes of a file have this text.
  bool file_has(const std::string& path, std::string_view text) const;
  /// "" if it is not set.
  std::string variable(const std::string& name) const;
};

/// The machine on which this process runs.
Machine this_machine();

}  // namespace mscclc::doctor
