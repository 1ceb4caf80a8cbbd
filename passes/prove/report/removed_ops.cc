#include "passes/prove/report/removed_ops.h"

#include <fmt/format.h>

#include <set>

#include "ir/print/print.h"
#include "ir/report/op_error.h"

namespace mscclc::proof {
namespace {

constexpr size_t kMax = 3;

}  // namespace

std::vector<Note> removed_notes(const System& system, const Finding& finding) {
  std::vector<Note> notes;
  std::set<std::pair<uint32_t, uint32_t>> seen;  // ranks and blocks
  for (const Event* e : {&finding.first, &finding.second}) {
    if (e->process == kNone || e->op == kNone) continue;
    const uint32_t world = system.processes()[e->process].rank;
    const Part& part = system.part_of_op(world, e->op);
    const uint32_t rank = part.local[world],
                   block = part.rank(world).ops[e->op - part.first_op[world]].block;
    if (!seen.insert({world, block}).second) continue;
    for (const RemovedOp& removed : part.program->ranks[rank].removed) {
      if (removed.op.block != block || notes.size() == kMax) continue;
      notes.push_back(op_note(
          *part.program, removed.op,
          fmt::format("the '{}' pass has taken out this '{}' of tb {}, which seemed to order "
                      "nothing; 'launch auto_sync: false' keeps it",
                      removed.pass, print_op(*part.program, rank, removed.op), block)));
    }
  }
  return notes;
}

}  // namespace mscclc::proof
