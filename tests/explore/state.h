// What distinguishes states of a run for the explorer. Not for use outside the explorer.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

namespace mscclc::explorer {

inline constexpr uint32_t kMaxEvents = 2048;
inline constexpr uint16_t kNoEvent = 0xffff;
inline constexpr size_t kQueue = 8;
using Events = std::bitset<kMaxEvents>;

/// What a process knows: events, and events of which only the reads are known to be done, by a
/// packet whose data depends on them.
struct Knowledge {
  Events done, read;
  Events hollow;  ///< the same of polls where no data was moved (Element::hollow)
  void join(const Knowledge& other) {
    done |= other.done;
    read |= other.read;
    hollow |= other.hollow;
  }
};

struct CellState {
  uint16_t value = 0;  ///< a multiset, by its number; 0: nothing that was promised
  uint16_t stamp = 0;  ///< packets: the call that wrote it, from 1; sentinel: 0 if it is empty
  uint16_t writer = kNoEvent;
  bool hollow = false;  ///< the writer had no data for it (Element::hollow)
  Events also;          ///< writers since that have stored the same (ExploreOptions::same_bits)
  Events readers;       ///< since
  Events from;          ///< reads that the value was computed from
};

struct ProcessState {
  uint16_t step = 0, call = 0;
  Knowledge knows;
};

/// What signals publish: to those that wait for them, and to those that do so relaxed.
struct Published {
  Knowledge strong;
  Events weak;  ///< what their ranks knew when the calls began in which they were sent
};

struct Counter {
  uint16_t value = 0;
  std::vector<Published> arrived;  ///< channels: by each signal and those before it
  Published all;                   ///< by all signals
};

/// A flag: how often it has been raised, and what has been published by that.
struct FlagState {
  uint16_t raised = 0;
  Knowledge knows;
};

struct Posted {
  uint16_t process, step, call;
  Knowledge knows;
};

/// 128 bits: that two of a million states have the same one has a probability of 1e-27.
using Digest = std::array<uint64_t, 2>;

struct State {
  std::vector<ProcessState> processes;
  std::vector<CellState> cells;
  std::vector<Counter> channels, semaphores;
  std::vector<FlagState> flags;
  std::vector<std::vector<Posted>> ports;  ///< by channel: the queue
  Events served;                           ///< puts whose source a proxy has read
  Events ended;                            ///< accesses of kernels that have ended, and of callers
  std::vector<Events> entries;             ///< by call and rank: what the rank knew when it began

  /// Of every bit of it, to distinguish states.
  Digest digest() const;
};

}  // namespace mscclc::explorer
