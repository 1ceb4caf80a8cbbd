// What the public headers (runtime/api) include of ours, all the way down, is what includes.txt
// says. That each compiles alone is shown by building this test (:alone), and that what they
// declare is there to be linked by the cases at the end.
#include <catch2/catch.hpp>
#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "ir/support/read_file.h"
#include "runtime/api/builtin_library.h"
#include "runtime/api/communicator.h"
#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "runtime/api/launcher.h"
#include "runtime/api/plan.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {
namespace {

namespace fs = std::filesystem;

/// Adds the files of ours that `path` includes, and what these include.
void add_includes(const std::string& path, std::set<std::string>& found) {
  static const std::regex include("#include \"([^\"]+)\"");
  const std::string text = read_file(path).value();
  const std::sregex_iterator end;
  for (std::sregex_iterator i(text.begin(), text.end(), include); i != end; ++i) {
    if (found.insert((*i)[1]).second) add_includes((*i)[1], found);
  }
}

/// A line for each header, and for each file that it includes.
std::string listed() {
  std::set<std::string> headers;
  for (const auto& entry : fs::directory_iterator("runtime/api")) {
    if (entry.path().extension() == ".h") headers.insert(entry.path().string());
  }
  std::string text;
  for (const std::string& header : headers) {
    text += header + "\n";
    std::set<std::string> included;
    add_includes(header, included);
    for (const std::string& path : included) text += "  " + path + "\n";
  }
  return text;
}

TEST_CASE("public headers include what includes.txt says, and no more") {
  CHECK(listed() == read_file("tests/api/includes.txt").value());
}

TEST_CASE("a program that includes nothing else makes a communicator and reads a plan") {
  Diagnostics diagnostics;
  auto bootstraps = make_in_process_bootstraps(1, std::chrono::seconds(300));
  const std::shared_ptr<Device> device = make_host_device(diagnostics);
  REQUIRE(device != nullptr);
  const auto communicator = Communicator::create(std::move(bootstraps[0]), device, {}, diagnostics);
  REQUIRE(communicator != nullptr);
  CHECK(communicator->size() == 1);
  CHECK(load_plan("{", "broken.json", diagnostics) == nullptr);
  REQUIRE(diagnostics.has_errors());
  const auto registry =
      PlanRegistry::create({.library = builtin_library({}, diagnostics)}, diagnostics);
  REQUIRE(registry != nullptr);
  CHECK_FALSE(registry->add_path("/no such folder", diagnostics));
}

TEST_CASE("a program that includes nothing else hosts a job and joins it") {
  Diagnostics diagnostics;
  auto job =
      host_job({.size = 1, .one_machine = true, .timeout = std::chrono::seconds(300)}, diagnostics);
  REQUIRE(job.has_value());
  const auto id = UniqueId::parse(job->id.text(), diagnostics);
  REQUIRE(id.has_value());
  CHECK(join_job(*id, 0, 1, std::chrono::seconds(300), std::move(job->hub), diagnostics) !=
        nullptr);
  CHECK(read_host_options(diagnostics).has_value());
  CHECK((cuda::has_gpu_part() || cuda::open_gpu(0, diagnostics) == nullptr));
}

}  // namespace
}  // namespace mscclc
