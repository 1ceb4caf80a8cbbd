// The stages of verify_structure: program and declarations, then ops, which rely on them.
#pragma once

#include <string>
#include <utility>

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

/// Where the stages report. A broken program may have millions of faults: nobody reads more than a
/// few hundred.
class VerifyReport {
 public:
  VerifyReport(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  void error(std::string code, Span span, std::string message) {
    ++errors_;
    diagnostics_.error(std::move(code), span, std::move(message));
  }
  /// About an op that can be printed.
  void error(std::string code, uint32_t rank, const Op& op, std::string message);
  /// About an op with ids out of range.
  void error_unprintable(std::string code, uint32_t rank, const Op& op, std::string message);

  bool any() const { return errors_ > 0; }
  bool enough() const { return errors_ >= kEnough; }

 private:
  static constexpr int kEnough = 200;
  const Program& program_;
  Diagnostics& diagnostics_;
  int errors_ = 0;
};

/// Contract, launch, groups, loops.
void verify_contract(const Program& program, VerifyReport& report);
/// Buffers, channels and semaphores of a rank.
void verify_declarations(const Program& program, uint32_t rank, VerifyReport& report);
/// Ops of a rank. REQUIRES: contract and all declarations are right.
void verify_ops(const Program& program, uint32_t rank, VerifyReport& report);

}  // namespace mscclc
