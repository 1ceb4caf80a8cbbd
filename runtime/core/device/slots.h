// Equal pieces of device memory, for the programs of calls: given back and used again, so that a
// new call seldom asks the device for memory.
//
// A program is read when its launch runs, which may be long after the call has been dropped. So a
// slot that has been launched is not handed out again before that launch is known to have ended.
// Launches of an executable run one after the other: every few of them the pool marks the stream,
// and a mark that has been reached covers all launches before it. There is a bound on the marks,
// so that launches without end take no memory.
//
// What a graph has captured may run again until the graph is gone, with all that was made from it;
// later calls with the same programs share it, so that capturing the same calls again takes no
// memory. Where the end of a graph is unknown (GraphsEnd), its slot stays as it is for as long as
// the pool lives.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/launch.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Does a pool learn when a graph is gone (Device::at_end_of_graph())?
enum class GraphsEnd : uint8_t {
  known,
  unknown,  ///< graphs own nothing for it: docs/records/rejected.md
};

/// Thread safety: from any thread.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  /// A slot in use.
  struct UsedSlot {
    uint8_t* data = nullptr;
    uint64_t launch = 0;    ///< number of its last launch outside of graphs; 0: none
    bool captured = false;  ///< by a graph: what it holds stays until that is gone
  };
  /// Given back when its last owner has gone.
  using Slot = std::shared_ptr<UsedSlot>;

  /// Where slots lie: gives so many bytes of device memory; nullptr: reported.
  using Source = std::function<std::shared_ptr<Memory>(uint64_t bytes, Diagnostics&)>;

  SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes, Source source,
           GraphsEnd graphs_end);
  /// A slot that holds `content`, of at most slot_bytes(): one that a graph has captured with it,
  /// or one that no launch reads any more, to which it is written. nullptr: reported.
  [[nodiscard]] Slot take(std::span<const uint8_t> content, Diagnostics& diagnostics);
  /// A launch of `content`, which lies in the slot, has just been put on a stream.
  void launched(UsedSlot& slot, std::span<const uint8_t> content, StreamHandle stream);
  uint64_t slot_bytes() const { return slot_bytes_; }

  /// Launches from one mark to the next.
  static constexpr uint64_t kMarkEvery = 8;
  /// Marks that are not known to have been reached, at most.
  static constexpr size_t kMaxMarks = 64;

 private:
  class Gone;

  struct Marked {
    uint64_t launch;
    std::unique_ptr<StreamMark> mark;
  };
  /// What graphs have of a slot.
  struct Captured {
    std::string content;
    uint32_t owners = 0;  ///< of Slots
    uint32_t graphs = 0;  ///< launches in graphs that are there
    uint64_t launch = 0;  ///< UsedSlot's, of owners that have gone
    bool stays = false;   ///< a graph has it whose end is unknown
  };
  using AllCaptured = std::map<uint8_t*, Captured>;

  [[nodiscard]] bool grow(Diagnostics& diagnostics);
  [[nodiscard]] uint8_t* take_free(Diagnostics& diagnostics);
  Slot owned(const UsedSlot& slot);
  void give(const UsedSlot& slot);
  void give_back(const UsedSlot& slot);
  void capture(UsedSlot& slot, std::span<const uint8_t> content, StreamHandle stream);
  void collect();
  void collect_from_graphs();
  void release_if_unused(AllCaptured::iterator captured);

  const std::shared_ptr<Device> device_;
  const uint64_t slot_bytes_;
  const Source source_;
  const std::shared_ptr<Gone> gone_;  ///< nullptr: the ends of graphs are unknown
  std::mutex mutex_;
  std::vector<std::shared_ptr<Memory>> slabs_;
  std::vector<uint8_t*> free_;
  std::vector<UsedSlot> given_back_;  ///< whose launches may not have ended
  AllCaptured captured_;
  std::unordered_map<std::string_view, uint8_t*> by_content_;  ///< of captured_
  uint64_t launches_ = 0;     ///< so many have been put on streams ...
  uint64_t ended_ = 0;        ///< ... and so many are known to have ended
  std::deque<Marked> marks_;  ///< not reached when last asked
  std::vector<std::unique_ptr<StreamMark>> spare_marks_;
};

}  // namespace mscclc
