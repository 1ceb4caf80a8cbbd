// For tests: nodes of one machine whose lanes go over fake verbs devices (tests/fakes/verbs), and
// what joins these: it loses what it carries, or is cut, for all ranks at once.
#pragma once

#include "tests/fakes/verbs/fake_verbs.h"
#include "tests/nodes/far_job.h"

namespace mscclc::testing {

class FakeWire {
 public:
  FakeWire();
  ~FakeWire();
  FakeWire(const FakeWire&) = delete;
  FakeWire& operator=(const FakeWire&) = delete;

  /// In memory that this process shares with those it starts.
  verbs::fake::Wire& wire() const { return *wire_; }
  /// Nodes of FarJob. REQUIRES: MSCCLC_IBV_SO is the fake library; this outlives the ranks.
  FarPlace place() const;

 private:
  verbs::fake::Wire* wire_;
};

}  // namespace mscclc::testing
