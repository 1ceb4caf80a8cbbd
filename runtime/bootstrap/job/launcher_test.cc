// What launchers set, and what is made of it.
#include "runtime/bootstrap/job/launcher.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "runtime/bootstrap/job/launch_values.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::read;
using testing::Values;
using testing::with;

constexpr const char* kId = "mscclc1/10.0.0.1/24123/000102030405060708090a0b0c0d0eff";

const Values kTorchrun = {{"RANK", "3"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node7"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "run"}};
const Values kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "prterun-node-123@1"}};
const Values kSlurm = {{"SLURM_PROCID", "5"},
                       {"SLURM_NTASKS", "16"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_STEP_NUM_NODES", "4"},
                       {"SLURM_JOB_ID", "4711"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_STEP_NODELIST", "node[07-10]"}};

std::string error(const Values& values) {
  Diagnostics diagnostics;
  CHECK_FALSE(read_launch(Environment(values), "", diagnostics));
  REQUIRE(diagnostics.has_errors());
  return diagnostics.all().front().code + ": " + diagnostics.all().front().message;
}

TEST_CASE("torchrun") {
  const LaunchedRank launch = read(kTorchrun);
  CHECK(launch.launcher == "torchrun");
  CHECK(launch.rank == 3);
  CHECK(launch.size == 8);
  CHECK(launch.local_rank == 1u);
  CHECK(launch.where.host == "node7");
  CHECK_FALSE(launch.one_machine);
  CHECK(launch.timeout == 600s);
  CHECK(launch.silence == 30s);
  CHECK(read(with(kTorchrun, {{"MSCCLC_SILENCE", "5"}})).silence == 5s);
  // Not torchrun's own port; wrapped round after the last one.
  CHECK(launch.where.ports == std::vector<uint16_t>{30500, 31500, 32500, 33500});
  CHECK(read(with(kTorchrun, {{"MASTER_PORT", "64000"}})).where.ports ==
        std::vector<uint16_t>{65000, 1488, 2488, 3488});
}

TEST_CASE("all ranks on one machine meet at a unix socket, at no port") {
  const LaunchedRank torchrun = read(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}}));
  CHECK(torchrun.one_machine);
  CHECK(torchrun.where.local);
  CHECK(torchrun.where.host == "");
  CHECK(torchrun.where.ports.empty());
  const LaunchedRank mpi = read(kOpenMpi);
  CHECK(mpi.launcher == "Open MPI");
  CHECK(mpi.where.local);
  CHECK(mpi.where.host == "");
  CHECK(read(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}})).where.host == "");
  const LaunchedRank slurm = read(kSlurm);  // several machines: ports that are worked out
  CHECK(slurm.where.local);                 // for ranks on rank 0's
  CHECK(slurm.where.ports.size() == 4);
  for (const uint16_t port : slurm.where.ports) CHECK((port >= 20000 && port < 32000));
}

TEST_CASE("Open MPI does not say where rank 0 is") {
  const Values two = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(error(two) ==
        "no-rendezvous: Open MPI says that this is rank 1 of 4, but nothing says where the ranks "
        "meet");
  const LaunchedRank launch =
      read(with(two, {{"MASTER_ADDR", "10.0.0.5"}, {"MASTER_PORT", "6000"}}));
  CHECK(launch.launcher == "Open MPI");
  CHECK(launch.where.host == "10.0.0.5");
  CHECK(error(with(two, {{"MASTER_ADDR", "10.0.0.5"}})) ==
        "no-rendezvous: Open MPI says that this is rank 1 of 4, but nothing says at which port of "
        "MASTER_ADDR the ranks meet");
  CHECK(read(with(two, {{"MSCCLC_ID", kId}})).by_id);
}

TEST_CASE("Slurm") {
  const LaunchedRank launch = read(kSlurm);
  CHECK(launch.launcher == "Slurm");
  CHECK(launch.rank == 5);
  CHECK(launch.size == 16);
  CHECK(launch.where.host == "node07");
  CHECK(read(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "8"}})).size == 8);
  const LaunchedRank named = read(with(kSlurm, {{"MASTER_ADDR", "10.0.0.5"}}));
  CHECK(named.where.host == "10.0.0.5");
  CHECK(named.where.ports == launch.where.ports);
  Values nowhere = kSlurm;
  nowhere.erase("SLURM_STEP_NODELIST");
  CHECK(error(nowhere).starts_with("no-rendezvous: "));
}

TEST_CASE("hosts of Slurm's lists") {
  CHECK(first_host("node1") == "node1");
  CHECK(first_host("node1,node2") == "node1");
  CHECK(first_host("node[001-004,007],gpu5") == "node001");
  CHECK(first_host("node[3,5]") == "node3");
  CHECK(first_host("rack[2-3]node[10-12]-ib") == "rack2node10-ib");
  CHECK(first_host("") == "");
  CHECK(first_host("node[1-4") == "node1");
  CHECK(first_host("[") == "");
}

TEST_CASE("a unique id says all") {
  const LaunchedRank launch = read(with(kTorchrun, {{"MSCCLC_ID", kId}}));
  CHECK(launch.by_id);
  CHECK(launch.where.host == "10.0.0.1");
  CHECK(launch.where.ports == std::vector<uint16_t>{24123});
  CHECK(launch.where.secret[15] == 0xff);
}

TEST_CASE("what started the ranks: the user, then torchrun, then mpirun, then srun") {
  Values all = with(kSlurm, kOpenMpi);
  CHECK(read(all).launcher == "Open MPI");
  all = with(all, kTorchrun);
  CHECK(read(all).launcher == "torchrun");
  all = with(all, {{"MSCCLC_RANK", "1"}, {"MSCCLC_WORLD_SIZE", "2"}});
  CHECK(read(all).launcher == "MSCCLC_RANK");
  CHECK_FALSE(read(all).local_rank);
}

TEST_CASE("what is missing or wrong") {
  CHECK(error({}) == "no-launcher: nothing says which rank this process is");
  CHECK(error({{"RANK", "1"}}) == "no-launcher: nothing says which rank this process is");
  CHECK(error({{"MSCCLC_RANK", "1"}}) ==
        "bad-variable: MSCCLC_RANK is set, but MSCCLC_WORLD_SIZE is not");
  CHECK(error(with(kTorchrun, {{"MSCCLC_WORLD_SIZE", "1"}})) ==
        "bad-variable: MSCCLC_WORLD_SIZE is set, but MSCCLC_RANK is not");
  CHECK(error(with(kTorchrun, {{"RANK", "8"}})) ==
        "bad-variable: RANK is 8, but WORLD_SIZE is 8: ranks are 0 to 7");
  CHECK(error({{"MSCCLC_RANK", "0"}, {"MSCCLC_WORLD_SIZE", "2"}}).starts_with("no-rendezvous: "));
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT", "MSCCLC_PORT"}) {
    CHECK(error(with(kTorchrun, {{name, "x"}}))
              .starts_with(fmt::format("bad-variable: {} is 'x'", name)));
  }
  for (const char* name : {"MSCCLC_TIMEOUT", "MSCCLC_SILENCE"}) {  // make_bootstrap() says it
    CHECK(read(with(kTorchrun, {{name, "x"}})).wrong.has_errors());
  }
  CHECK(error(with(kTorchrun, {{"MSCCLC_ID", "x"}})).starts_with("bad-variable: MSCCLC_ID: "));
}

TEST_CASE("secrets: the same for all ranks of a job, others for other jobs") {
  const auto secret = [](const Values& values, const std::string& group = "") {
    return read(values, group).where.secret;
  };
  const Secret one = secret(kTorchrun);
  CHECK(one == secret(with(kTorchrun, {{"RANK", "7"}, {"LOCAL_RANK", "0"}})));
  // Rank 0 may call its own machine by another name.
  CHECK(one == secret(with(kTorchrun, {{"MASTER_ADDR", "localhost"}})));
  CHECK(one != secret(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "other"}})));
  CHECK(one != secret(with(kTorchrun, {{"MASTER_PORT", "29501"}})));
  CHECK(one != secret(with(kTorchrun, {{"MSCCLC_SECRET", "hush"}})));
  CHECK(one != secret(kTorchrun, "tensor"));
  CHECK(secret(kSlurm) != secret(with(kSlurm, {{"SLURM_STEP_ID", "1"}})));
  CHECK(secret(kOpenMpi) != secret(with(kOpenMpi, {{"PMIX_NAMESPACE", "x"}})));
  CHECK(secret(with(kTorchrun, {{"MSCCLC_ID", kId}})) !=
        secret(with(kTorchrun, {{"MSCCLC_ID", kId}}), "tensor"));
}

TEST_CASE("rank 0 warns of a secret that can be guessed across machines") {
  const auto warnings = [](const Values& values) {
    Diagnostics diagnostics;
    REQUIRE(read_launch(Environment(values), "", diagnostics));
    std::string codes;
    for (const Diagnostic& d : diagnostics.all()) codes += d.code + ".";
    return codes;
  };
  const Values first = with(kTorchrun, {{"RANK", "0"}});
  CHECK(warnings(first) == "guessable-secret.");
  CHECK(warnings(kTorchrun) == "");
  CHECK(warnings(with(first, {{"MSCCLC_SECRET", "hush"}})) == "");
  CHECK(warnings(with(first, {{"MSCCLC_ID", kId}})) == "");
  CHECK(warnings(with(first, {{"LOCAL_WORLD_SIZE", "8"}})) == "");
}

TEST_CASE("how to host a job") {
  Diagnostics diagnostics;
  const auto plain = read_host_options(Environment(Values{}), diagnostics);
  REQUIRE(plain);
  CHECK(plain->timeout == 600s);
  CHECK(plain->silence == 30s);
  CHECK(plain->interface.empty());
  const auto host = read_host_options(
      Environment(Values{{"MSCCLC_SOCKET_IFNAME", "ib,eth"}, {"MSCCLC_TIMEOUT", "5"}}),
      diagnostics);
  REQUIRE(host);
  CHECK(host->timeout == 5s);
  CHECK(host->interface == "ib,eth");
  CHECK_FALSE(read_host_options(Environment(Values{{"MSCCLC_TIMEOUT", "x"}}), diagnostics));
}

TEST_CASE("a port of the user's") {
  CHECK(read(with(kTorchrun, {{"MSCCLC_PORT", "7000"}})).where.ports ==
        std::vector<uint16_t>{7000});
}

}  // namespace
}  // namespace mscclc
