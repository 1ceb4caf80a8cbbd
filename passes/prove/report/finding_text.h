// How reports name what a finding is about: ops, chunks, places; and the errors that they make of
// it. What the families of findings share (report_races.h, report_values.h, report_waits.h).
#pragma once

#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

class FindingText {
 public:
  /// All must outlive it.
  FindingText(const System& system, const Finding& finding, Diagnostics& diagnostics)
      : system_(system), program_(system.program()), finding_(finding), diagnostics_(diagnostics) {}

 protected:
  /// An op as its plan has it.
  struct Origin {
    const Part& part;
    uint32_t rank;  ///< of the plan
    const Op& op;
    const Program& program() const { return *part.program; }
  };

  const Process& process(const Event& e) const { return system_.processes()[e.process]; }
  Origin origin(const Event& e) const;

  std::string chunk() const { return chunk(finding_.chunk); }
  std::string chunk(const ChunkName& c) const;
  std::string placement() const { return finding_.in_place ? " in place" : ""; }
  std::string who(const Event& e) const;
  /// "tiles[3]" of what the other side does.
  std::string flag_name(const Event& e) const;
  std::string place(const Event& e) const;
  /// "in the call after it", seen from the earlier of the two.
  std::string calls_apart() const;
  std::string does(const Event& e, bool writes) const;

  /// An error at the op of one of the events, the later one unless that is the caller.
  Diagnostic& error(const char* code, const std::string& message);
  void note(Diagnostic& d, const Event& e, const std::string& text) const;

  const System& system_;
  const Program& program_;
  const Finding& finding_;
  Diagnostics& diagnostics_;

 private:
  std::string of_plan(const Event& e) const;
  Diagnostic& with_edge(Diagnostic& d) const;
  void place_access(EdgeEnd& access, const Event& e) const;
  Op placed(const Event& e) const;
  uint32_t pair_of(const Event& e, const Op& op) const;
  void note_fused(Diagnostic& d, const Event& e) const;
};

}  // namespace mscclc::proof
