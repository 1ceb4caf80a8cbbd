#include "runtime/verbs/testing/lane_world.h"

#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <thread>

#include "executor/words.h"

namespace mscclc::verbs::testing {
namespace {

/// Waits for a count as a block does.
void await_count(World& world, uint64_t offset, uint64_t value) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (world.word(offset) < value) {
    REQUIRE(world.near_told.text() + world.far_told.text() == "");
    REQUIRE(std::chrono::steady_clock::now() < until);
    std::this_thread::yield();
  }
}

}  // namespace

std::string fake_library() {
  if (std::getenv("MSCCLC_IBV_SO") != nullptr) return "";
  return std::string(std::getenv("TEST_SRCDIR")) + "/" + std::getenv("TEST_WORKSPACE") +
         "/runtime/verbs/fake/libfake_verbs.so";
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
  state->gids = fresh.gids;
  state->failing_call = fresh.failing_call;
  state->most_registered = fresh.most_registered;
  state->failing_order = state->hanging_order = 0;
  state->gpu_begin = state->gpu_end = 0;
  state->peermem = nullptr;
  state->posted = false;
  state->reads = 0;
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

World::World(const VerbsOptions& options, std::chrono::seconds dead) {
  const net::SocketOptions sockets{.interface = "=lo", .dead = dead};
  VerbsOptions second = options;
  second.prefer = 1;
  far = Adapter::start(options, net::SocketNet::start(sockets, diagnostics), diagnostics);
  near = Adapter::start(second, net::SocketNet::start(sockets, diagnostics), diagnostics);
  INFO(text());
  REQUIRE((far != nullptr && near != nullptr));
  id = exposed->add(memory, data(), kWorldBytes);
  region = far->expose(data(), kWorldBytes, diagnostics);
  source = near->read_from(sources.data(), sources.size(), why);
  REQUIRE((region != nullptr && source != nullptr));
  window = std::make_unique<Window>(id, key(), kWorldBytes);
  end = await_verbs_lane(kNear, far, exposed, far_told.callback());
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
                          .failed = near_told.callback()},
                         near, find_source, kPatience, diagnostics);
}

uint64_t World::word(uint64_t offset) const { return load_acquire<uint64_t>(data() + offset); }

void fill(uint8_t* data, size_t count, uint64_t seed) {
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>((i + seed) * 2654435761u >> 16);
}

void check_counts(World& world) {
  uint64_t count = 0;
  std::vector<uint8_t> other(5 << 20);
  for (const size_t bytes : {1, 8, 64, 65, 4096, 262144, 262145, 1 << 20, (4 << 20) + 13}) {
    for (const uint64_t offset : {64, 100, 262144 - 8, 300'000}) {
      uint8_t* const data = count % 2 == 0 ? other.data() : world.sources.data() + offset;
      fill(data, bytes, count);
      INFO("put " << count + 1 << ": " << bytes << " bytes; " << world.text());
      REQUIRE(world.lane->put(world.at(offset), data, bytes, world.diagnostics));
      REQUIRE(world.lane->signal(world.at(0), ++count, world.diagnostics));
      uint64_t own = 0;
      REQUIRE(world.lane->complete(&own, count, world.diagnostics));
      await_count(world, 0, count);
      CHECK(world.word(0) == count);
      CHECK(std::equal(data, data + bytes, world.data() + offset));
      while (load_acquire<uint64_t>(&own) != count) std::this_thread::yield();
    }
  }
  CHECK(world.lane->flush(world.diagnostics));
}

}  // namespace mscclc::verbs::testing
