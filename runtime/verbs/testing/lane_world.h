// For tests of lanes over verbs: both ends in one process, at two devices: fake ones, or those that
// MSCCLC_IBV_SO's library finds if it is set.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/testing/told.h"
#include "runtime/verbs/adapter.h"
#include "runtime/verbs/fake/fake_verbs.h"
#include "runtime/verbs/verbs_end.h"
#include "runtime/verbs/verbs_lane.h"

namespace mscclc::verbs::testing {

constexpr uint64_t kWorldBytes = 8 << 20;  ///< of memory that is written
constexpr uint32_t kFar = 3, kNear = 5;    ///< ranks
constexpr std::chrono::milliseconds kPatience{60'000};

/// The library with fake devices; "": there are real ones, whose library the user names.
std::string fake_library();
/// The fake devices are as they come; nullptr: they are real.
fake::FakeVerbs* reset_fake();
/// As the environment says, with fake_library().
VerbsOptions base_options();
std::string text(const Diagnostics& diagnostics);

/// Memory of rank 3 as rank 5 knows it: nobody may access it there.
class Window final : public NamedMemory {
 public:
  Window(ExposedId id, const DeviceKey& key, uint64_t bytes) : NamedMemory(id, key) {
    bytes_ = bytes;
  }
};

/// Memory of rank 3, and what rank 5 needs for a lane to it. The ends are at two devices.
struct World {
  World() : World(base_options()) {}
  /// `dead`: after which a machine or device that says nothing is given up.
  explicit World(const VerbsOptions& options, std::chrono::seconds dead = std::chrono::seconds{30});
  DeviceKey key() const { return {reinterpret_cast<uint64_t>(data()), region->remote_key()}; }
  void open();
  std::unique_ptr<Lane> open_with(const std::vector<uint8_t>& offer);
  RemotePlace at(uint64_t offset) const { return {window.get(), offset}; }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory->data()); }
  uint64_t word(uint64_t offset) const;
  std::string text() const { return testing::text(diagnostics); }

  Diagnostics diagnostics;
  std::string why;
  std::shared_ptr<std::vector<uint64_t>> memory =
      std::make_shared<std::vector<uint64_t>>(kWorldBytes / 8);
  std::vector<uint8_t> sources = std::vector<uint8_t>(kWorldBytes);  ///< registered
  std::shared_ptr<ExposedMemory> exposed = std::make_shared<ExposedMemory>();
  ExposedId id = 0;
  std::unique_ptr<Window> window;
  std::atomic<bool> over{false};
  Told far_told{kPatience}, near_told{kPatience};
  std::shared_ptr<Adapter> far, near;
  std::shared_ptr<const MemoryRegion> region, source;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

void fill(uint8_t* data, size_t count, uint64_t seed);
/// Puts of all sizes, from memory that the device reads and from other, each with a count behind
/// it: what a count says is there.
void check_counts(World& world);

}  // namespace mscclc::verbs::testing
