// Calls that differ from an earlier one only in where their memory lies. Packing all blocks of a
// call and filling its kernel's lines takes some hundred microseconds where blocks are many, and
// callers that bind for every call (eager mode) often change nothing but addresses: each layer of a
// model has weights of its own. Then the earlier call's lines are copied, and their addresses
// moved.
//
// Which memory a line's address belongs to is found by trial: the earlier call is packed once more
// with all that it addresses moved, each by a distance of its own. So nothing here knows of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "executor/block_programs.h"
#include "executor/launch.h"
#include "ir/support/precondition.h"
#include "runtime/core/communicator/compiled_kernels/kernel_choice.h"

namespace mscclc {

/// Of one executable, whose memory besides its calls' stays where it is. Thread safety: one thread
/// at a time, as the executable's.
class MovedCalls {
 public:
  using Places = BlockPrograms::Places;
  /// How a call's memory lies.
  struct At {
    const Places& places;
    uint64_t row_pitch;
    bool in_place;  ///< else its input and its output have no byte in common
  };
  /// Packs the call at hand at any places, and fills its lines; false: its steps are not the
  /// code's.
  using Fill = std::function<bool(const Places&, std::vector<CompiledLine>&)>;

  /// Gives a call, as far as it is not packed yet, the launch and the lines that it would have.
  /// False: it must be packed, as it is not the kept one at other places.
  [[nodiscard]] bool move(const At& at, const Fill& fill, device::LaunchPlan& launch,
                          CompiledCall& compiled) {
    if (compiled_.kernel == nullptr || !is_kept(at, launch) || !measure(at.places)) return false;
    if (of_line_.empty()) find_addresses(at.places, fill);
    if (of_line_.empty()) return false;
    launch = launch_;
    compiled = compiled_;
    for (size_t i = 0; i < of_line_.size(); ++i) {
      compiled.lines[i].words[0] += distances_[of_line_[i]];
    }
    precondition([&] {
      std::vector<CompiledLine> packed;
      return fill(at.places, packed) && packed == compiled.lines;
    });
    return true;
  }

  /// Keeps a call that was packed, if a compiled kernel runs it.
  void keep(const At& at, const device::LaunchPlan& launch, const CompiledCall& compiled) {
    if (compiled.kernel == nullptr) return;
    bases_.assign(at.places.bases.begin(), at.places.bases.end());
    externals_.assign(at.places.externals.begin(), at.places.externals.end());
    row_pitch_ = at.row_pitch;
    in_place_ = at.in_place;
    launch_ = launch;
    launch_.programs = nullptr;  // the other call's, which its kernel does not read
    compiled_ = compiled;
    compiled_.lines_at = nullptr;
    of_line_.clear();
  }

 private:
  /// Where in so many bytes a buffer begins may decide its steps: memory moves them at once.
  static constexpr uint64_t kLine = 128;
  /// Between the distances of a trial: whole lines, and more than calls have memory.
  static constexpr uint64_t kApart = uint64_t{1} << 40;

  static uint64_t number_of(const uint8_t* at) { return reinterpret_cast<uintptr_t>(at); }
  static auto said_of(const device::LaunchPlan& launch) {
    return std::tie(launch.part_bytes, launch.dtype, launch.accumulate, launch.reduce,
                    launch.previous_allows_early, launch.any_order);
  }
  bool is_kept(const At& at, const device::LaunchPlan& launch) const {
    return said_of(launch) == said_of(launch_) && at.row_pitch == row_pitch_ &&
           at.in_place == in_place_;
  }

  /// False: the steps may be others at these places. Where an external begins decides none.
  bool measure(const Places& places) {
    bool alike = true;
    distances_.assign(1, 0);
    for (size_t i = 0; i < bases_.size(); ++i) {
      distances_.push_back(number_of(places.bases[i].address) - number_of(bases_[i].address));
      alike &= distances_.back() % kLine == 0;
    }
    for (size_t i = 0; i < externals_.size(); ++i) {
      const Places::External& one = places.externals[i];
      distances_.push_back(number_of(one.address) - number_of(externals_[i].address));
      alike &= one.is_value == externals_[i].is_value;
    }
    return alike;
  }

  template <class T>
  static void spread(std::vector<T>& all, uint64_t& last) {
    for (T& one : all) {
      one.address = reinterpret_cast<uint8_t*>(number_of(one.address) + (last += kApart));
    }
  }
  // Where two addresses are one in the kept call and not in the trial, its steps are others.
  void find_addresses(Places places, const Fill& fill) {
    static_assert(offsetof(device::StepOperand, address) == 0);
    auto bases = bases_;
    auto externals = externals_;
    uint64_t last = 0;
    spread(bases, last);
    spread(externals, last);
    places.bases = bases;
    places.externals = externals;
    std::vector<CompiledLine> lines;
    if (!fill(places, lines)) return;
    for (size_t i = 0; i < lines.size(); ++i) {
      const CompiledLine& kept = compiled_.lines[i];
      const uint64_t by = lines[i].words[0] - kept.words[0];
      const bool only_moved = by % kApart == 0 && by <= last && lines[i].words[1] == kept.words[1];
      if (!only_moved) return of_line_.clear();
      of_line_.push_back(static_cast<uint32_t>(by / kApart));
    }
  }

  // Of the call that is kept; without a kernel there is none.
  std::vector<device::BaseAddress> bases_;
  std::vector<Places::External> externals_;
  uint64_t row_pitch_ = 0;
  bool in_place_ = false;
  device::LaunchPlan launch_;
  CompiledCall compiled_;
  /// By line: 1 + the index of the base, or, after these, of the external whose address it holds;
  /// 0: none. Empty: that was not tried, or not found.
  std::vector<uint32_t> of_line_;
  std::vector<uint64_t> distances_;  ///< by such a number: from there to the call at hand
};

}  // namespace mscclc
