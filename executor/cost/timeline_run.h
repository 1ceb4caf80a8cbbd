// A simulation in virtual time: its blocks, and what they synchronise by. What it does is said in
// timeline.h.
#pragma once

#include <optional>
#include <vector>

#include "executor/cost/joined_copies.h"
#include "executor/cost/packet_arrows.h"
#include "executor/cost/timeline.h"
#include "executor/cost/timeline_messages.h"
#include "executor/cost/timeline_ports.h"
#include "executor/cost/timeline_rates.h"
#include "executor/cost/virtual_time/arrivals.h"
#include "executor/cost/virtual_time/fifo.h"
#include "executor/cost/work.h"

namespace mscclc::cost {

/// By whom something has come.
struct From {
  uint32_t record = kNoRecord;
  uint32_t hops = 0;
  double sent = 0, came = 0;
};

/// What has come at an end or a semaphore, and who waits.
struct Count {
  Fifo<From> from;  ///< of those not yet taken
  Fifo<uint32_t> waiting;

  bool come() const { return !from.empty(); }
  void begin_with(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) from.push({});
  }
};

struct BarrierState {
  uint32_t arrived = 0;
  uint32_t hops = 0;
  std::vector<uint32_t> waiting;
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
  uint32_t open = 0;  ///< parts of its work that are not over
  uint32_t hops = 0;
  uint32_t record = kNoRecord;       ///< of its step, in the first call
  uint32_t last_record = kNoRecord;  ///< of the one before
  StepRecord now;
  Work work;
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
    RankState(WorkOut out, JoinedCopies joined) : work(out), copies(std::move(joined)) {}
    std::vector<Count> ends, semaphores;
    std::vector<BarrierState> barriers;
    std::vector<Arrivals> begun, come;  ///< by buffer
    std::vector<SlotHops> hops;         ///< the same: of the first call's packets
    uint32_t first_block = 0, blocks = 0, running = 0;
    uint64_t call = 0;
    double late = 0;  ///< what a call begins later than right after the last one
    WorkOut work;
    JoinedCopies copies;
  };

  void build(const Call& call);
  void launch(uint32_t rank);
  void handle(const Event& e);

  // Blocks.
  void go_on(uint32_t block);
  bool fetch(Block& b);
  void begin_step(uint32_t block);
  void work_out(Block& b);
  void finish(uint32_t block, double at);
  void end_of_block(uint32_t block);
  void do_targets(uint32_t block);
  bool take(uint32_t block, Count& count);
  void give(Count& count, const From& from);
  void send_signal(const Block& b, uint32_t channel, double at);
  void send_packets(const Block& b, double when, EventKind kind);
  void do_polls(uint32_t block);
  void do_work(uint32_t block);
  void part_over(uint32_t part, Cause cause);
  void work_over(uint32_t block);
  void do_last_polls(uint32_t block);
  void meet(uint32_t block);
  void flush(uint32_t block);
  void arrive(uint32_t message, bool begun);

  double now() const { return events_.now(); }
  Block& at(uint32_t block) { return blocks_[block]; }
  RankState& rank_of(const Block& b) { return ranks_[b.rank]; }

  const Program& program_;
  const DeviceProgram& device_;
  const Machine& machine_;
  const uint32_t calls_;
  const Detail detail_;

  Events events_;
  InFlight in_flight_;
  Rates rates_{machine_, program_.ranks.size(), events_};
  Ports ports_{program_, machine_, events_, rates_, in_flight_};
  std::vector<RankState> ranks_;
  std::vector<Block> blocks_;
  std::vector<double> ends_;  ///< by call: when the last rank ended it
  std::vector<uint32_t> woken_;
  PacketArrows packets_;
  Timeline out_;
};

}  // namespace mscclc::cost
