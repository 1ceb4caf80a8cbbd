// Counts the errors found while a plan is written, so that the search ends in time.
#pragma once

#include <cstdint>
#include <string>

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

class OpReport {
 public:
  OpReport(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}
  void error(std::string code, uint32_t rank, const Op& op, std::string message);
  /// An error of a rank or of the program as a whole.
  void error(std::string code, std::string message);
  bool any() const { return errors_ > 0; }
  /// True once there are so many that looking for more is of no use.
  bool enough() const { return errors_ >= kEnough; }

 private:
  static constexpr int kEnough = 200;
  const Program& program_;
  Diagnostics& diagnostics_;
  int errors_ = 0;
};

}  // namespace mscclc
