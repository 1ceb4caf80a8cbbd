// Ranks that launchers have started: how they meet, and what they hear where they cannot.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "runtime/api/job.h"
#include "runtime/bootstrap/job/launch_values.h"
#include "runtime/bootstrap/job/launcher.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fd.h"
#include "runtime/support/process/proc.h"
#include "tests/helpers/runtime/far_address.h"
#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/no_threads.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc {
namespace {

using namespace std::chrono_literals;
using testing::read;
using testing::Values;
using testing::with;

/// MASTER_PORT, which hardly any other run of this test has at the same time; ranks take ports up
/// to 4000 above.
int master_port() { return 20'000 + ::getpid() % 8000; }

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
  for (size_t r = 0; r < ranks.size(); ++r) CHECK(processes.wait(r, 400s) == 0);
}

TEST_CASE("ranks meet as each launcher would start them") {
  const std::string job = std::to_string(::getpid());
  const Values timeout = {{"MSCCLC_TIMEOUT", "300"}};
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
                                          {"MASTER_PORT", std::to_string(master_port())},
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
  SECTION("by hand, with an id that is not served yet") {
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
    // As many as a hub at two places needs, and one for all that come.
    const Fd next = make_waker();
    ::getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = static_cast<rlim_t>(next.get()) + 6;
    ::setrlimit(RLIMIT_NOFILE, &limits);
  }
  if (!launch || make_bootstrap(*launch, diagnostics)) return 1;
  const Diagnostic& error = diagnostics.all().back();  // warnings come before it
  const bool expected = error.message.find(why) == 0 &&
                        error.code == (launch->rank == 0 ? code : "bootstrap-refused");
  if (!expected) fmt::print(stderr, "{}: {}\n", error.code, error.message);
  return expected ? 0 : 2;
}

TEST_CASE("rank 0 cannot serve: the others hear why") {
  struct Case {
    std::string code, why;
    const char* here;  ///< ranks on this machine
    int port;          ///< above the first
  };
  const int first = master_port();  // of this process
  const std::string no_thread = "the system gives no thread for the bootstrap's hub";
  const std::string too_few = "the bootstrap of 2 ranks needs 66 file descriptors";
  const Case cases[] = {{"no-thread", no_thread, "2", 0},
                        {"no-thread", no_thread, "1", 1},
                        {"too-few-descriptors", too_few, "2", 2},
                        {"too-few-descriptors", too_few, "1", 3}};
  const testing::Signal look;
  testing::Processes processes;
  // Rank 0 announces it for five seconds, which may be few on a busy machine: the others look
  // already.
  for (const char* rank : {"1", "0"}) {
    for (const Case& c : cases) {
      processes.start([&, rank] {
        if (rank[0] == '1' && !look.give()) return 3;
        return hear({{"MSCCLC_TIMEOUT", "600"},
                     {"RANK", rank},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_WORLD_SIZE", c.here},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", std::to_string(first + c.port)},
                     {"TORCHELASTIC_RUN_ID", "mute" + std::to_string(::getppid())}},
                    c.code, c.why);
      });
    }
    for (size_t i = 0; rank[0] == '1' && i < std::size(cases); ++i) REQUIRE(look.take());
  }
  for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 700s) == 0);
}

TEST_CASE("a rank for which nothing listens may have another secret") {
  const auto is_right = [](int factor) {  // it is to have looked by then
    const Values job = {{"MSCCLC_TIMEOUT", std::to_string(factor)},
                        {"RANK", "1"},
                        {"WORLD_SIZE", "2"},
                        {"LOCAL_WORLD_SIZE", "2"},
                        {"TORCHELASTIC_RUN_ID", "alone" + std::to_string(::getpid())}};
    Diagnostics diagnostics;
    const auto launch = read_launch(Environment(job), "", diagnostics);
    REQUIRE(launch);
    CHECK_FALSE(make_bootstrap(*launch, diagnostics));
    return diagnostics.all().front().message ==
           fmt::format(
               "rank 1 cannot reach the bootstrap at a unix socket of this machine within {} s: "
               "nothing is listening there, or this rank's MSCCLC_SECRET, MSCCLC_ID or what its "
               "launcher says of the job is not that of rank 0",
               factor);
  };
  CHECK(testing::right_in_longer_times(is_right));
}

TEST_CASE("an id with an address of another machine is an error at once, at every rank") {
  const std::string far(testing::kFarAddress);
  const auto job =
      ranks_of({{"MSCCLC_TIMEOUT", "600"},
                {"MSCCLC_WORLD_SIZE", "3"},
                {"MSCCLC_ID", fmt::format("mscclc1/{}/24123/{:032x}", far, ::getpid())}},
               "MSCCLC_RANK", 3);
  const testing::Signal look;
  testing::Processes processes;
  // Rank 0, the last, announces it for some seconds: the others look already.
  for (const uint32_t r : {1u, 2u, 0u}) {
    processes.start([&, r] {
      const testing::FarAddress elsewhere;
      Diagnostics diagnostics;
      const auto launch = read_launch(Environment(job[r]), "", diagnostics);
      if (r != 0 && !look.give()) return 3;
      if (r == 0 && (!look.take() || !look.take())) return 3;
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
  for (size_t r = 0; r < job.size(); ++r) CHECK(processes.wait(r, 300s) == 0);
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
  const testing::Signal look;
  testing::Processes processes;
  // The second rank 0 announces it for some seconds: the others look already.
  for (const char* rank : {"2", "0", "0"}) {
    const bool is_last = processes.count() == 2;
    processes.start([&, rank, is_last] {
      Diagnostics diagnostics;
      if (is_last ? !look.take() || !look.take() : !look.give()) return 3;
      const auto launch =
          read_launch(Environment(with(job, {{"OMPI_COMM_WORLD_RANK", rank}})), "", diagnostics);
      if (!launch || make_bootstrap(*launch, diagnostics)) return 1;
      return names_twin(diagnostics, "rank 0 (process ");
    });
  }
  for (size_t r = 0; r < 3; ++r) CHECK(processes.wait(r, 300s) == 0);
}

TEST_CASE(
    "a process that comes when all have come hears it at once; one that has come may come again") {
  const Values job = {{"MSCCLC_TIMEOUT", "600"},
                      {"OMPI_COMM_WORLD_SIZE", "2"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                      {"PMIX_NAMESPACE", "late" + std::to_string(::getpid())}};
  const auto launch_of = [&job](const char* rank) {
    Diagnostics ignored;
    return *read_launch(Environment(with(job, {{"OMPI_COMM_WORLD_RANK", rank}})), "", ignored);
  };
  const testing::Signal complete, refused;
  testing::Processes processes;
  for (const char* rank : {"0", "1"}) {
    processes.start([&, rank] {
      Diagnostics diagnostics;
      const auto first = make_bootstrap(launch_of(rank), diagnostics);
      // Of the same name, while the first is there.
      const auto second = make_bootstrap(launch_of(rank), diagnostics);
      if (!first || !second) return 1;
      if (rank[0] == '0' && (!complete.give() || !refused.take())) return 3;
      return first->barrier("end", diagnostics) && second->barrier("end", diagnostics) ? 0 : 2;
    });
  }
  REQUIRE(complete.take());
  processes.start([&] {
    Diagnostics diagnostics;
    const auto late = make_bootstrap(launch_of("1"), diagnostics);
    if (!refused.give() || late) return 1;
    return names_twin(diagnostics, "all 2 ranks of the job have joined already: rank 1 (process ",
                      " on this machine says that it is the same rank");
  });
  for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 300s) == 0);
}

TEST_CASE(
    "a process that was there before all had come, and comes then, ends the job: it may be its "
    "rank") {
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
    const testing::Signal complete, refused;
    testing::Processes processes;
    processes.start([&] {
      if (!complete.take()) return 3;
      Diagnostics diagnostics;
      if (meet_as(late, diagnostics)) return 1;
      if (!refused.give() || !refused.give()) return 3;
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
        if (!refused.take() || bootstrap->barrier("step", diagnostics)) return 2;
        return diagnostics.all().back().code == "bootstrap-refused" ? 0 : 4;
      });
    }
    for (size_t i = 0; i < processes.count(); ++i) CHECK(processes.wait(i, 300s) == 0);
  }
}

/// Listens at a port and says the same to every client, or holds it for an outgoing connection.
class PortHolder {
 public:
  explicit PortHolder(const char* how) {
    if (std::string_view(how) == "connects") {
      other_ = listen_on(Address::loopback(0));
      held_ = open_stream(AF_INET);
      const Address any = Address::loopback(0), to = Address::loopback(local_port(other_));
      REQUIRE(::bind(held_.get(), any.get(), any.length()) == 0);
      ::connect(held_.get(), to.get(), to.length());
      REQUIRE(await(held_.get(), POLLOUT, std::chrono::steady_clock::now() + 60s));
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
    const char *how, *why, *silence;
  };
  for (const Case& c : {Case{"connects", "Connection refused (111)", "100"},
                        Case{"answers", "what answers there is not a bootstrap: it says ", "100"},
                        Case{"is silent", "no answer", "2"}}) {
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
        "in use (98), and what has the port is not a hub of this job (at 127.0.0.1:{}: {}",
        port, port, c.why);
    for (const char* rank : {"2", "1", "0"}) {
      processes.start([&, rank] {
        Diagnostics diagnostics;
        auto launch = read_launch(
            Environment(Values{{"MSCCLC_TIMEOUT", "600"},
                               {"MSCCLC_SILENCE", c.silence},
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
    for (size_t r = 1; r <= 3; ++r) CHECK(processes.wait(r, 300s) == 0);
    REQUIRE(done.give());
    CHECK(processes.wait(0, 300s) == 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

/// As torchrun would start rank 0 of two on two machines, the other of which is 127.0.0.77; no unix
/// sockets, as on two machines.
LaunchedRank rank_0_of_two(const std::string& job) {
  LaunchedRank launch = read({{"RANK", "0"},
                              {"WORLD_SIZE", "2"},
                              {"LOCAL_WORLD_SIZE", "1"},
                              {"MASTER_ADDR", std::string(testing::kFarAddress)},
                              {"MASTER_PORT", std::to_string(master_port())},
                              {"MSCCLC_SECRET", job},
                              {"MSCCLC_TIMEOUT", "600"}});
  launch.where.local = false;
  return launch;
}

/// Whether both ranks 0 hear of each other. One looks for the other for a second: where that does
/// not answer in time, both wait for the others of the job.
bool twins_hear_it(const LaunchedRank& launch) {
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
                   await(socket.get(), POLLOUT, std::chrono::steady_clock::now() + 60s) &&
                   connect_error(socket) == 0;
      }
    }
    return be();
  });
  bool both = true;
  for (size_t i = 0; i < 2; ++i) both &= processes.wait(i, 120s) == 0;
  return both;
}

TEST_CASE("two machines that both have a rank 0 hear it at once") {
  LaunchedRank launch = rank_0_of_two("twins" + std::to_string(::getpid()));
  const auto is_right = [&](int factor) {
    launch.timeout = factor * 20s;  // if they miss each other; by far less if not
    const auto begun = std::chrono::steady_clock::now();
    return twins_hear_it(launch) && std::chrono::steady_clock::now() - begun < launch.timeout - 1s;
  };
  CHECK(testing::right_in_longer_times(is_right, {1, 2, 3}));
}

TEST_CASE("an id may be served by another process than rank 0's") {
  Diagnostics diagnostics;
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  testing::Processes server;
  server.start([&] {
    auto job = host_job({.one_machine = true, .timeout = 300s}, diagnostics);
    const std::string text = job ? job->id.text() : "";
    if (::write(pipe[1], text.data(), text.size()) < 0) return 1;
    ::pause();
    return 0;
  });
  char text[UniqueId::kMaxText] = "";
  REQUIRE(::read(pipe[0], text, sizeof text) > 0);
  check_meeting(
      ranks_of({{"MSCCLC_TIMEOUT", "300"}, {"MSCCLC_WORLD_SIZE", "3"}, {"MSCCLC_ID", text}},
               "MSCCLC_RANK", 3));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("two jobs that worked out the same ports do not meet each other") {
  const std::string port = std::to_string(master_port());
  std::vector<Values> ranks;
  for (const std::string run : {"a", "b"}) {
    const auto job = ranks_of({{"MSCCLC_TIMEOUT", "300"},
                               {"WORLD_SIZE", "2"},
                               {"LOCAL_WORLD_SIZE", "1"},
                               {"MASTER_ADDR", "127.0.0.1"},
                               {"MASTER_PORT", port},
                               {"TORCHELASTIC_RUN_ID", run + std::to_string(::getpid())}},
                              "RANK", 2);
    ranks.insert(ranks.end(), job.begin(), job.end());
  }
  check_meeting(ranks);
}

}  // namespace
}  // namespace mscclc
