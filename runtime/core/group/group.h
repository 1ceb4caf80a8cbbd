// What a communicator shares with all that it has made: bootstrap, device, failure, and exchanges
// in which every rank learns whether every rank could do its part.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "runtime/api/lane.h"
#include "runtime/core/device/remote_regions.h"
#include "runtime/core/group/buffer_overlaps.h"
#include "runtime/core/group/call_board.h"
#include "runtime/core/group/copy_calls.h"
#include "runtime/core/group/failure.h"
#include "runtime/core/group/far_calls.h"
#include "runtime/core/group/memory_pool.h"
#include "runtime/core/group/pause.h"
#include "runtime/support/memory/handle.h"
#include "runtime/support/observe/clock_marks.h"
#include "runtime/support/observe/flight_recorder.h"
#include "runtime/support/observe/one_thread.h"

namespace mscclc {

/// Memory of this rank that peers have mapped, and theirs as mapped here.
struct SharedBuffer {
  uint8_t* address = nullptr;  ///< own
  uint64_t bytes = 0;
  std::unique_ptr<HeldMemory> held;            ///< own; nullptr: 0 bytes
  std::vector<std::unique_ptr<Memory>> peers;  ///< by rank; nullptr: own, or 0 bytes
  /// The whole of it, joined at a switch as the only region, by members; nullptr: that cannot be.
  std::map<std::vector<uint32_t>, std::unique_ptr<SwitchTeam>> teams;
};

/// What writes, and reads, a peer's memory.
enum class ReachedBy {
  blocks,  ///< blocks, or the proxy: it must be mapped
  lanes    ///< only the proxy
};

/// A block of a peer's pool, as it is reached from here.
struct PeerBlock {
  uint32_t peer;
  uint64_t number;
  ReachedBy reached;
  auto operator<=>(const PeerBlock&) const = default;
};

/// Ranks that were not able to do their part of a step, and say the same of it.
struct Unable {
  std::string text;
  std::vector<uint32_t> ranks;
};

/// The names of plans that were loaded, by the numbers of their loads. Thread safety: from any
/// thread.
class PlanNames {
 public:
  void add(uint32_t load, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_[load] = name;
  }
  /// "": none has this number.
  std::string find(uint32_t load) const {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(load);
    return found == names_.end() ? "" : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::string> names_;
};

/// MSCCLC_FLIGHT_FILE: nothing is to be written.
inline constexpr std::string_view kNoFlightFile = "none";

/// Thread safety: one thread at a time, the communicator's; fail() and rank() from any.
struct RankGroup {
  std::unique_ptr<Bootstrap> bootstrap;
  std::shared_ptr<Device> device;
  /// Memory of peers that this rank's blocks can name.
  const std::shared_ptr<RemoteRegions> regions = std::make_shared<RemoteRegions>();
  std::shared_ptr<Failure> failure;
  /// Device memory that peers map, and what only this rank's blocks see. Held by what may grow.
  const std::shared_ptr<MemoryPool> shared_memory = std::make_shared<MemoryPool>();
  const std::shared_ptr<MemoryPool> own_memory = std::make_shared<MemoryPool>();
  /// What calls that follow one another have in turn, as nothing of it is accessed outside of the
  /// call: a plan's staging of one side or two, then scratch.
  std::weak_ptr<PoolBlock> in_turn[3];
  /// Blocks of peers that are mapped here, while they are in use.
  std::map<PeerBlock, std::weak_ptr<const Memory>> peer_blocks;
  std::chrono::milliseconds timeout;
  std::vector<Link> links;              ///< by rank: what joins this device to that one's
  LinkKind worst_link = LinkKind::own;  ///< of any two ranks: the same on all
  std::vector<uint32_t> node_of;        ///< Communicator::nodes()
  bool in_one_place = false;            ///< Communicator::in_one_place()
  std::vector<uint32_t> beside;  ///< the ranks that share memory of the host, this one included
  /// Of the calls of executables that are loaded in turn; nullptr: no rank is beside this one.
  std::unique_ptr<CallBoard> board;
  /// The same calls, compared with what comes over lanes; nullptr: no lane leads anywhere.
  std::shared_ptr<FarCalls> far_calls;
  /// Notes something on the lanes that were used last, of the executable of this number.
  std::function<void(const LaneNote&)> note_far;
  uint32_t notes_far = 0;
  PlanNames plan_names;
  bool check_calls = false;       ///< MSCCLC_CHECK_CALLS: launches are compared
  uint64_t checked_launches = 0;  ///< so far
  uint32_t ranks_here = 1;  ///< ranks whose blocks share the room of this one's: Device::room()
  uint32_t loads = 0;       ///< Executable::State::number of the last
  /// Registered buffers by number, which is the same on all ranks.
  std::map<uint64_t, std::shared_ptr<SharedBuffer>> buffers;
  uint64_t next_buffer = 0;
  BufferOverlaps overlaps;  ///< of these
  /// Buffers and members that all ranks have tried to join: the same on all of them.
  std::set<std::pair<uint64_t, std::vector<uint32_t>>> joined;

  CopyCalls copy_calls;
  Pause pause;  ///< of calls of executables that are loaded in turn

  OneThread one_thread;
  FlightRecorder recorder;
  std::string flight_file;  ///< MSCCLC_FLIGHT_FILE
  std::string trace_file;   ///< MSCCLC_TRACE; "": nothing is to be written
  ClockMarks marks;         ///< of exchanges
  uint64_t digest = 0;      ///< of the first one's messages

  /// A call has been put on a stream.
  void launched(StreamHandle stream);
  /// There are calls on it whose end has not been waited for.
  bool is_busy(StreamHandle stream) const;
  /// All calls on a stream have ended. Where none runs any more, what has been retired goes.
  void ended(StreamHandle stream);
  /// Something that calls may still use goes when they have ended: at once, where none runs; at the
  /// next ended() or release(); or after waiting, where the communicator has gone.
  void retire(std::shared_ptr<void> used);
  /// Waits until nothing runs, and lets go of what has been retired; keeps it where that fails: for
  /// good, where the communicator has gone.
  void release();
  /// The communicator goes: there will be no more release().
  void close();

  uint32_t rank() const { return bootstrap->rank(); }
  uint32_t size() const { return bootstrap->size(); }

  /// Collective: gives every rank the messages of all. `able`: this rank could make its message;
  /// otherwise the others learn the last error of `diagnostics`. False if any rank was not able:
  /// reported (peer-failed) by the others, once for those that say the same.
  [[nodiscard]] bool exchange(bool able, std::span<const uint8_t> own, std::string_view what,
                              std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics);
  /// Adds what call by name of this rank a step belongs to, where ranks have made different calls.
  void note_call(const std::string& call, Diagnostics& diagnostics) const;
  /// Collective: true on all ranks if it is on all.
  [[nodiscard]] bool agree(bool able, std::string_view what, Diagnostics& diagnostics);
  /// Says which of the joined buffers are still here, by a byte each.
  void append_joined(std::vector<uint8_t>& message) const;
  /// Takes what every rank has said from the front of its message, and forgets joined buffers that
  /// no rank has any more. False: a message is cut off.
  [[nodiscard]] bool forget_joined(std::vector<std::vector<uint8_t>>& messages);
  /// Blocks of this rank have given up, or were made to: learns, with the other ranks, which rank
  /// did not answer. `awaited`: ranks that they waited for. `wait`: some seconds at most for the
  /// other ranks; otherwise failure->is_open() until they have spoken and it is asked again.
  void report_hang(const std::set<uint32_t>& awaited, const std::string& why, bool wait);
  /// Ends everything, here and on the other ranks.
  void fail(const std::string& code, const std::string& why);
  /// The same, for the last error of these.
  void fail(const Diagnostics& diagnostics);

 private:
  /// An exchange did not come about, as the bootstrap says. `able`: this rank could do its part;
  /// otherwise `diagnostics` hold why not.
  void report_broken(bool able, Diagnostics said, Diagnostics& diagnostics) const;
  void report_unable(const std::vector<Unable>& unable, std::string_view what,
                     Diagnostics& diagnostics) const;

  /// Streams on which calls may still run, and that the communicator has not waited for.
  std::vector<StreamHandle> busy_streams_;
  std::vector<std::shared_ptr<void>> retired_;
  bool closed_ = false;
  std::atomic<bool> others_wait_{false};  ///< to hear of a failure
};

/// Maps a peer's memory, or makes it known to lanes: that is all where the link gives no access.
/// Errors name the peer. Ends when the communicator fails.
[[nodiscard]] std::unique_ptr<Memory> import_from(const RankGroup& group, uint32_t peer,
                                                  const MemoryHandle& handle,
                                                  Diagnostics& diagnostics,
                                                  ReachedBy reached = ReachedBy::blocks);
/// Maps `bytes` bytes of a peer's pool: its block, if that is not mapped yet. nullptr: reported
/// (bad-handle, or as import_from()).
[[nodiscard]] std::shared_ptr<Memory> import_piece(RankGroup& group, uint32_t peer,
                                                   const PieceHandle& piece, uint64_t bytes,
                                                   ReachedBy reached, Diagnostics& diagnostics);
/// Maps what other ranks have encoded; an empty handle is no memory. `peers` and `handles` by rank.
[[nodiscard]] bool import_all(const RankGroup& group,
                              const std::vector<std::vector<uint8_t>>& handles,
                              std::vector<std::unique_ptr<Memory>>& peers,
                              Diagnostics& diagnostics);

}  // namespace mscclc
