// What tests of lanes over sockets and over verbs share: memory that a lane writes, and checks of
// what comes there.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/lane.h"
#include "runtime/network/exposed_memory.h"
#include "tests/helpers/runtime/reports.h"

namespace mscclc::net::testing {

constexpr uint64_t kWorldBytes = 8 << 20;  ///< of memory that is written
constexpr uint32_t kFar = 3, kNear = 5;    ///< ranks

/// Memory of rank 3 as rank 5 knows it: it must not be accessed there.
class Window final : public NamedMemory {
 public:
  Window(ExposedId id, uint64_t bytes, std::optional<DeviceKey> key = std::nullopt)
      : NamedMemory(id, key) {
    bytes_ = bytes;
  }
};

/// Memory of rank 3, and what both ends of the lane to it report. Outlives both.
struct LaneMemory {
  /// `patience`: with what takes far too long.
  explicit LaneMemory(std::chrono::milliseconds patience);
  RemotePlace at(uint64_t offset) const { return {window.get(), offset}; }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory->data()); }
  uint64_t word(uint64_t offset) const;
  /// Waits for a count as a block does.
  void await_count(uint64_t offset, uint64_t value);
  /// All that was reported.
  std::string text() const;

  const std::chrono::milliseconds patience;
  Diagnostics diagnostics;
  std::shared_ptr<std::vector<uint64_t>> memory =
      std::make_shared<std::vector<uint64_t>>(kWorldBytes / 8);
  std::shared_ptr<ExposedMemory> exposed = std::make_shared<ExposedMemory>();
  ExposedId id = 0;
  std::unique_ptr<Window> window;  ///< the test makes it
  std::atomic<bool> over{false};
  Reports far_reports, near_reports;
  /// For the far end: what it was noted last (its first word), and whether it goes on.
  LaneNoted take_notes();
  std::atomic<uint64_t> noted{0};
  std::atomic<bool> refuses_notes{false};
  std::atomic<bool> lacks_memory{false};  ///< for notes
};

void fill(uint8_t* data, size_t count, uint64_t seed);

/// Puts of all sizes, each with a count after it: what a count says is there. `source`: where a put
/// is from, by its number and the place that it goes to.
void check_counts(LaneMemory& to, Lane& lane,
                  const std::function<uint8_t*(uint64_t put, uint64_t offset)>& source);
/// Notes that are taken before what is ordered after them; at last one that the far end refuses,
/// and nothing of what is ordered after that comes. `source`: kWorldBytes that the lane may read.
void check_notes(LaneMemory& to, Lane& lane, uint8_t* source);
/// A far end that finds no memory for a note ends the lane, and says so to both, for which there is
/// no memory at first either.
void check_lack_of_memory(LaneMemory& to, Lane& lane);
/// The most bytes of such a put.
constexpr size_t kMaxChecked = 5 << 20;

/// What is not for the lane it refuses, and goes on.
void check_refused_places(LaneMemory& to, Lane& lane);

/// All orders of a lane count as done when its far end has gone in good order. `source`:
/// kWorldBytes to put.
void check_needs_no_more(LaneMemory& to, Lane& lane, const uint8_t* source);

}  // namespace mscclc::net::testing
