// A tiny plan as the explorer runs it: for each strand the steps of one call, with the cells that
// they touch. Not for use outside the explorer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program/program.h"
#include "tests/explore/explore.h"
#include "tests/explore/shape.h"

namespace mscclc::explorer {

inline constexpr uint32_t kStrands = 2;

/// A cell of memory; call k uses its copy k % copies.
struct Cell {
  uint32_t first, stride, copies;
  PacketFormat packets;
  uint32_t at(uint64_t call) const { return first + static_cast<uint32_t>(call % copies) * stride; }
};

/// A cell of the caller's input or output, and which of its bytes it holds.
struct CallerCell {
  Cell cell;
  uint32_t chunk = 0, offset = 0;
};

/// Cells that an op moves together.
struct Element {
  std::vector<Cell> dsts, srcs;
  /// The op has no data there: they lie beyond the end of one of its plain chunks, or of every
  /// chunk of the message, where nothing is but what fills up a granule of scratch, or a unit of
  /// packets. Packets are sent and polled all the same; what is stored is nothing.
  bool hollow = false;
};

struct Step {
  enum class Kind : uint8_t {
    enter,    // a strand: waits until its rank has begun the call
    access,   // reads, adds up, writes
    poll,     // waits for the packets that the next access reads
    signal,   // index: the partner's end of a memory channel
    wait,     // index: the own end
    release,  // index: semaphore
    acquire,
    sync,    // index: how many of the block's have been before
    meet,    // index: barrier
    post,    // index: port; elements: what to put; none: a signal
    flush,   // index: port
    begin,   // a caller: fills input and destroys output
    end,     // a caller: waits for its strands, and reads output
    serve,   // a proxy: does what was posted first
    await,   // index: a flag
    notify,  // index: a flag
    raise,   // the other side of a flag of the input: writes the region, then raises it
    take,    // the other side of a flag of the output: reads the region
  };
  Kind kind;
  uint32_t index = 0;
  bool relaxed = false;
  std::vector<Element> elements = {};
  const Op* op = nullptr;
  uint32_t event = 0;  ///< of an access of call 0; those of the next call follow all of this one
  bool writes_packets = false;
  std::vector<CallerCell> region = {};  ///< raise, take
  /// Others may come before it: it may block, or a poll may see it done or not.
  bool stands_alone() const {
    if (kind == Kind::access) return writes_packets;
    return kind != Kind::signal && kind != Kind::release && kind != Kind::notify;
  }
};

struct Process {
  enum class Kind : uint8_t { caller, strand, proxy, other };  // other: the other side of a flag
  Kind kind;
  uint32_t rank;
  uint32_t block = 0, strand = 0;  ///< strand
  uint32_t port = 0;               ///< proxy
  /// Proxy: does what was posted second, if nothing orders it after the first. It comes after the
  /// port's own.
  bool overtakes = false;
  std::vector<Step> steps = {};  ///< of one call
};

/// A flag of an external array at a rank.
struct FlagModel {
  uint32_t raises = 1;              ///< in a call
  std::vector<uint32_t> waits_for;  ///< flags that the other side may wait for before it raises it
};

/// Barriers are known by their blocks.
struct Barrier {
  uint32_t rank;
  std::vector<uint32_t> blocks;
};

struct Model {
  std::vector<Process> processes;
  uint32_t cells = 0;
  uint32_t events = 0;                  ///< of one call
  std::vector<uint32_t> rank_of_event;  ///< whose process it is of
  std::vector<const Step*> of_event;    ///< by event of call 0
  std::vector<Barrier> barriers;
  std::vector<uint32_t> first_channel, first_semaphore;  ///< by rank: global indexes
  std::vector<FlagModel> flags;                          ///< of all ranks, one after the other
  uint32_t flags_of_rank = 0;
  uint32_t channels = 0, semaphores = 0;
  std::vector<uint32_t> partner;                    ///< by channel: the other end
  std::vector<uint32_t> initial;                    ///< by semaphore
  std::vector<uint32_t> credits;                    ///< by channel
  std::vector<std::vector<CallerCell>> buffers[2];  ///< by side and rank: cells of chunk 0, 1, …
};

/// Which strand of a block waits, signals, releases, and has to do with ports: no thread is
/// promised, only that one has to do with all ports.
enum class Serving : uint8_t {
  by_one,    ///< strand 0
  by_two,    ///< strand 0 waits, the other one does the rest
  in_turns,  ///< another one from op to op and from target to target; at ports strand 1
};
inline constexpr Serving kServings[] = {Serving::by_one, Serving::by_two, Serving::in_turns};

/// Nothing if there would be more cells or steps than are looked at. REQUIRES: can_model().
std::optional<Model> make_model(const Program& program, const ExploreOptions& options,
                                Serving serving);

/// In a pipeline every op moves as many chunks as the pipeline is over.
bool can_model(const Program& program);

}  // namespace mscclc::explorer
