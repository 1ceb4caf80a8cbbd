// What launchers set, and what is made of it.
#include "runtime/bootstrap/job/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/api/job.h"
#include "runtime/base/deadline.h"
#include "runtime/base/fd.h"
#include "runtime/base/process/proc.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/testing/far_address.h"
#include "runtime/testing/no_threads.h"
#include "runtime/testing/processes.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using Values = Environment::Values;

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

Values with(Values values, const Values& others) {
  for (const auto& [name, value] : others) values[name] = value;
  return values;
}

LaunchedRank read(const Values& values, const std::string& group = "") {
  Diagnostics diagnostics;
  const auto launch = read_launch(Environment(values), group, diagnostics);
  INFO((diagnostics.all().empty() ? "" : diagnostics.all().front().message));
  REQUIRE(launch);
  CHECK(diagnostics.all().empty());
  return *launch;
}

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

TEST_CASE("who started the ranks: the user, then torchrun, then mpirun, then srun") {
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
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT",
                           "MSCCLC_TIMEOUT", "MSCCLC_SILENCE", "MSCCLC_PORT"}) {
    CHECK(error(with(kTorchrun, {{name, "x"}}))
              .starts_with(fmt::format("bad-variable: {} is 'x'", name)));
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

/// Values of all ranks of a job started like this; a job of its own in each run of the test.
std::vector<Values> ranks_of(const Values& job, const std::string& rank_name, uint32_t size) {
  std::vector<Values> out;
  for (uint32_t r = 0; r < size; ++r) out.push_back(with(job, {{rank_name, std::to_string(r)}}));
  return out;
}

/// Starts a process for each rank; all must meet and exchange their ranks.
void check_meeting(const std::vector<Values>& ranks) {
  testing::Processes processes;
  for (const Values& values : ranks) {
    processes.start([&values] {
      Diagnostics diagnostics;
      const auto launch = read_launch(Environment(values), "", diagnostics);
      const auto bootstrap = launch ? make_bootstrap(*launch, diagnostics) : nullptr;
      if (!bootstrap) {
        fmt::print(stderr, "{}\n", diagnostics.all().front().message);
        return 1;
      }
      std::vector<std::vector<uint8_t>> all;
      const std::vector<uint8_t> own = {static_cast<uint8_t>(bootstrap->rank())};
      if (!bootstrap->all_gather(own, "ranks", all, diagnostics)) return 2;
      for (uint8_t r = 0; r < all.size(); ++r) {
        if (all[r] != std::vector<uint8_t>{r}) return 3;
      }
      return 0;
    });
  }
  for (size_t r = 0; r < ranks.size(); ++r) CHECK(processes.wait(r, 30s) == 0);
}

TEST_CASE("ranks meet as each launcher would start them") {
  const std::string job = std::to_string(::getpid());
  const Values timeout = {{"MSCCLC_TIMEOUT", "20"}};
  SECTION("torchrun, one machine") {
    check_meeting(ranks_of(with(timeout, {{"WORLD_SIZE", "4"},
                                          {"LOCAL_WORLD_SIZE", "4"},
                                          {"MASTER_ADDR", "unknown.invalid"},
                                          {"MASTER_PORT", "21000"},
                                          {"TORCHELASTIC_RUN_ID", job}}),
                           "RANK", 4));
  }
  SECTION("torchrun, as if on several machines") {
    check_meeting(ranks_of(with(timeout, {{"WORLD_SIZE", "4"},
                                          {"LOCAL_WORLD_SIZE", "2"},
                                          {"MASTER_ADDR", "127.0.0.2"},
                                          {"MASTER_PORT", "22000"},
                                          {"TORCHELASTIC_RUN_ID", job}}),
                           "RANK", 4));
  }
  SECTION("Open MPI") {
    check_meeting(ranks_of(with(timeout, {{"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                          {"PMIX_NAMESPACE", job}}),
                           "OMPI_COMM_WORLD_RANK", 2));
  }
  SECTION("Slurm") {
    check_meeting(ranks_of(
        with(timeout,
             {{"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", job}}),
        "SLURM_PROCID", 2));
  }
  SECTION("by hand, with an id that nobody serves yet") {
    Diagnostics diagnostics;
    const auto id = [&] {
      return host_job({.one_machine = true, .timeout = 1s}, diagnostics)->id;
    }();
    check_meeting(ranks_of(with(timeout, {{"MSCCLC_WORLD_SIZE", "3"}, {"MSCCLC_ID", id.text()}}),
                           "MSCCLC_RANK", 3));
  }
}

/// How a rank of a job of two meets whose rank 0 cannot serve it: all hear `why`.
int hear(const Values& values, const std::string& code, const std::string& why) {
  Diagnostics diagnostics;
  const auto launch = read_launch(Environment(values), "", diagnostics);
  std::optional<testing::NoThreads> none;
  rlimit limits{};
  if (launch && launch->rank == 0 && code == "no-thread") none.emplace(0);
  if (launch && launch->rank == 0 && code == "too-few-descriptors") {
    // As many as a hub at two places needs, and one for all who come.
    const Fd next = make_waker();
    ::getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = static_cast<rlim_t>(next.get()) + 6;
    ::setrlimit(RLIMIT_NOFILE, &limits);
  }
  if (!launch || make_bootstrap(*launch, diagnostics)) return 1;
  const Diagnostic& error = diagnostics.all().back();  // warnings come before it
  const bool told = error.message.find(why) == 0 &&
                    error.code == (launch->rank == 0 ? code : "bootstrap-refused");
  if (!told) fmt::print(stderr, "{}: {}\n", error.code, error.message);
  return told ? 0 : 2;
}

TEST_CASE("rank 0 cannot serve: the others hear why") {
  struct Case {
    std::string code, why;
    const char *here, *port;  ///< ranks on this machine
  };
  const std::string no_thread = "the system gives no thread for the bootstrap's hub";
  const std::string too_few = "the bootstrap of 2 ranks needs 66 file descriptors";
  const Case cases[] = {{"no-thread", no_thread, "2", "23000"},
                        {"no-thread", no_thread, "1", "23001"},
                        {"too-few-descriptors", too_few, "2", "23002"},
                        {"too-few-descriptors", too_few, "1", "23003"}};
  const testing::Signal look;
  testing::Processes processes;
  // Rank 0 tells for five seconds, which may be few on a busy machine: the others look already.
  for (const char* rank : {"1", "0"}) {
    for (const Case& c : cases) {
      processes.start([&, rank] {
        if (rank[0] == '1' && !look.give()) return 3;
        return hear({{"MSCCLC_TIMEOUT", "600"},
                     {"RANK", rank},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_WORLD_SIZE", c.here},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", c.port},
                     {"TORCHELASTIC_RUN_ID", "mute" + std::to_string(::getppid())}},
                    c.code, c.why);
      });
    }
    for (size_t i = 0; rank[0] == '1' && i < std::size(cases); ++i) REQUIRE(look.take());
  }
  for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 700s) == 0);
}

TEST_CASE("a rank that nobody listens for may have another secret") {
  Values job = {{"MSCCLC_TIMEOUT", "1"},
                {"RANK", "1"},
                {"WORLD_SIZE", "2"},
                {"LOCAL_WORLD_SIZE", "2"},
                {"TORCHELASTIC_RUN_ID", "alone" + std::to_string(::getpid())}};
  Diagnostics diagnostics;
  const auto launch = read_launch(Environment(job), "", diagnostics);
  REQUIRE(launch);
  CHECK_FALSE(make_bootstrap(*launch, diagnostics));
  CHECK(diagnostics.all().front().message ==
        "rank 1 cannot reach the bootstrap at a unix socket of this machine within 1 s: nothing is "
        "listening there, or this rank's MSCCLC_SECRET, MSCCLC_ID or what its launcher says of the "
        "job is not that of rank 0");
}

TEST_CASE("an id with an address of another machine is an error at once, at every rank") {
  const std::string far(testing::kFarAddress);
  const auto job =
      ranks_of({{"MSCCLC_TIMEOUT", "600"},
                {"MSCCLC_WORLD_SIZE", "3"},
                {"MSCCLC_ID", fmt::format("mscclc1/{}/24123/{:032x}", far, ::getpid())}},
               "MSCCLC_RANK", 3);
  testing::Processes processes;
  for (const Values& values : job) {
    processes.start([&] {
      const testing::FarAddress elsewhere;
      Diagnostics diagnostics;
      const auto launch = read_launch(Environment(values), "", diagnostics);
      if (!launch || make_bootstrap(*launch, diagnostics)) return 1;
      const Diagnostic& error = diagnostics.all().front();
      const bool named =
          error.message ==
          "rank 0 should serve MSCCLC_ID, but " + far +
              " is not an address of its machine, and no process serves the id there";
      const bool coded = error.code == (launch->rank == 0 ? "foreign-id" : "bootstrap-refused");
      if (!named || !coded) fmt::print(stderr, "{}: {}\n", error.code, error.message);
      return named && coded ? 0 : 2;
    });
  }
  for (size_t r = 0; r < job.size(); ++r) CHECK(processes.wait(r, 60s) == 0);
}

/// The exit code of a process that was refused since another one is the same rank: 0 if the error
/// says so, and begins and ends like this.
int names_twin(const Diagnostics& diagnostics, std::string_view begin,
               std::string_view end = " says that it is the same rank") {
  const Diagnostic& error = diagnostics.all().back();
  const bool named = error.code == "bootstrap-refused" && error.message.starts_with(begin) &&
                     error.message.ends_with(end);
  if (!named) fmt::print(stderr, "{}: {}\n", error.code, error.message);
  return named ? 0 : 2;
}

TEST_CASE("two processes that both are rank 0 end the job at once, for all") {
  const Values job = {{"MSCCLC_TIMEOUT", "600"},
                      {"OMPI_COMM_WORLD_SIZE", "3"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                      {"PMIX_NAMESPACE", "twins" + std::to_string(::getpid())}};
  testing::Processes processes;
  for (const char* rank : {"0", "0", "2"}) {
    processes.start([&job, rank] {
      Diagnostics diagnostics;
      const auto launch =
          read_launch(Environment(with(job, {{"OMPI_COMM_WORLD_RANK", rank}})), "", diagnostics);
      if (!launch || make_bootstrap(*launch, diagnostics)) return 1;
      return names_twin(diagnostics, "rank 0 (process ");
    });
  }
  for (size_t r = 0; r < 3; ++r) CHECK(processes.wait(r, 60s) == 0);
}

TEST_CASE("who comes when all have come hears it at once; who has come may come again") {
  const Values job = {{"MSCCLC_TIMEOUT", "600"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "late" + std::to_string(::getpid())}};
  const auto launch_of = [&job](const char* rank) {
    Diagnostics ignored;
    return *read_launch(Environment(with(job, {{"OMPI_COMM_WORLD_RANK", rank}})), "", ignored);
  };
  const testing::Signal complete, told;
  testing::Processes processes;
  for (const char* rank : {"0", "1"}) {
    processes.start([&, rank] {
      Diagnostics diagnostics;
      const auto first = make_bootstrap(launch_of(rank), diagnostics);
      // Of the same name, while the first is there.
      const auto second = make_bootstrap(launch_of(rank), diagnostics);
      if (!first || !second) return 1;
      if (rank[0] == '0' && (!complete.give() || !told.take())) return 3;
      return first->barrier("end", diagnostics) && second->barrier("end", diagnostics) ? 0 : 2;
    });
  }
  REQUIRE(complete.take());
  processes.start([&] {
    Diagnostics diagnostics;
    const auto late = make_bootstrap(launch_of("1"), diagnostics);
    if (!told.give() || late) return 1;
    return names_twin(diagnostics, "all 2 ranks of the job have joined already: rank 1 (process ",
                      " on this machine says that it is the same rank");
  });
  for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 120s) == 0);
}

TEST_CASE("who was there before all had come, and comes then, ends the job: it may be its rank") {
  const Values job = {{"MSCCLC_TIMEOUT", "600"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "mixed" + std::to_string(::getpid())}};
  const auto meet_as = [&job](const char* rank, Diagnostics& diagnostics) {
    const auto launch =
        read_launch(Environment(with(job, {{"OMPI_COMM_WORLD_RANK", rank}})), "", diagnostics);
    return make_bootstrap(*launch, diagnostics);
  };
  for (const char* late : {"0", "1"}) {
    const testing::Signal complete, told;
    testing::Processes processes;
    processes.start([&] {
      if (!complete.take()) return 3;
      Diagnostics diagnostics;
      if (meet_as(late, diagnostics)) return 1;
      if (!told.give() || !told.give()) return 3;
      return names_twin(diagnostics, "all 2 ranks of the job have joined already: rank ");
    });
    // The system counts starts in hundredths of a second.
    for (const uint64_t begun = ticks_now(); ticks_now() <= begun + 1;) ::usleep(1000);
    for (const char* rank : {"0", "1"}) {
      processes.start([&, rank] {
        Diagnostics diagnostics;
        const auto bootstrap = meet_as(rank, diagnostics);
        if (!bootstrap) return 1;
        if (rank[0] == '0' && !complete.give()) return 3;
        if (!told.take() || bootstrap->barrier("step", diagnostics)) return 2;
        return diagnostics.all().back().code == "bootstrap-refused" ? 0 : 4;
      });
    }
    for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 120s) == 0);
  }
}

/// Listens at a port and says the same to everyone, or holds it for an outgoing connection.
class PortHolder {
 public:
  explicit PortHolder(const char* how) {
    if (std::string_view(how) == "connects") {
      other_ = listen_on(Address::loopback(0));
      held_ = open_stream(AF_INET);
      const Address any = Address::loopback(0), to = Address::loopback(local_port(other_));
      REQUIRE(::bind(held_.get(), any.get(), any.length()) == 0);
      ::connect(held_.get(), to.get(), to.length());
      REQUIRE(await(held_.get(), POLLOUT, std::chrono::steady_clock::now() + 10s));
      return;
    }
    held_ = listen_on(Address::loopback(0));
    if (std::string_view(how) == "is silent") return;
    thread_ = std::thread([this] {
      while (!stop_) {
        pollfd polled{held_.get(), POLLIN, 0};
        if (::poll(&polled, 1, 5) != 1) continue;
        const Fd client(::accept4(held_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ::send(client.get(), "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
      }
    });
  }
  ~PortHolder() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return local_port(held_); }

 private:
  Fd other_, held_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_CASE("the port of an id that is taken is an error at once, of one text at every rank") {
  struct Case {
    const char *how, *why;
  };
  for (const Case& c : {Case{"connects", "Connection refused (111)"},
                        Case{"answers", "what answers there is not a bootstrap: it says "},
                        Case{"is silent", "no answer"}}) {
    INFO(c.how);
    uint16_t port = 0;
    testing::Processes processes;
    const testing::Signal done;
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    processes.start([&] {
      const PortHolder holder(c.how);
      port = holder.port();
      return ::write(pipe[1], &port, sizeof port) == sizeof port && done.take() ? 0 : 1;
    });
    REQUIRE(::read(pipe[0], &port, sizeof port) == sizeof port);
    const std::string text = fmt::format(
        "rank 0 cannot serve MSCCLC_ID: the bootstrap cannot listen at 127.0.0.1:{}: Address "
        "already "
        "in use (98), and what has the port is no hub of this job (at 127.0.0.1:{}: {}",
        port, port, c.why);
    for (const char* rank : {"2", "1", "0"}) {
      processes.start([&, rank] {
        Diagnostics diagnostics;
        auto launch = read_launch(
            Environment(Values{{"MSCCLC_TIMEOUT", "600"},
                               {"MSCCLC_SILENCE", "2"},
                               {"MSCCLC_WORLD_SIZE", "3"},
                               {"MSCCLC_RANK", rank},
                               {"MSCCLC_ID", fmt::format("mscclc1/127.0.0.1/{}/{:032x}", port,
                                                         ::getppid() + 100'000 * c.how[0])}}),
            "", diagnostics);
        if (!launch) return 4;
        if (rank[0] == '2') launch->where.local = false;  // as on another machine
        if (make_bootstrap(*launch, diagnostics)) return 1;
        const Diagnostic& error = diagnostics.all().back();
        const bool named = error.message.find(text) == 0 &&
                           error.code == (rank[0] == '0' ? "cannot-listen" : "bootstrap-refused");
        if (!named) fmt::print(stderr, "{}: {}\n", error.code, error.message);
        return named ? 0 : 2;
      });
    }
    for (size_t r = 1; r <= 3; ++r) CHECK(processes.wait(r, 60s) == 0);
    REQUIRE(done.give());
    CHECK(processes.wait(0, 60s) == 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

/// As torchrun would start rank 0 of two on two machines, the other of which is 127.0.0.77; no unix
/// sockets, as on two machines.
LaunchedRank rank_0_of_two(const std::string& job, uint16_t port) {
  LaunchedRank launch = read({{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_WORLD_SIZE", "1"},
                              {"MASTER_ADDR", std::string(testing::kFarAddress)},
                              {"MASTER_PORT", std::to_string(port)},
                              {"MSCCLC_SECRET", job},
                              {"MSCCLC_TIMEOUT", "600"}});
  launch.where.local = false;
  return launch;
}

TEST_CASE("two machines that both have a rank 0 hear it at once") {
  const LaunchedRank launch = rank_0_of_two("twins" + std::to_string(::getpid()), 23000);
  const auto be = [&launch] {
    Diagnostics diagnostics;
    if (make_bootstrap(launch, diagnostics)) return 1;
    return names_twin(diagnostics, "rank 0 (process ");
  };
  testing::Processes processes;
  processes.start(be);  // on the machine where rank 0 is looked for
  processes.start([&] {
    const testing::FarAddress elsewhere;
    // The other hub must listen: without it there would be nothing to find.
    for (bool listens = false; !listens;) {
      for (const uint16_t port : launch.where.ports) {
        const Fd socket = begin_connect(Address::loopback(port));
        listens |= socket.valid() &&
                   await(socket.get(), POLLOUT, std::chrono::steady_clock::now() + 10s) &&
                   connect_error(socket) == 0;
      }
    }
    return be();
  });
  for (size_t i = 0; i < 2; ++i) CHECK(processes.wait(i, 120s) == 0);
}

TEST_CASE("an id may be served by another process than rank 0's") {
  Diagnostics diagnostics;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  testing::Processes server;
  server.start([&] {
    auto job = host_job({.one_machine = true, .timeout = 20s}, diagnostics);
    const std::string text = job ? job->id.text() : "";
    if (::write(pipe[1], text.data(), text.size()) < 0) return 1;
    ::pause();
    return 0;
  });
  char text[UniqueId::kMostText] = "";
  REQUIRE(::read(pipe[0], text, sizeof text) > 0);
  check_meeting(
      ranks_of({{"MSCCLC_TIMEOUT", "20"}, {"MSCCLC_WORLD_SIZE", "3"}, {"MSCCLC_ID", text}},
               "MSCCLC_RANK", 3));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("two jobs that worked out the same ports do not meet each other") {
  const std::string port = "23000";
  std::vector<Values> ranks;
  for (const char* run : {"a", "b"}) {
    const auto job = ranks_of({{"MSCCLC_TIMEOUT", "20"},
                               {"WORLD_SIZE", "2"},
                               {"LOCAL_WORLD_SIZE", "1"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", port},
                               {"TORCHELASTIC_RUN_ID", run}},
                              "RANK", 2);
    ranks.insert(ranks.end(), job.begin(), job.end());
  }
  check_meeting(ranks);
}

}  // namespace
}  // namespace mscclc
