// For tests of lanes over verbs: both ends in one process, at two devices: fake ones, or those that
// MSCCLC_IBV_SO's library finds if it is set.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/verbs_end.h"
#include "runtime/network/verbs/verbs_lane.h"
#include "tests/fakes/verbs/fake_verbs.h"
#include "tests/helpers/network/lane_checks.h"

namespace mscclc::verbs::testing {

using net::testing::fill;
using net::testing::kFar;
using net::testing::kNear;
using net::testing::kWorldBytes;
using net::testing::Window;

constexpr std::chrono::milliseconds kPatience{120'000};

/// The library with fake devices; "": there are real ones, whose library the user names.
std::string fake_library();
/// The fake devices are as they come; nullptr: they are real.
fake::FakeVerbs* reset_fake();
/// As the environment says, with fake_library().
VerbsOptions base_options();
std::string text(const Diagnostics& diagnostics);

/// Memory of rank 3, and what rank 5 needs for a lane to it. The ends are at two devices.
struct World : net::testing::LaneMemory {
  World() : World(base_options()) {}
  /// `dead`: after which a machine or device that says nothing is given up.
  explicit World(const VerbsOptions& options, std::chrono::seconds dead = std::chrono::seconds{30});
  DeviceKey key() const { return {reinterpret_cast<uint64_t>(data()), region->remote_key()}; }
  void open();
  std::unique_ptr<Lane> open_with(const std::vector<uint8_t>& offer);

  std::string why;
  std::vector<uint8_t> sources = std::vector<uint8_t>(kWorldBytes);  ///< registered
  std::shared_ptr<Adapter> far, near;
  std::shared_ptr<const MemoryRegion> region, source;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

/// Puts of all sizes, from memory that the device reads and from other, each with a count after it:
/// what a count says is there.
void check_counts(World& world);

}  // namespace mscclc::verbs::testing
