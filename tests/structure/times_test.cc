// Constants of time of the runtime stand in one table, which says why each may be fixed.
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>

#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

/// Those that are no times that pass: limits of types, what is documented as the default of a
/// variable, and times of tools.
const std::set<std::string> kOthers = {
    "runtime/api/bootstrap.h: kSilence",                    // the default of MSCCLC_SILENCE
    "runtime/support/environment/environment.h: kForever",  // MSCCLC_TIMEOUT=0
    "runtime/support/address/sockets.cc: kLongestWatch",    // what the system takes
    "runtime/devices/cuda/device.cc: kLongest",             // what fits an int
    "runtime/devices/host/host_device.cc: kLongest",
    "runtime/support/memory/fetch_fd.cc: kLongest",
    "runtime/choice/proofs/first_use.h: kSlow",  // from when on a line of the log is a warning
    "runtime/network/verbs/stall_watch.cc: kLookEvery",  // how often; MSCCLC_SILENCE decides
};

TEST_CASE("fixed times of the runtime stand in fixed_times.h") {
  // Of 20 ms and more; below are rests of threads.
  const std::regex constant(
      R"(constexpr\s+(?:std::chrono::)?(milliseconds|seconds|minutes|hours)\s+(k\w+)(?:\{|\s*=\s*)([^;]*);)");
  std::set<std::string> found;
  size_t files = 0;
  for (const auto& [path, text] : sources()) {
    const bool tests = path.find("_test.cc") != path.npos || path.find("/testing/") != path.npos ||
                       path.find("/fake/") != path.npos;
    if (path.rfind("runtime/", 0) != 0 || tests || path == "runtime/support/fixed_times.h")
      continue;
    ++files;
    for (auto i = std::sregex_iterator(text.begin(), text.end(), constant);
         i != std::sregex_iterator(); ++i) {
      const std::string unit = (*i)[1], value = (*i)[3];
      if (unit == "milliseconds" && std::regex_match(value, std::regex(R"(1?\d\})"))) continue;
      if (value.rfind("k", 0) == 0) continue;  // another name for one of them
      found.insert(path + ": " + (*i)[2].str());
    }
  }
  CHECK(files > 200);
  CHECK(found == kOthers);
}

}  // namespace
}  // namespace mscclc::structure
