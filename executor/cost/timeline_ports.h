// Ports in virtual time: proxies that serve requests, copy engines, messages between nodes.
#pragma once

#include <vector>

#include "executor/cost/timeline_messages.h"
#include "executor/cost/timeline_rates.h"
#include "executor/cost/virtual_time/fifo.h"

namespace mscclc::cost {

/// A port channel's requests that are not done.
struct Port {
  struct Item {
    bool signal = false, done = false;
    uint32_t message = 0;
  };
  Fifo<Item> items;
  uint32_t puts = 0;
  std::vector<uint32_t> flushing;
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
  explicit Lanes(const Program& program);

  /// Is it the first, whose turn it is? The lane is that of a rank's channel.
  bool join(uint32_t transfer, uint32_t rank, uint32_t channel) {
    Fifo<uint32_t>& lane = of(rank, channel);
    lane.push(transfer);
    return lane.front() == transfer;
  }
  /// The first has left. The one whose turn it is now, or kNone.
  uint32_t next(uint32_t rank, uint32_t channel) {
    Fifo<uint32_t>& lane = of(rank, channel);
    lane.take();
    return lane.empty() ? kNone : lane.front();
  }

 private:
  Fifo<uint32_t>& of(uint32_t rank, uint32_t channel) { return lanes_[numbers_[rank][channel]]; }

  std::vector<std::vector<uint32_t>> numbers_;  ///< of lanes, by rank and channel
  std::vector<Fifo<uint32_t>> lanes_;           ///< by sender and receiver
};

/// The requests of all ranks, until they are done. For one thread.
class Ports {
 public:
  /// All outlive it.
  Ports(const Program& program, const Machine& machine, Events& events, Rates& rates,
        InFlight& in_flight);

  /// A block posts a put, or (nullptr) a signal.
  void post(uint32_t rank, const Request* put, uint32_t channel, uint32_t record, uint32_t hops);
  /// The proxy has done this request.
  void served(uint32_t message);
  /// A rank's copy engine takes its next transfer.
  void copy_begins(uint32_t rank);
  /// Of a transfer.
  void part_over(const Part& part);
  /// Has it read the sources of all puts? Else the block goes on when more have been read.
  bool has_read(uint32_t rank, uint32_t channel, uint32_t block);

 private:
  /// A request, as an event that has been announced.
  struct Asked {
    double served;  ///< when
    uint64_t announced;
    uint32_t message;
  };
  struct OfRank {
    std::vector<Port> ports;
    double proxy_free = 0;
    Fifo<Asked> asked;      ///< what the proxy serves: of the first there is an event
    Fifo<uint32_t> copies;  ///< transfers that wait for the copy engine
    bool copying = false;
  };

  void push_first(OfRank& state);
  void start_copy(uint32_t rank);
  void begin(uint32_t transfer);
  void over(uint32_t transfer);
  void send_signals(uint32_t rank, uint32_t channel);

  const Program& program_;
  const Machine& machine_;
  Events& events_;
  Rates& rates_;
  InFlight& in_flight_;
  std::vector<OfRank> ranks_;
  std::vector<Transfer> transfers_;
  Lanes lanes_;
};

}  // namespace mscclc::cost
