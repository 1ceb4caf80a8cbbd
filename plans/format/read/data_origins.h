// Where the data comes from that chunks of a plan of MSCCL++ hold.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// Whose input each chunk may come to hold: data is followed through all ops of a plan, in whatever
/// order they run.
class DataOrigins {
 public:
  explicit DataOrigins(const Program& program) : program_(program) {}

  /// False if there is too much to look at chunk by chunk, or a switch moves data.
  bool follow();

  /// Does a rank read at another, or write there what it has from a third?
  bool passed_on() const;

  /// How many places up all outputs have their data from; 0 if it is not the same for all.
  uint32_t shift() const;

 private:
  static constexpr uint32_t kSeveral = kNone - 1;
  static constexpr uint64_t kMost = uint64_t{1} << 20;  ///< chunks, and chunks moved

  /// A chunk goes to another; `sender` writes it remotely, if not kNone.
  struct Step {
    uint32_t from, to, sender;
  };

  bool number_chunks();
  bool add_op(uint32_t rank, const Op& op);
  bool add_steps(uint32_t rank, const Operand& from, const Operand& to);

  /// Not at a switch; and the structure of the plan is only verified later.
  bool has_chunks(uint32_t rank, const Operand& o) const;
  uint32_t number(uint32_t rank, const Operand& o) const;

  /// From the inputs on, until nothing changes: each chunk at most twice.
  void spread();
  void add_origin(uint32_t chunk, uint32_t origin);

  const Program& program_;
  std::vector<std::vector<uint32_t>> first_;  ///< by rank and buffer: the number of its first chunk
  std::vector<uint32_t> origins_;             ///< by chunk: a rank, kNone or kSeveral
  std::vector<Step> steps_;
  std::vector<uint32_t> changed_;  ///< chunks whose steps are to be taken
  bool reads_ = false;             ///< remotely
};

}  // namespace mscclc
