// A rank as its blocks see it while a plan runs, and what a launch says: plain structs of addresses
// that the host fills in and every machine of processes reads (a CUDA kernel, the host device's
// blocks in shared memory). Addresses are those of the process that runs the rank; memory of peers
// is mapped there.
//
// Who owns what, per rank:
//   programs   the steps of each block (block_programs.h)
//   counts     arrived signals, semaphores, barriers: memory that blocks, and peers, change
//   calls      for each block the number of its present call, which it advances itself: packet
//              flags and scratch copies go by it, so that a captured launch may be replayed; and
//              what it has taken of the signals for which it alone waits
//   queue      what blocks hand to the rank's proxy, and how far it has come (port channels)
//   faults     one slot a block, in memory that the host reads while blocks run: which block waited
//              for what
#pragma once

#include <cstdint>

#include "executor/call.h"
#include "executor/interpreter/layout.h"

namespace mscclc::device {

struct ShortProgram;  // interpreter/short_steps.h
struct RowFunctions;  // rows/row_steps.h

/// A buffer that a rank's ops address, its own or a peer's.
struct BaseAddress {
  uint8_t* address;
  uint64_t copy_stride;
  uint64_t copies;
  /// First member of a switch operand: the address at which the switch itself reads and writes the
  /// buffers of all members (CUDA multicast); nullptr: go through the members one by one.
  uint8_t* multicast = nullptr;
};

/// This rank's end of a channel. Memory channels: the partner end adds to `arrived`; this end adds
/// to `*partner`. Port channels: the proxies do.
struct ChannelEnd {
  uint64_t* arrived;  ///< this end's own count of signals, in this rank's memory
  uint64_t* partner;  ///< the partner end's, in the peer's memory; nullptr: nothing waits there
  uint64_t taken;     ///< signals that waits have taken
  uint64_t port;      ///< not 0: what this end sends goes through the queue
};

struct Barrier {
  uint64_t arrived;  ///< blocks that have come, all meetings together
  uint64_t members;
};

/// What a block asks of its rank's proxy.
enum class PortWhat : uint32_t { put, signal, flush, put_and_signal };

struct PortRequest {
  PortWhat what;
  uint32_t channel;    ///< of this rank
  uint64_t to = 0;     ///< puts: of the peer's memory, which it names for the proxy, and which need
                       ///< not be mapped here
  uint64_t from = 0;   ///< puts
  uint64_t bytes = 0;  ///< puts
};

/// A request as it lies in the queue. The high bits of each word are the slot's turn: the proxy
/// sees of each word that it has come, so a block writes them in any order, and waits for none of
/// them to arrive. All are written each time, so that one of the turn before is never taken for a
/// new one.
struct alignas(32) PortSlot {
  static constexpr uint32_t kTurn = 57;  ///< the turn's first bit: below lies an address, or bytes
  static constexpr uint32_t kWords = 4;
  uint64_t words[kWords];
};

/// The requests of a rank, in the order in which blocks took numbers. A block may write request n
/// once *handled + capacity() > n. The proxy handles requests in order and then counts them; copies
/// have only begun by then. Request n, a flush of channel c, sets flushed[c] to n + 1 when all that
/// c was asked for before it, by whatever block, has been read from its source.
struct PortQueue {
  PortSlot* slots;          ///< host memory that both see
  uint64_t bits;            ///< there are 2^bits
  uint64_t* claimed;        ///< the rank's memory: numbers taken by blocks
  uint64_t* seen;           ///< the rank's memory: *handled, as some block saw it; may lag
  uint64_t* flushed;        ///< the rank's memory, by channel
  const uint64_t* handled;  ///< host memory: requests that the proxy has handled

  MSCCLC_HD uint64_t capacity() const { return uint64_t{1} << bits; }
  MSCCLC_HD PortSlot& slot(uint64_t number) const { return slots[number & (capacity() - 1)]; }
  /// Not 0 in the first turn, as new slots are.
  MSCCLC_HD uint64_t turn(uint64_t number) const {
    return ((number >> bits) + 1) << PortSlot::kTurn;
  }
};

/// REQUIRES: addresses and bytes below 2^PortSlot::kTurn.
MSCCLC_HD inline PortSlot slot_of(const PortRequest& request, uint64_t turn) {
  const uint64_t order = uint64_t{static_cast<uint32_t>(request.what)} << 32 | request.channel;
  return {{request.to | turn, request.from | turn, request.bytes | turn, order | turn}};
}

/// What a block waits for; `skipped`: it does not, as the call was given up before the block began
/// (host device).
enum class WaitFor : uint32_t {
  nothing,
  signal,
  semaphore,
  barrier,
  packet,
  queue,
  flush,
  flag,
  skipped
};

/// Why a block gave up; `what` nothing: it has not.
struct Fault {
  WaitFor what;
  uint32_t index;  ///< channel, semaphore or barrier of this rank; queue, flush: channel; flag: its
                   ///< number over all arrays; packet: the low half of the address of the unit that
                   ///< has not come ...
  uint32_t op;     ///< index among the rank's ops in the IR
  uint32_t high;   ///< ... and the high half
  uint64_t expected;  ///< count (at least), or packet flag; a sentinel packet is there when what
                      ///< is seen differs
  uint64_t seen;
};
static_assert(sizeof(Fault) == 32);

/// Where the packet that a fault is about would lie.
inline uint64_t unit_of(const Fault& fault) { return uint64_t{fault.high} << 32 | fault.index; }

/// One rank, in memory of its device. Blocks read it seldom: what they need for their steps is in
/// their programs.
struct RankContext {
  ChannelEnd* channels;
  PortQueue queue;
  Fault* faults;                       ///< by block; host memory that both see
  const uint32_t* abort;               ///< host memory: not 0: every wait gives up
  const RowFunctions* rows = nullptr;  ///< where the machine is a host's, and the plan has any
};

/// Bit i, from 1 on, is that of packet format i (uses_of()).
inline constexpr uint32_t kUsesFormats = 1 + static_cast<uint32_t>(packet_formats().size());

/// What the blocks of a launch do, as bits: a kernel that offers no more may be faster.
enum Uses : uint32_t {
  kUsesSums = 1,                            ///< reductions
  kUsesProxy = 1u << kUsesFormats,          ///< port channels
  kUsesSwitch = 2u << kUsesFormats,         ///< ops of switch channels
  kUsesUnits = 4u << kUsesFormats,          ///< buffers that hold a few units of a pipeline
  kUsesUneven = 8u << kUsesFormats,         ///< plain data, not from and to multiples of 16 bytes
  kUsesOtherSums = 16u << kUsesFormats,     ///< reductions that are always another than sum
  kUsesCopies = 32u << kUsesFormats,        ///< buffers whose copies are no power of two
  kUsesLong = 64u << kUsesFormats,          ///< packets: more than kMaxShort in one run
  kUsesOdd = 128u << kUsesFormats,          ///< plain data, not from multiples of 4 bytes
  kUsesSentPackets = 256u << kUsesFormats,  ///< packets that the proxy sends as they lie
  kUsesTrees = 512u << kUsesFormats,        ///< reductions as trees, and exact ones
  kUsesRows = 1024u << kUsesFormats,        ///< row functions, which no kernel for all plans has
  kUsesFlags = 2048u << kUsesFormats,       ///< flags that the caller gives
  kUsesAll = (4096u << kUsesFormats) - 1,
};

/// Units of packets in a run that a kernel may count in 32 bits, eight threads to a unit, with room
/// for the strides of blocks.
inline constexpr uint64_t kMaxShort = (uint64_t{1} << 29) - 1024;

/// The bit of a packet format; 0 for plain data.
constexpr uint32_t uses_of(PacketFormat format) {
  return format == PacketFormat::none ? 0 : 1u << static_cast<uint32_t>(format);
}

/// The bits of all packet formats for whose rows pick(row) is true.
template <class Pick>
constexpr uint32_t uses_of_formats(Pick pick) {
  uint32_t uses = 0;
  for (const PacketFormatInfo& row : packet_formats()) uses |= pick(row) ? uses_of(row.format) : 0;
  return uses;
}

/// Bytes of the packed programs of all blocks that can travel with a launch: what is left of 4 KiB
/// of parameters of a CUDA kernel.
inline constexpr uint32_t kMaxCarried = 3616;

/// Counts that a block keeps from call to call, at most: a warp reads them at once, and they lie in
/// shared memory.
inline constexpr uint32_t kMaxCounts = 32;

/// One launch: one call on one rank, whose blocks are those of the grid.
struct LaunchPlan : Call {
  const RankContext* context = nullptr;

  /// By block of the grid, `call_counts` each: how many calls it has had, then the slots of
  /// WaitSlots.
  uint64_t* calls = nullptr;
  uint32_t call_counts = 1;

  uint32_t program_bytes = 0;         ///< of each block
  const uint8_t* programs = nullptr;  ///< by block of the grid
  bool carried = false;  ///< `programs` is in the caller's memory and travels with the launch
  uint32_t uses = kUsesAll;
  /// What `programs` say as a short program, which travels with the launch in their place where the
  /// machine can (CUDA); nullptr: they have none, or it was not looked for.
  const ShortProgram* in_short = nullptr;

  /// The launch may begin before the previous kernel on its stream has ended, where both are
  /// ours (CUDA: programmatic dependent launch). Its blocks fetch what calls do not change, then
  /// wait for that end.
  bool early = false;
  /// Where that is not known (in captures), begin early also after kernels of the user's: the
  /// caller says that the one ahead lets it. EarlyLaunch::after_any, for one launch.
  bool previous_allows_early = false;
  /// Its blocks let the next launch begin as soon as the previous kernel has ended; otherwise after
  /// the steps with kFreesNext.
  bool frees_next = false;
  /// Each block adds one when it begins; nullptr: not wanted.
  uint32_t* begun = nullptr;
  /// By block of the grid, `stamp_words` each: when the block began its steps (stamps.h); nullptr:
  /// nowhere. REQUIRES: stamp_words is at least kStampHead.
  uint64_t* stamps = nullptr;
  uint32_t stamp_words = 0;

  uint32_t blocks = 0, threads = 0;
  uint32_t most_blocks = 0;  ///< such blocks that the device holds at once; 0: not known
  uint32_t ranks_here = 1;   ///< ranks of the communicator that this process runs on the device
  /// Ranks may launch it, and others that say so, in different orders: they all fit together.
  bool any_order = false;
  uint64_t patience = 0;  ///< nanoseconds after which a wait is given up; 0: never
};

}  // namespace mscclc::device
