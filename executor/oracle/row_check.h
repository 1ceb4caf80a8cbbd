// Collectives of rows: values for externals, and what row functions must make of the sums.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/oracle/values.h"
#include "executor/rows/externals.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/applied.h"

namespace mscclc {

class RowCheck {
 public:
  /// REQUIRES: the program's contract has `then`, and verify_structure() has seen it; `values` are
  /// of the call's type and reduction. All of them must outlive it.
  RowCheck(const Program& program, uint64_t part_bytes, const TestValues& values);

  /// Before a call: values of what is read, and in what is only written other bytes.
  void fill(uint32_t rank, uint64_t call, std::span<uint8_t* const> externals) const;
  /// After it: compares output and externals, bit for bit.
  void compare(uint32_t rank, uint64_t call, const uint8_t* output,
               std::span<uint8_t* const> externals);

  uint64_t wrong() const { return wrong_; }
  /// Adds an error for each rank and what it holds wrong, up to some.
  void report(Diagnostics& diagnostics, const std::string& of_plan) const;

 private:
  struct Wrong {
    uint64_t count = 0;  ///< elements
    uint64_t call = 0, row = 0, column = 0;
  };

  std::vector<uint8_t> values_of_row(uint32_t rank, uint64_t call, uint32_t external,
                                     uint64_t row) const;
  void compare_chunk(uint32_t rank, uint64_t call, uint32_t chunk, const uint8_t* output,
                     std::span<uint8_t* const> externals);
  std::vector<uint8_t> sum_of_row(const Promise& promise, uint64_t call, uint64_t element) const;
  void compare_bytes(uint32_t rank, uint64_t call, uint64_t row, const std::string& name,
                     uint32_t element, const std::vector<uint8_t>& wanted, const uint8_t* got);
  bool is_own(uint32_t rank, const rows::External& external, uint32_t chunk) const;

  const Program& program_;
  const TestValues& values_;
  const Chunking chunking_;
  const ThenBinding then_;
  const rows::Function& function_;
  std::vector<std::vector<rows::ExternalLayout>> layouts_;  ///< by rank and external
  uint64_t wrong_ = 0;
  std::map<std::pair<uint32_t, std::string>, Wrong> wrongs_;  ///< by rank, and what is wrong there
};

}  // namespace mscclc
