// Evidence against a refused plan: a schedule that goes wrong on the simulator.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/simulator/cluster_set.h"
#include "ir/program/program.h"
#include "passes/prove/prove.h"

namespace mscclc {

/// How a witness is shown.
struct ShowWitness {
  std::string path;        ///< the schedule's file
  std::string replay;      ///< the command that replays it, without the schedule
  bool json = false;       ///< printed as one object, the schedule in it: on standard error ...
  bool on_output = false;  ///< ... or on standard output, as text always is
};

/// Looks for a schedule under which `program` gives wrong data or hangs, writes it to a file, and
/// prints how to replay it, or that none was found. False: the file cannot be written (reported).
bool show_witness(const Program& program, const std::vector<Unordered>& unordered,
                  const ShowWitness& show);
/// The same of several plans.
bool show_witness(std::span<const PlacedPlan> plans, const RefusedCalls& refused,
                  const ShowWitness& show);
/// Prints that none is looked for, and why.
void show_no_witness(const std::string& why, const ShowWitness& show);

}  // namespace mscclc
