// For tests: which memory a process has mapped.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

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

/// How many more files a rank of sendrecv_port, over two processes, has mapped once the plan is
/// loaded with `options`. Its calls must be right, too.
inline size_t files_mapped_by_ports(const RunnerOptions& options, const OpenDevice& open) {
  const CompiledWorld world("sendrecv_port", {{"R", "2"}});
  REQUIRE(world.errors() == "");
  const auto plan = std::make_shared<const Program>(world.program());
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const size_t before = mapped_files();
    RankRunner runner(communicator, plan, options);
    if (!runner.load(diagnostics)) return text(diagnostics);
    const size_t files = mapped_files() - before;
    const RankResult result = runner.run({.bytes = 4096, .iterations = 3}, diagnostics);
    return result.run.status == RunStatus::right ? fmt::format("{}", files) : text(diagnostics);
  };
  const auto ended = processes(2, body, {}, {}, open);
  INFO(ended[0].said);
  CHECK(ended[0].said == ended[1].said);
  return std::stoul(ended[0].said);
}

}  // namespace mscclc::testing
