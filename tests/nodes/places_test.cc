// Calls by name of ranks in containers: namespaces of each kind, with and without a /dev/shm of
// their own; and ranks that are spread over nodes unevenly. Where namespaces are not permitted, the
// tests are left out, and say so.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include "runtime/api/builtin_library.h"
#include "runtime/api/collectives.h"
#include "runtime/api/host_device.h"
#include "tests/collectives/definition.h"
#include "tests/helpers/runtime/processes.h"
#include "tests/nodes/far_job.h"

namespace mscclc {
namespace {

using testing::FarJob;
using testing::FarNetwork;
using testing::FarPlace;

bool networks_are_made(FarNetwork& network) {
  const std::string why = network.make(FarJob::kNodes);
  if (!why.empty()) std::cout << "left out: " << why << "\n";
  return why.empty();
}

/// Collectives that several nodes have plans for.
constexpr CollectiveKind kKinds[] = {CollectiveKind::allreduce,     CollectiveKind::allgather,
                                     CollectiveKind::reducescatter, CollectiveKind::alltoall,
                                     CollectiveKind::broadcast,     CollectiveKind::reduce,
                                     CollectiveKind::sendrecv};

/// Does a rank get a result of the call?
bool gets_one(const CollectiveCall& call, uint32_t rank) {
  return call.kind != CollectiveKind::reduce || rank == call.root;
}

/// One call with test values; "" if it is right.
std::string try_call(Collectives& collectives, CollectiveCall call) {
  Communicator& communicator = collectives.communicator();
  const uint32_t rank = communicator.rank(), ranks = communicator.size();
  Diagnostics diagnostics;
  const auto memory = communicator.device().allocate(2 << 20, "buffers", diagnostics);
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  if (memory == nullptr || stream == nullptr) return testing::text(diagnostics);
  auto* const from = reinterpret_cast<int32_t*>(memory->data());
  int32_t* const to = from + (1 << 18);
  for (uint64_t i = 0; i < call.count * ranks; ++i) from[i] = testing::value(rank, i);
  call.dtype = Dtype::i32;
  call.input = from;
  call.output = to;
  const bool done =
      collectives.call(call, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  const uint64_t out = call.count * (info(call.kind).has_rows(Side::output) ? ranks : 1);
  for (uint64_t i = 0; gets_one(call, rank) && i < out; ++i) {
    if (to[i] == testing::expected(call, rank, ranks, i)) continue;
    return fmt::format("{}: element {} is {}\n", name(call.kind), i, to[i]);
  }
  return "";
}

std::string all_kinds(Communicator& communicator) {
  Diagnostics diagnostics;
  const std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
  const auto collectives =
      library == nullptr ? nullptr : Collectives::create(communicator, library, {}, diagnostics);
  if (collectives == nullptr) return testing::text(diagnostics);
  const uint64_t most = (uint64_t{1} << 18) / communicator.size();  // what try_call() has room for
  for (const CollectiveKind kind : kKinds) {
    for (const uint64_t count : {uint64_t{7}, uint64_t{3000}, std::min<uint64_t>(60'000, most)}) {
      const std::string said = try_call(*collectives, {.kind = kind, .count = count});
      if (!said.empty()) return said;
    }
  }
  return "";
}

/// What each rank does, and what nodes there must be.
testing::RankBody calls_on(const std::vector<uint32_t>& nodes) {
  return [nodes](Communicator& communicator) -> std::string {
    if (communicator.nodes() != nodes) {
      return fmt::format("the nodes are {}\n", fmt::join(communicator.nodes(), " "));
    }
    return all_kinds(communicator);
  };
}

void write_file(const char* path, const std::string& text) { std::ofstream(path) << text; }

bool leave(int flags) {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(flags) != 0) return false;
  if ((flags & CLONE_NEWUSER) != 0) {
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", fmt::format("0 {} 1", user));
    write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
  }
  if ((flags & CLONE_NEWNS) == 0) return true;
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/dev/shm", "tmpfs", 0, nullptr) == 0;
}

struct Container {
  const char* name;
  bool own_networks;  ///< of each two ranks; otherwise one of all
  int flags;          ///< other namespaces, of each rank its own
};
constexpr Container kContainers[] = {
    {"nothing", false, 0},
    {"networks", true, 0},
    {"IPC", false, CLONE_NEWIPC},
    {"UTS", false, CLONE_NEWUTS},
    {"users", false, CLONE_NEWUSER},
    {"a /dev/shm", false, CLONE_NEWNS},
    {"all but a network", false, CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS},
    {"all", true, CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS},
};

TEST_CASE("places: calls by name in containers with namespaces of their own") {
  FarNetwork network;
  if (!networks_are_made(network)) return;
  for (const Container& container : kContainers) {
    INFO("of their own: " << container.name);
    const FarPlace place{.interface = std::string("=") + FarNetwork::kInterface,
                         .enter = [&](uint32_t rank) {
                           network.enter(container.own_networks ? rank / FarJob::kOnNode : 0);
                           if (!leave(container.flags)) ::_exit(77);
                         }};
    const auto nodes = container.own_networks ? std::vector<uint32_t>{0, 0, 2, 2}
                                              : std::vector<uint32_t>{0, 0, 0, 0};
    const auto said = run_far_ranks(place, calls_on(nodes), FarJob::kLong);
    if (said == std::vector<std::string>(FarJob::kRanks, "it ended with 77")) {
      std::cout << "left out: " << container.name << "\n";
      continue;
    }
    CHECK(said == std::vector<std::string>(FarJob::kRanks));
  }
}

/// The nearest bf16, ties to even: rounded once, whether from f32 or from what is exact.
float as_bf16(double x) {
  constexpr int kDigits = 8;
  int exponent = 0;
  std::frexp(x, &exponent);
  return static_cast<float>(
      std::ldexp(std::nearbyint(std::ldexp(x, kDigits - exponent)), exponent - kDigits));
}

/// Elements whose sums are rounded.
struct Uneven {
  Dtype dtype;

  float rounded(double x) const {
    return dtype == Dtype::bf16 ? as_bf16(x) : static_cast<float>(x);
  }
  float value(uint32_t rank, uint64_t i) const {
    return rounded(static_cast<float>((i * 2654435761U + rank * 40503U) % 1000003) / 977.0F -
                   500.0F);
  }
  void write(uint8_t* at, uint64_t i, float x) const {
    const uint32_t bits = std::bit_cast<uint32_t>(x), bytes = info(dtype).bytes;
    std::memcpy(at + i * bytes, reinterpret_cast<const uint8_t*>(&bits) + 4 - bytes, bytes);
  }
  float read(const uint8_t* at, uint64_t i) const {
    uint32_t bits = 0;
    const uint32_t bytes = info(dtype).bytes;
    std::memcpy(reinterpret_cast<uint8_t*>(&bits) + 4 - bytes, at + i * bytes, bytes);
    return std::bit_cast<float>(bits);
  }
  /// The sum of ranks [begin, end) along the tree.
  float tree_sum(uint32_t begin, uint32_t end, uint64_t i) const {
    if (end - begin == 1) return value(begin, i);
    const uint32_t middle = begin + std::bit_ceil(end - begin) / 2;
    return tree_sum(begin, middle, i) + tree_sum(middle, end, i);
  }
  /// What a contract promises of an element; of `replicated` nothing but that it is the same.
  std::optional<float> promised(SumOrder order, uint32_t ranks, uint64_t i) const {
    if (order == SumOrder::tree) return rounded(tree_sum(0, ranks, i));
    float sum = value(0, i);
    double exact = sum;  // with room for all digits of these
    for (uint32_t r = 1; r < ranks; ++r) {
      sum += value(r, i);
      exact += value(r, i);
    }
    if (order == SumOrder::ranks) return rounded(sum);
    if (order == SumOrder::exact) return rounded(exact);
    return std::nullopt;
  }
};

/// One sum that gives each rank so many elements, or the root of a reduce, which is in place unless
/// that is rank 0; of an all-reduce, what all got, as one number each.
std::string sum_alike(Collectives& collectives, CollectiveCall sum) {
  Communicator& communicator = collectives.communicator();
  Diagnostics diagnostics;
  const Uneven type{sum.dtype};
  const bool all_get_it = sum.kind == CollectiveKind::allreduce;
  const uint32_t ranks = communicator.size();
  const bool scattered = sum.kind == CollectiveKind::reducescatter;
  const uint64_t given = sum.count * (scattered ? ranks : 1);
  const uint64_t bytes = (given * info(sum.dtype).bytes + 63) / 64 * 64;
  const auto memory =
      communicator.device().allocate(2 * bytes + 4096, "floats and hashes", diagnostics);
  const StreamHandle stream = communicator.device().create_stream(diagnostics);
  if (memory == nullptr || stream == nullptr) return testing::text(diagnostics);
  uint8_t* const from = memory->data();
  uint8_t* const to = sum.root == 0 ? from + bytes : from;
  auto* const hashes = reinterpret_cast<uint64_t*>(from + 2 * bytes);
  for (uint64_t i = 0; i < given; ++i) type.write(from, i, type.value(communicator.rank(), i));
  sum.input = from;
  sum.output = to;
  bool done =
      collectives.call(sum, stream, diagnostics) && communicator.synchronize(stream, diagnostics);
  uint64_t own = 0;
  for (uint64_t i = 0; done && all_get_it && i < sum.count; ++i)
    own = own * 31 + std::bit_cast<uint32_t>(type.read(to, i));
  hashes[0] = own;
  const CollectiveCall all{.kind = CollectiveKind::allgather,
                           .count = 1,
                           .dtype = Dtype::u64,
                           .input = hashes,
                           .output = hashes + 8};
  done = done && collectives.call(all, stream, diagnostics) &&
         communicator.synchronize(stream, diagnostics);
  communicator.device().destroy_stream(stream);
  if (!done) return testing::text(diagnostics);
  const std::string what = fmt::format("{} of {} {}, {}", name(sum.kind), sum.count,
                                       info(sum.dtype).name, name(*sum.order));
  const uint64_t first = scattered ? communicator.rank() * sum.count : 0;
  for (uint64_t i = 0; gets_one(sum, communicator.rank()) && i < sum.count; ++i) {
    const float got = type.read(to, i);
    if (got != type.promised(*sum.order, ranks, first + i).value_or(got))
      return fmt::format("{}: element {} is {}\n", what, i, got);
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    if (hashes[8 + r] != own) return fmt::format("{}: rank {} has other sums\n", what, r);
  }
  return "";
}

/// All contracts, sizes that get several plans, a few of these also of bf16 and by reduce-scatters.
std::string all_sums(Collectives& collectives) {
  const uint32_t last = collectives.communicator().size() - 1;
  for (const SumOrder order :
       {SumOrder::replicated, SumOrder::ranks, SumOrder::tree, SumOrder::exact}) {
    for (const uint64_t count : {100, 4096, 60'000, 700'000}) {
      std::vector<CollectiveCall> calls = {{.kind = CollectiveKind::allreduce},
                                           {.kind = CollectiveKind::reduce, .root = last}};
      if (count == 100 || count == 60'000) {
        calls.push_back({.kind = CollectiveKind::reducescatter});
        for (const CollectiveKind kind :
             {CollectiveKind::allreduce, CollectiveKind::reducescatter, CollectiveKind::reduce})
          calls.push_back({.kind = kind, .dtype = Dtype::bf16});
      }
      for (CollectiveCall& call : calls) {
        call.count = count, call.order = order;
        const std::string said = sum_alike(collectives, call);
        if (!said.empty()) return said;
      }
    }
  }
  return "";
}

struct Spread {
  uint32_t nodes, on_node;
};
constexpr Spread kSpreads[] = {{2, 2}, {3, 1}, {4, 1}, {3, 2}, {2, 4}};
constexpr uint32_t kMaxNodes = 4;

TEST_CASE("places: ranks of several nodes get the same bits, and those of a contract") {
  FarNetwork network;
  const std::string why = network.make(kMaxNodes);
  if (!why.empty()) {
    std::cout << "left out: " << why << "\n";
    return;
  }
  for (const auto& [nodes, on_node] : kSpreads) {
    INFO(nodes << " nodes of " << on_node);
    const auto body = [](Communicator& communicator) {
      Diagnostics diagnostics;
      const std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
      const auto collectives = Collectives::create(communicator, library, {}, diagnostics);
      return collectives == nullptr ? testing::text(diagnostics) : all_sums(*collectives);
    };
    const FarPlace place{.interface = std::string("=") + FarNetwork::kInterface,
                         .enter = [&](uint32_t rank) { network.enter(rank / on_node); },
                         .ranks = nodes * on_node};
    CHECK(run_far_ranks(place, body, FarJob::kLong) == std::vector<std::string>(place.ranks));
  }
}

TEST_CASE("places: ranks that are spread unevenly, or not node by node") {
  FarNetwork network;
  if (!networks_are_made(network)) return;
  const std::vector<std::vector<uint32_t>> spreads = {
      {0, 0, 0, 3}, {0, 1, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}};
  for (const std::vector<uint32_t>& nodes : spreads) {
    INFO("nodes " << fmt::format("{}", fmt::join(nodes, " ")));
    const FarPlace place{.interface = std::string("=") + FarNetwork::kInterface,
                         .enter = [&](uint32_t rank) { network.enter(nodes[rank] == 0 ? 0 : 1); }};
    CHECK(run_far_ranks(place, calls_on(nodes), FarJob::kLong) ==
          std::vector<std::string>(FarJob::kRanks));
  }
}

// As processes of one machine, which take one another for ranks of two.
TEST_CASE("places: 7 + 8 ranks") {
  std::vector<uint32_t> nodes(7, 0);
  nodes.resize(15, 7);
  const auto open = [&](uint32_t rank, Diagnostics& diagnostics) {
    return make_host_device(diagnostics, {}, HostLanes::copies, nodes[rank]);
  };
  CHECK(testing::run_processes(15, calls_on(nodes), {std::chrono::minutes(10)}, open) == "");
}

TEST_CASE("places: a collective that such ranks have no plan for says what would serve it") {
  FarNetwork network;
  if (!networks_are_made(network)) return;
  const FarPlace place{.interface = std::string("=") + FarNetwork::kInterface,
                       .enter = [&](uint32_t rank) { network.enter(rank % 2); }};
  const auto body = [](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const std::shared_ptr<PlanProvider> library = builtin_library({}, diagnostics);
    const auto collectives = Collectives::create(communicator, library, {}, diagnostics);
    if (collectives == nullptr) return testing::text(diagnostics);
    return try_call(*collectives, {.kind = CollectiveKind::gather, .count = 8});
  };
  for (const std::string& said : run_far_ranks(place, body, FarJob::kLong)) {
    CHECK(said ==
          "error: no plan serves gather of 128 bytes, 'i32', for 4 ranks of several nodes\n"
          "note: the nodes' ranks are 0, 2 | 1, 3: with as many ranks on each node, numbered node "
          "by node, there are more plans\n"
          "note: what would serve it: a plan of your own whose channels between nodes are ports, "
          "registered or in MSCCLC_PLAN_PATH\n");
  }
}

/// A program that is one rank of two, by its environment, and makes calls by name.
struct Interface {
  const char* name;
  const char* command;
};
constexpr Interface kInterfaces[] = {
    {"C", "tests/nodes/by_name_rank mscclc runtime/doors/c/libmscclc.so.0"},
    {"libnccl.so.2", "tests/nodes/by_name_rank nccl runtime/doors/nccl/libnccl.so.2"},
    {"Python", "python3 tests/nodes/by_name_rank.py"},
};
/// How a shell starts a program in a container.
constexpr Interface kShells[] = {
    {"nothing", ""},
    {"a PID namespace", "unshare --pid --fork --kill-child "},
    {"an IPC namespace and a /dev/shm",
     "unshare --ipc --mount sh -c 'mount -t tmpfs none /dev/shm "
     "&& exec \"$@\"' sh "},
    {"a user namespace", "unshare --user --map-root-user "},
};

int run_shell(const std::string& line) {
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST_CASE("places: from C, libnccl.so.2 and Python, with a network of their own or of all") {
  FarNetwork network;
  if (!networks_are_made(network)) return;
  int port = 21000;
  for (const Interface& interface : kInterfaces) {
    for (const Interface& shell : kShells) {
      if (run_shell(std::string(shell.command) + "true 2>/dev/null") != 0) {
        std::cout << "left out: " << shell.name << "\n";
        continue;
      }
      for (const uint32_t apart : {0u, 1u}) {
        INFO(interface.name << ", " << shell.name << (apart == 1 ? ", networks" : ""));
        testing::Processes ranks;
        ++port;
        for (uint32_t rank = 0; rank < 2; ++rank) {
          ranks.start([&] {
            network.enter(rank * apart);
            return run_shell(fmt::format(
                "MSCCLC_RANK={} MSCCLC_WORLD_SIZE=2 MSCCLC_SOCKET_IFNAME=={} MSCCLC_DEVICE=host "
                "MSCCLC_TIMEOUT=300 MASTER_ADDR={} MASTER_PORT={} NCCL_COMM_ID={}:{} "
                "MSCCLC_SECRET=places PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 "
                "LD_LIBRARY_PATH=runtime/doors/c {}{}",
                rank, FarNetwork::kInterface, FarNetwork::address(0), port, FarNetwork::address(0),
                port, shell.command, interface.command));
          });
        }
        CHECK(ranks.wait(0, std::chrono::seconds(400)) == 0);
        CHECK(ranks.wait(1, std::chrono::seconds(400)) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
