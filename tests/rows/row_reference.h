// One call of a program of rows on the simulator, in f32, beside what it should give in doubles:
// sums one rank after the other, and norms as books have them. It shares nothing with evaluate().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/simulator/cluster.h"

namespace mscclc {

class RowReference : private CallHooks {
 public:
  /// `rows` of the whole message. REQUIRES: a program of plans/rows, which must outlive it.
  RowReference(const Program& program, uint32_t rows, RowSteps steps = RowSteps::together);

  /// Runs the call; "" if all outputs and externals are as they should be, else what is not.
  std::string run();
  /// Bytes of the outputs, rank by rank.
  const std::vector<std::vector<uint8_t>>& outputs() const { return outputs_; }
  /// The same of an external that is written.
  const std::vector<std::vector<uint8_t>>& written(const std::string& name) {
    return written_[name];
  }

 private:
  void before(uint32_t rank, uint64_t call) override;
  void after(uint32_t rank, uint64_t call) override;

  double input(uint32_t rank, uint64_t element) const;
  double external(const std::string& name, uint32_t rank, uint64_t row, uint32_t column) const;
  std::vector<double> wanted(const std::string& name, uint32_t rank, uint64_t row) const;
  void compare(const std::string& name, uint32_t rank, uint64_t row, const uint8_t* got);
  uint64_t first_row(uint32_t rank) const;
  uint32_t columns() const { return program_.contract.columns; }

  const Program& program_;
  const uint32_t rows_;
  const RowSteps steps_;
  Cluster cluster_;
  std::vector<std::vector<uint8_t>> outputs_;
  std::map<std::string, std::vector<std::vector<uint8_t>>> written_;  ///< by external
  std::string wrong_;
};

}  // namespace mscclc
