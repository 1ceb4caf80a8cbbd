// Equal pieces of device memory, for the programs of calls: given back and used again, so that a
// new call seldom asks the device for memory.
//
// A program is read when its launch runs, which may be long after the call has been dropped. So a
// slot that has been launched is not handed out again before that launch is known to have ended.
// Launches of an executable run one after the other: every few of them the pool marks the stream,
// and a mark that has been reached covers all launches before it. There is a bound on the marks,
// so that launches without end take no memory. What a graph has captured may run again until the
// graph is gone, with all that was made from it. Where the device cannot tell that, such a slot
// stays out of use for as long as the pool lives.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "executor/launch.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Thread safety: from any thread.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  /// A slot in use.
  struct Entry {
    uint8_t* data = nullptr;
    uint64_t launch = 0;  ///< number of its last launch outside of graphs; 0: none
    bool lost = false;    ///< a graph has it, and nobody tells when that is gone
  };
  /// Given back when its last owner has gone.
  using Slot = std::shared_ptr<Entry>;

  /// Where slots lie: gives so many bytes of device memory; nullptr: reported.
  using Source = std::function<std::shared_ptr<Memory>(uint64_t bytes, Diagnostics&)>;

  SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes, Source source);
  /// A slot that no launch reads any more. nullptr: reported.
  [[nodiscard]] Slot take(Diagnostics& diagnostics);
  /// A launch of what lies in a slot has just been put on a stream.
  void launched(Entry& slot, StreamHandle stream);
  uint64_t slot_bytes() const { return slot_bytes_; }

  /// Launches from one mark to the next.
  static constexpr uint64_t kMarkEvery = 8;
  /// Marks that are not known to have been reached, at most.
  static constexpr size_t kMostMarks = 64;

 private:
  struct Marked {
    uint64_t launch;
    std::unique_ptr<StreamMark> mark;
  };

  /// Graphs that have a slot.
  struct InGraphs {
    uint32_t graphs = 0;
    std::optional<Entry> given_back;  ///< its last owner has gone
  };
  /// Slots of graphs that are gone, once for each. Graphs hold this, and not the pool, whose memory
  /// must not be freed where they end.
  struct Gone {
    std::mutex mutex;
    std::vector<uint8_t*> slots;
  };

  [[nodiscard]] bool grow(Diagnostics& diagnostics);
  void give(const Entry& slot);
  void give_back(const Entry& slot);
  void captured(Entry& slot, StreamHandle stream);
  void collect();
  void collect_from_graphs();

  const std::shared_ptr<Device> device_;
  const uint64_t slot_bytes_;
  const Source source_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Memory>> slabs_;
  std::vector<uint8_t*> free_;
  std::vector<Entry> given_back_;  ///< whose launches may not have ended
  std::map<uint8_t*, InGraphs> in_graphs_;
  const std::shared_ptr<Gone> gone_ = std::make_shared<Gone>();
  uint64_t launches_ = 0;     ///< so many have been put on streams ...
  uint64_t ended_ = 0;        ///< ... and so many are known to have ended
  std::deque<Marked> marks_;  ///< not reached when last asked
  std::vector<std::unique_ptr<StreamMark>> spare_marks_;
};

}  // namespace mscclc
