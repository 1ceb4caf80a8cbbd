// Where checks of a whole program report. A broken program may have millions of faults: after some
// hundreds no one reads on, so a check stops once there are enough.
#pragma once

#include <cstdint>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

class ProgramReport {
 public:
  /// Both must outlive the report.
  ProgramReport(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  /// About the program as a whole, or one of its ranks.
  void error(std::string code, std::string message) {
    error(std::move(code), {}, std::move(message));
  }
  void error(std::string code, Span span, std::string message);
  /// About an op that can be printed; `remedy` becomes the last note.
  void error(std::string code, uint32_t rank, const Op& op, std::string message,
             std::string remedy = {});
  /// About an op with ids out of range. REQUIRES: its locations are in range.
  void error_unprintable(std::string code, uint32_t rank, const Op& op, std::string message);

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
