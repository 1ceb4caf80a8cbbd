// The state of a simulation in virtual time, and the parts of it: events, blocks, messages, ports.
// For timeline.cc and the files beside it; what it does is said in timeline.h.
#pragma once

#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "executor/cost/arrivals.h"
#include "executor/cost/packet_arrows.h"
#include "executor/cost/shared_rate.h"
#include "executor/cost/slots.h"
#include "executor/cost/timeline.h"
#include "executor/cost/work.h"

namespace mscclc::cost {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

inline double ns(uint64_t n) { return static_cast<double>(n); }

enum class EventKind : uint8_t {
  go_on,        ///< block: its step or wait is over
  part_over,    ///< transfer: one of what it waits for
  rate,         ///< shared: a transfer may have ended
  begun,        ///< message: the first packets come
  come,         ///< message: all packets, or a signal
  served,       ///< message: the proxy has done a request
  copy_begins,  ///< rank: its copy engine
};

/// Of two at the same time the one that was pushed first comes first.
struct Event {
  double at;
  uint64_t order : 56;
  uint64_t kind_bits : 8;
  uint32_t what, version;
  EventKind kind() const { return static_cast<EventKind>(kind_bits); }
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};
static_assert(sizeof(Event) == 24);

/// Something on its way: packets, a signal, a request to a proxy.
struct Message {
  uint32_t record = kNoRecord;
  double sent = 0;
  uint32_t hops = 0;
  uint32_t rank = 0;     ///< packets and signals: where they come to; requests: whose proxy
  uint32_t channel = 0;  ///< signals: the end there; requests: this rank's
  bool signal = false, request = false;
  std::vector<PacketRange> slots;
  uint64_t bytes = 0;
  bool in_gpus = false;  ///< Request::in_gpus
  uint32_t peer = 0;
};

/// By whom something has come.
struct From {
  uint32_t record = kNoRecord;
  uint32_t hops = 0;
  double sent = 0, came = 0;
};

/// What has come at an end or a semaphore, and who waits.
struct Count {
  uint64_t come = 0;
  std::deque<From> from;  ///< of those not yet taken
  std::deque<uint32_t> waiting;
};

struct BarrierState {
  uint32_t arrived = 0;
  uint32_t hops = 0;
  std::vector<uint32_t> waiting;
};

/// A port channel's requests that are not done.
struct Port {
  struct Item {
    bool signal = false, done = false;
    uint32_t message = 0;
  };
  std::deque<Item> items;
  uint32_t puts = 0;
  std::vector<uint32_t> flushing;
};

enum class Phase : uint8_t { fetch, targets, polls, work, last_polls };

struct Block {
  uint32_t rank = 0, block = 0;
  uint32_t op = 0, end = 0;
  uint32_t body = 0, body_end = 0;  ///< of the pipeline at hand; body_end 0: none
  uint64_t rounds_left = 0;
  uint32_t round = 0;
  device::Frame frame;
  uint64_t call = 0;
  Phase phase = Phase::fetch;
  uint32_t target = 0;
  uint32_t open = 0;    ///< parts of its work that are not over
  bool stored = false;  ///< at other GPUs, since the last fence
  uint32_t hops = 0;
  uint32_t record = kNoRecord;       ///< of its step, in the first call
  uint32_t last_record = kNoRecord;  ///< of the one before
  StepRecord now;
  Work work;
};

/// A copy, or a message between nodes.
struct Transfer {
  uint32_t message;
  uint32_t open;       ///< parts of it that are not over
  uint32_t on_links;   ///< of these what it waits for at links and memories
  uint32_t engine_of;  ///< the rank whose copy engine does it, or kNone
};

/// What a rank sends to another node goes out in order: of each pair of ranks one transfer is on
/// its way.
class Lanes {
 public:
  /// Is it the first, whose turn it is?
  bool join(uint32_t transfer, uint32_t from, uint32_t to) {
    std::deque<uint32_t>& lane = lanes_[{from, to}];
    lane.push_back(transfer);
    return lane.size() == 1;
  }
  /// The first has left. The one whose turn it is now, or kNone.
  uint32_t next(uint32_t from, uint32_t to) {
    std::deque<uint32_t>& lane = lanes_[{from, to}];
    lane.pop_front();
    return lane.empty() ? kNone : lane.front();
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::deque<uint32_t>> lanes_;  ///< by sender and receiver
};

/// One of the things that a block's step, or a transfer, waits for.
struct Part {
  uint32_t owner;  ///< a block or a transfer
  bool is_block;
  bool on_link;  ///< of a transfer: at something shared
};

class Run {
 public:
  Run(const Program& program, const DeviceProgram& device, const Machine& machine, uint32_t calls,
      Detail detail)
      : program_(program), device_(device), machine_(machine), calls_(calls), detail_(detail) {}
  /// Once. `call` is what each call does.
  std::optional<Timeline> run(const Call& call, Diagnostics& diagnostics);

 private:
  struct RankState {
    explicit RankState(WorkOut out) : work(out) {}
    std::vector<Count> ends, semaphores;
    std::vector<Port> ports;
    std::vector<BarrierState> barriers;
    std::vector<Arrivals> begun, come;  ///< by buffer
    std::vector<SlotHops> hops;         ///< the same: of the first call's packets
    uint32_t first_block = 0, blocks = 0, running = 0;
    uint64_t call = 0;
    double proxy_free = 0;
    std::deque<uint32_t> copies;  ///< transfers that wait for the copy engine
    bool copying = false;
    double end = 0;
    WorkOut work;
  };

  void build(const Call& call);
  void launch(uint32_t rank);
  void push(double at, EventKind kind, uint32_t what, uint32_t version = 0) {
    events_.push({at, order_++, static_cast<uint64_t>(kind), what, version});
  }
  void handle(const Event& e);

  // Blocks.
  void go_on(uint32_t block);
  bool fetch(Block& b);
  void begin_step(uint32_t block);
  void finish(uint32_t block, double at);
  void end_of_block(uint32_t block);
  void do_targets(uint32_t block);
  bool take(uint32_t block, Count& count);
  void send_signal(Block& b, uint32_t channel, double at);
  void do_polls(uint32_t block);
  void do_work(uint32_t block);
  void work_over(uint32_t block);
  void do_last_polls(uint32_t block);
  void meet(uint32_t block);
  void flush(uint32_t block);
  void step_takes(uint32_t block, uint64_t cost) { push(now_ + ns(cost), EventKind::go_on, block); }

  // Shared rates.
  void add_load(uint32_t shared, double bytes, uint32_t part);
  void watch(uint32_t shared);
  void rate_event(uint32_t shared, uint32_t version);
  void part_over(uint32_t part, Cause cause);

  // Messages.
  /// What has come is forgotten, except for requests, which proxies look at again.
  Message take_message(uint32_t message) {
    return messages_[message].request ? messages_[message] : messages_.take(message);
  }
  double latency(uint32_t from, uint32_t to) const;
  void arrive(uint32_t message, bool begun);
  void give(Count& count, const From& from);

  // Proxies.
  void post(Block& b, const Request* put, uint32_t channel);
  void served(uint32_t message);
  void start_copy(uint32_t rank);
  void begin_transfer(uint32_t transfer);
  void transfer_over(uint32_t transfer);
  void port_moves(uint32_t rank, uint32_t channel);

  Block& at(uint32_t block) { return blocks_[block]; }
  RankState& rank_of(const Block& b) { return ranks_[b.rank]; }

  const Program& program_;
  const DeviceProgram& device_;
  const Machine& machine_;
  const uint32_t calls_;
  const Detail detail_;

  double now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<RankState> ranks_;
  std::vector<Block> blocks_;
  std::vector<SharedRate> shared_;
  std::vector<uint32_t> versions_;
  std::vector<double> watched_;  ///< when the event comes that looks at it
  Slots<Part> parts_;
  Slots<Message> messages_;
  std::vector<Transfer> transfers_;
  Lanes lanes_;
  std::vector<double> ends_;  ///< by call: when the last rank ended it
  std::vector<uint32_t> woken_;
  PacketArrows packets_;
  Timeline out_;
};

}  // namespace mscclc::cost
