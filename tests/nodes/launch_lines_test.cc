// The lines of docs/multi-node.md that start a job on two machines, run: this test stands in for
// mpirun, srun and torchrun, and sets the variables that they set. The machines are network
// namespaces of this one, joined by a network; where those are not permitted, all ranks are on one.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>

#include "ir/support/read_file.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/nodes/far_network.h"

namespace mscclc {
namespace {

using testing::FarNetwork;
using Variables = std::map<std::string, std::string>;

constexpr uint32_t kNodes = 2, kOnNode = 2, kRanks = kNodes * kOnNode;

/// A line of the document: a launcher, its options, and what every rank runs.
struct Line {
  std::string launcher, command;
  std::vector<std::string> options;

  /// The value of `--name=value` or `--name value`; "" if there is none.
  std::string option(const std::string& name) const {
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i] == name && i + 1 < options.size()) return options[i + 1];
      if (options[i].starts_with(name + "=")) return options[i].substr(name.size() + 1);
    }
    return "";
  }
};

/// The line that begins with the launcher's name, with those that continue it.
Line line_of(const std::string& launcher) {
  std::string text = read_file("docs/multi-node.md").value();
  const size_t begin = text.find("\n" + launcher + " ");
  REQUIRE(begin != std::string::npos);
  text = text.substr(begin + 1);
  for (size_t at = 0; (at = text.find("\\\n")) < text.find('\n');) text.replace(at, 2, " ");
  text = text.substr(0, text.find('\n'));
  const size_t command = text.find("mscclc run ");
  REQUIRE(command != std::string::npos);
  Line line{launcher, text.substr(command), {}};
  std::istringstream words(text.substr(0, command));
  for (std::string word; words >> word;) line.options.push_back(word);
  return line;
}

/// Where the document's machines are here.
std::string with_addresses(std::string text, const std::string& first) {
  for (size_t at = 0; (at = text.find("node0", at)) != std::string::npos;) {
    text.replace(at, 5, first);
  }
  return text;
}

Variables of_mpirun(const Line& line, uint32_t rank, const std::string& first) {
  CHECK(line.option("-np") == std::to_string(kRanks));
  CHECK(line.option("--host") == "node0:2,node1:2");
  Variables set = {{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                   {"OMPI_COMM_WORLD_SIZE", std::to_string(kRanks)},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank % kOnNode)},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(kOnNode)},
                   {"PMIX_NAMESPACE", "prterun-node0-1@1"}};
  for (size_t i = 0; i + 1 < line.options.size(); ++i) {  // -x NAME=VALUE, or of its own
    const std::string& given = line.options[i + 1];
    const size_t equals = given.find('=');
    if (line.options[i] != "-x" || equals == std::string::npos) continue;
    set[given.substr(0, equals)] = with_addresses(given.substr(equals + 1), first);
  }
  return set;
}

Variables of_srun(const Line& line, uint32_t rank, const std::string& first) {
  CHECK(line.option("--nodes") == std::to_string(kNodes));
  CHECK(line.option("--ntasks-per-node") == std::to_string(kOnNode));
  return {{"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_LOCALID", std::to_string(rank % kOnNode)},
          {"SLURM_NODEID", std::to_string(rank / kOnNode)},
          {"SLURM_NTASKS", std::to_string(kRanks)},
          {"SLURM_STEP_NUM_TASKS", std::to_string(kRanks)},
          {"SLURM_STEP_NUM_NODES", std::to_string(kNodes)},
          {"SLURM_STEP_NODELIST", first + ",node1"},
          {"SLURM_JOB_ID", std::to_string(::getppid())},
          {"SLURM_STEP_ID", "0"}};
}

Variables of_torchrun(const Line& line, uint32_t rank, const std::string& first) {
  CHECK(line.option("--nnodes") == std::to_string(kNodes));
  CHECK(line.option("--nproc-per-node") == std::to_string(kOnNode));
  const std::string endpoint = with_addresses(line.option("--rdzv-endpoint"), first);
  const size_t colon = endpoint.rfind(':');
  REQUIRE(colon != std::string::npos);
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(kRanks)},
          {"LOCAL_RANK", std::to_string(rank % kOnNode)},
          {"LOCAL_WORLD_SIZE", std::to_string(kOnNode)},
          {"GROUP_RANK", std::to_string(rank / kOnNode)},
          {"MASTER_ADDR", endpoint.substr(0, colon)},
          {"MASTER_PORT", endpoint.substr(colon + 1)},
          {"TORCHELASTIC_RUN_ID", "none"}};
}

using Launcher = Variables (*)(const Line&, uint32_t rank, const std::string& first);

/// Becomes the command, as a rank of the job. 127: it cannot.
int become(const Line& line, const Variables& set, const std::string& output) {
  for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  // Of this test alone: where there is one network, it may run twice at the same time.
  ::setenv("MSCCLC_SECRET", fmt::format("{:032x}", ::getppid()).c_str(), 1);
  const std::string tools = std::filesystem::absolute("tools").string();
  ::setenv("PATH", (tools + ":" + std::getenv("PATH")).c_str(), 1);
  const int file = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) return 127;
  ::execl("/bin/sh", "sh", "-c", line.command.c_str(), nullptr);
  return 127;
}

void check_line(const std::string& name, Launcher launcher) {
  const Line line = line_of(name);
  FarNetwork network;
  const std::string why = network.make(kNodes);
  if (!why.empty()) std::cout << name << " on one machine: " << why << "\n";
  const std::string first = why.empty() ? FarNetwork::address(0) : "127.0.0.1";
  std::vector<std::string> outputs;
  std::vector<Variables> variables;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    outputs.push_back(fmt::format("{}/{}.{}", std::getenv("TEST_TMPDIR"), name, rank));
    variables.push_back(launcher(line, rank, first));
  }
  testing::Processes processes;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    processes.start([&] {
      if (why.empty()) network.enter(rank / kOnNode);
      return become(line, variables[rank], outputs[rank]);
    });
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const int code = processes.wait(rank, std::chrono::minutes(10));
    INFO(name << ", rank " << rank << ": " << read_file(outputs[rank]).value_or(""));
    CHECK(code == 0);
  }
  CHECK_THAT(read_file(outputs[0]).value_or(""), Catch::Contains("# Out of bounds values : 0 OK"));
}

TEST_CASE("the document's mpirun line") { check_line("mpirun", of_mpirun); }
TEST_CASE("the document's srun line") { check_line("srun", of_srun); }
TEST_CASE("the document's torchrun line") { check_line("torchrun", of_torchrun); }

}  // namespace
}  // namespace mscclc
