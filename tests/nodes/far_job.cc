#include "tests/nodes/far_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "runtime/api/job.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/library/library.h"

namespace mscclc::testing {
namespace {

/// Pipes of the ranks: the job's id to each, and what it says at its end.
struct Pipe {
  Pipe() {
    if (::pipe(ends) != 0) std::abort();
  }
  ~Pipe() { ::close(ends[0]), close_writing(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writing() {
    if (ends[1] >= 0) ::close(std::exchange(ends[1], -1));
  }
  int ends[2];
};

std::unique_ptr<Bootstrap> meet(uint32_t rank, const FarPlace& place, const Pipe& ids,
                                std::chrono::seconds silence, Diagnostics& diagnostics) {
  std::array<char, UniqueId::kMaxText> text{};
  std::shared_ptr<Hub> hub;
  if (rank == 0) {
    auto job = host_job({.size = place.ranks,
                         .rank = 0,
                         .interface = place.interface,
                         .timeout = place.timeout,
                         .silence = silence},
                        diagnostics);
    if (!job) return nullptr;
    job->id.text().copy(text.data(), text.size() - 1);
    hub = std::move(job->hub);
    for (uint32_t i = 1; i < place.ranks; ++i) {
      if (::write(ids.ends[1], text.data(), text.size()) < 0) return nullptr;
    }
  } else if (::read(ids.ends[0], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return nullptr;
  }
  const auto id = UniqueId::parse(text.data(), diagnostics);
  return id ? join_job(*id, rank, place.ranks, place.timeout, std::move(hub), diagnostics)
            : nullptr;
}

std::string run_rank(uint32_t rank, const FarPlace& place, const Pipe& ids, const RankBody& body,
                     std::chrono::seconds silence) {
  Diagnostics diagnostics;
  auto bootstrap = meet(rank, place, ids, silence, diagnostics);
  const std::shared_ptr<Device> device = place.open(rank, diagnostics);
  std::unique_ptr<Communicator> communicator;
  if (bootstrap != nullptr) {
    communicator =
        Communicator::create(std::move(bootstrap), device, {.timeout = place.timeout}, diagnostics);
  }
  return communicator == nullptr ? text(diagnostics) : body(*communicator);
}

/// All that comes out of a pipe until its end.
std::string drain(Pipe& pipe) {
  pipe.close_writing();
  std::string all;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(pipe.ends[0], buffer, sizeof buffer)) > 0;) {
    all.append(buffer, static_cast<size_t>(n));
  }
  return all;
}

/// Programs for nodes of one rank run on these, too: their ports lead to ranks of the own node as
/// well.
Defines world_of(std::string_view program) {
  if (program.ends_with("_nodes")) return {{"R", "4"}};
  return {{"world", "4"}, {"gpus", "2"}};
}

}  // namespace

FarPlace place_in(const FarNetwork& network) {
  return {.interface = std::string("=") + FarNetwork::kInterface,
          .enter = [&network](uint32_t rank) { network.enter(rank / FarJob::kOnNode); }};
}

std::vector<std::string> run_far_ranks(const FarPlace& place, const RankBody& body,
                                       std::chrono::seconds silence) {
  ::setenv("MSCCLC_SILENCE", std::to_string(silence.count()).c_str(), 1);  // of lanes
  Pipe ids;
  std::vector<Pipe> said(place.ranks);
  Processes processes;
  for (uint32_t rank = 0; rank < place.ranks; ++rank) {
    processes.start([&] {
      place.enter(rank);
      const size_t before = open_descriptors();
      std::string text =
          run_rank(rank, place, ids, body, silence).substr(0, 4000);  // a pipe holds so much
      const size_t after = open_descriptors();
      if (after > before) text += fmt::format("it leaves {} descriptors open\n", after - before);
      const uint64_t left = place.left ? place.left() : 0;
      if (left > 0) text += fmt::format("it leaves {} regions, queue pairs and such\n", left);
      return ::write(said[rank].ends[1], text.data(), text.size()) < 0 ? 1 : 0;
    });
  }
  std::vector<std::string> all(place.ranks);
  for (uint32_t rank = 0; rank < place.ranks; ++rank) {
    const int code = processes.wait(rank, 2 * FarJob::kTimeout);
    all[rank] = code == 0                     ? drain(said[rank])
                : code == Processes::kRunning ? "it has not ended"
                                              : fmt::format("it ended with {}", code);
  }
  return all;
}

RankBody far_calls(std::string_view program, std::vector<uint64_t> sizes, uint32_t times) {
  const CompiledWorld world(program, world_of(program));
  if (!world.errors().empty()) {
    return [why = world.errors()](Communicator&) { return why; };
  }
  auto plan = std::make_shared<const Program>(world.program());
  return [=](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    RankRunner runner(
        communicator, plan,
        {.load = {.max_bytes = *std::ranges::max_element(sizes), .proof = ProofPolicy::skip}});
    if (!runner.load(diagnostics)) return text(diagnostics);
    for (const uint64_t bytes : sizes) {
      if (runner.run({.bytes = bytes, .iterations = times}, diagnostics).run.status !=
          RunStatus::right) {
        return text(diagnostics);
      }
    }
    return "";
  };
}

bool blames_any(const std::string& said, const std::vector<uint32_t>& ranks) {
  const size_t begin = std::min(said.find("error: "), said.size());
  const std::string line = said.substr(begin, said.find('\n', begin) - begin);
  return std::ranges::any_of(ranks, [&](uint32_t rank) {
    return line.find(fmt::format("rank {}", rank)) != std::string::npos;
  });
}

}  // namespace mscclc::testing
