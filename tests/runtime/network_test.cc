// Jobs of nodes that a bad network joins: packets that come late, in another order or not at all; a
// network that is cut; a rank that is killed. Each node has a network namespace of its own.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "runtime/api/host_device.h"
#include "runtime/api/job.h"
#include "runtime/testing/processes.h"
#include "tests/library/library.h"
#include "tests/runtime/far_network.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::FarNetwork;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 4, kOnNode = 2;
constexpr std::chrono::seconds kSilence{3}, kTimeout{120};

/// Pipes of the ranks: the job's id to each, and what it says at its end.
struct Pipe {
  Pipe() {
    if (::pipe(ends) != 0) std::abort();
  }
  ~Pipe() { ::close(ends[0]), ::close(ends[1]); }
  int ends[2];
};

std::unique_ptr<Bootstrap> meet(uint32_t rank, const Pipe& ids, Diagnostics& diagnostics) {
  std::array<char, UniqueId::kMostText> text{};
  std::shared_ptr<Hub> hub;
  if (rank == 0) {
    auto job = host_job({.size = kRanks,
                         .rank = 0,
                         .interface = std::string("=") + FarNetwork::kInterface,
                         .timeout = kTimeout,
                         .silence = kSilence},
                        diagnostics);
    if (!job) return nullptr;
    job->id.text().copy(text.data(), text.size() - 1);
    hub = std::move(job->hub);
    for (uint32_t i = 1; i < kRanks; ++i) {
      if (::write(ids.ends[1], text.data(), text.size()) < 0) return nullptr;
    }
  } else if (::read(ids.ends[0], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return nullptr;
  }
  const auto id = UniqueId::parse(text.data(), diagnostics);
  return id ? join_job(*id, rank, kRanks, kTimeout, std::move(hub), diagnostics) : nullptr;
}

/// What each rank says at its end; "": nothing was wrong. A rank that does not end says so.
std::vector<std::string> run_ranks(FarNetwork& network, const testing::RankBody& body) {
  Pipe ids;
  std::vector<Pipe> said(kRanks);
  testing::Processes processes;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    processes.start([&] {
      network.enter(rank / kOnNode);
      Diagnostics diagnostics;
      std::string text;
      auto bootstrap = meet(rank, ids, diagnostics);
      std::shared_ptr<Device> device = make_host_device(diagnostics);
      std::unique_ptr<Communicator> communicator;
      if (bootstrap != nullptr) {
        communicator =
            Communicator::create(std::move(bootstrap), device, {.timeout = kTimeout}, diagnostics);
      }
      text = communicator == nullptr ? testing::text(diagnostics) : body(*communicator);
      communicator.reset();
      text = text.substr(0, 4000);  // a pipe holds so much
      return ::write(said[rank].ends[1], text.data(), text.size()) < 0 ? 1 : 0;
    });
  }
  std::vector<std::string> all(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const int code = processes.wait(rank, 2 * kTimeout);
    if (code == testing::Processes::kRunning) {
      all[rank] = "it has not ended";
    } else if (code != 0) {
      all[rank] = fmt::format("it ended with {}", code);
    } else {
      ::close(said[rank].ends[1]);
      said[rank].ends[1] = -1;
      char buffer[4096];
      for (ssize_t n = 0; (n = ::read(said[rank].ends[0], buffer, sizeof buffer)) > 0;) {
        all[rank].append(buffer, static_cast<size_t>(n));
      }
    }
  }
  return all;
}

/// Calls of each size in turn; what went wrong.
testing::RankBody calls(const char* name, std::vector<uint64_t> sizes, uint32_t times) {
  const CompiledWorld world(name, {{"world", "4"}, {"gpus", "2"}});
  REQUIRE(world.errors() == "");
  auto plan = std::make_shared<const Program>(world.program());
  return [=](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    RankRunner runner(communicator, plan,
                      {.load = {.max_bytes = sizes.back(), .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return testing::text(diagnostics);
    for (const uint64_t bytes : sizes) {
      if (runner.run({.bytes = bytes, .iterations = times}, diagnostics).run.status !=
          RunStatus::right) {
        return testing::text(diagnostics);
      }
    }
    return "";
  };
}

/// False: namespaces are not permitted here; the tests over loopback say what they can.
bool made(FarNetwork& network) {
  ::setenv("MSCCLC_SILENCE", std::to_string(kSilence.count()).c_str(), 1);
  const std::string why = network.make(kRanks / kOnNode);
  if (!why.empty()) std::cout << "left out: " << why << "\n";
  return why.empty();
}

TEST_CASE("results are right however late, lost or disordered packets are") {
  FarNetwork network;
  if (!made(network)) return;
  network.faults().delay_us = 1000;
  network.faults().lost = 10;
  network.faults().reordered = 50;
  for (const char* name : {"allreduce_hier", "allreduce_hier_packets", "allreduce_hier_pipeline",
                           "allgather_hier", "reducescatter_hier"}) {
    const auto said = run_ranks(network, calls(name, {0, 4, 1000, 65544, 1 << 20}, 2));
    CHECK(said == std::vector<std::string>(kRanks));
  }
  CHECK(network.faults().passed > 1000);
}

/// Does the first error name one of the ranks? Notes below it name what blocks waited for.
bool blames_any(const std::string& said, std::initializer_list<uint32_t> ranks) {
  const size_t begin = std::min(said.find("error: "), said.size());
  const std::string line = said.substr(begin, said.find('\n', begin) - begin);
  return std::ranges::any_of(ranks, [&](uint32_t rank) {
    return line.find(fmt::format("rank {}", rank)) != std::string::npos;
  });
}

TEST_CASE("a network that is cut ends the job at every rank, which names one beyond the cut") {
  FarNetwork network;
  if (!made(network)) return;
  network.faults().cut_after = 20'000;
  const auto said = run_ranks(network, calls("allgather_hier", {16 << 20}, 1000));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    INFO("rank " << rank << ": " << said[rank]);
    CHECK((rank < kOnNode ? blames_any(said[rank], {2, 3}) : blames_any(said[rank], {0, 1})));
  }
}

TEST_CASE("a rank that is killed in the middle of a call ends the job at every rank") {
  FarNetwork network;
  if (!made(network)) return;
  network.faults().delay_us = 500;
  network.faults().lost = 5;
  const auto body = calls("allgather_hier", {16 << 20}, 1000);
  const auto dying = [&](Communicator& communicator) -> std::string {
    if (communicator.rank() == 3) {
      std::thread([&] {
        while (network.faults().passed < 20'000) std::this_thread::sleep_for(1ms);
        ::raise(SIGKILL);
      }).detach();
    }
    return body(communicator);
  };
  const auto said = run_ranks(network, dying);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    INFO("rank " << rank << ": " << said[rank]);
    CHECK(blames_any(said[rank], {3}));
  }
}

}  // namespace
}  // namespace mscclc
