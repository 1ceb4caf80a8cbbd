// Several plans as one program, to be run call by call: every rank has the blocks, buffers,
// channels and semaphores of all, and in each call those of one plan act. A *part* says which.
// A plan alone is a program of one part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/model/shared_plan.h"

namespace mscclc::proof {

/// A plan inside a joint program. "World" ranks are those of the joint program.
struct Part {
  const Program* program = nullptr;
  std::string name = {};             ///< for messages; empty: the plan is alone
  std::vector<uint32_t> world = {};  ///< by rank of the plan
  std::vector<uint32_t> local = {};  ///< by world rank: rank of the plan, or kNone
  uint32_t input = kInput;  ///< index of its input among a world rank's buffers; output follows
  /// By world rank: where its scratch buffers, blocks and ops begin among those of the rank.
  std::vector<uint32_t> first_scratch = {}, first_block = {}, first_op = {};

  const Contract& contract() const { return program->contract; }
  bool has(uint32_t rank) const { return local[rank] != kNone; }
  const Rank& rank(uint32_t world_rank) const { return program->ranks[local[world_rank]]; }
};

struct Joint {
  Program program;
  std::vector<Part> parts;
};

/// The part of a plan that is alone.
Part only_part(const Program& program);
/// REQUIRES: every plan is split, and SharedPlan::ranks has as many entries as the plan has ranks.
Joint join(std::span<const SharedPlan> plans);

}  // namespace mscclc::proof
