#include "tests/helpers/verbs/lane_world.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstdlib>

namespace mscclc::verbs::testing {

std::string fake_library() {
  if (std::getenv("MSCCLC_IBV_SO") != nullptr) return "";
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
         "/tests/fakes/verbs/libfake_verbs.so";
}

fake::FakeVerbs* reset_fake() {
  const std::string file = fake_library();
  if (file.empty()) return nullptr;
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* const state =
      reinterpret_cast<decltype(&mscclc_fake_verbs)>(::dlsym(library, "mscclc_fake_verbs"))();
  const fake::FakeVerbs fresh;
  state->devices = fresh.devices;
  state->down = fresh.down;
  state->infiniband = fresh.infiniband;
  state->lid = fresh.lid;
  state->atomics = fresh.atomics;
  state->most_begun = fresh.most_begun;
  state->most_answered = fresh.most_answered;
  state->forks = fresh.forks;
  state->gids = fresh.gids;
  state->failing_call = fresh.failing_call;
  state->most_registered = fresh.most_registered;
  state->failing_order = state->hanging_order = state->lost_add = 0;
  state->gpu_begin = state->gpu_end = 0;
  state->peermem = nullptr;
  state->not_ready = state->in_pages = 0;
  state->posted = false;
  state->adds = state->reads = state->direct_reads = state->data_direct = 0;
  state->mlx5 = false;
  state->path_error = 0;
  return state;
}

VerbsOptions base_options() {
  VerbsOptions options;
  Diagnostics diagnostics;
  if (const auto read = read_verbs_options(diagnostics)) options = *read;
  if (const std::string file = fake_library(); !file.empty()) options.library = file;
  return options;
}

std::string text(const Diagnostics& diagnostics) {
  return render_text(diagnostics, Sources(), 1000);
}

World::World(const VerbsOptions& options, std::chrono::seconds dead) : LaneMemory(kPatience) {
  const net::SocketOptions sockets{.interface = "=lo", .dead = dead};
  VerbsOptions second = options;
  second.prefer = 1;
  far = Adapter::start(options, net::SocketNet::start(sockets, diagnostics), diagnostics);
  near = Adapter::start(second, net::SocketNet::start(sockets, diagnostics), diagnostics);
  INFO(text());
  REQUIRE((far != nullptr && near != nullptr));
  region = far->expose(data(), kWorldBytes, diagnostics);
  const auto readable = near->read_from(sources.data(), sources.size());
  REQUIRE((region != nullptr && readable));
  source = *readable;
  window = std::make_unique<Window>(id, kWorldBytes, key());
  end = await_verbs_lane(kNear, far, exposed, far_reports.callback(), {}, take_notes());
}

void World::open() {
  lane = open_with(end->offer());
  INFO(text());
  REQUIRE(lane != nullptr);
}

std::unique_ptr<Lane> World::open_with(const std::vector<uint8_t>& offer) {
  const auto find_source = [this](const void* from, uint64_t bytes) -> Source {
    const auto* at = static_cast<const uint8_t*>(from);
    const bool ours = at >= sources.data() && at + bytes <= sources.data() + sources.size();
    return ours ? Source{.key = source->local_key()} : Source{};
  };
  return open_verbs_lane({.rank = kFar,
                          .offer = offer,
                          .over = [this] { return over.load(); },
                          .failed = near_reports.callback()},
                         near, find_source, kPatience, diagnostics);
}

void check_counts(World& world) {
  std::vector<uint8_t> other(net::testing::kMaxChecked);
  const auto source = [&](uint64_t put, uint64_t offset) {
    return put % 2 == 0 ? other.data() : world.sources.data() + offset;
  };
  net::testing::check_counts(world, *world.lane, source);
}

}  // namespace mscclc::verbs::testing
