#include "tests/runtime/stuck_plan.h"

#include <cstdlib>

#include "compiler/compile.h"
#include "runtime/api/bootstrap.h"

namespace mscclc::testing {

std::shared_ptr<const Program> stuck_plan(RankOne rank_1) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("stuck.mscl",
                                  "program    stuck\n"
                                  "collective sendrecv(ranks: 2, shift: 1)\n"
                                  "rank r in 0..2 {\n"
                                  "  channel ch[0] = memory(1 - r)\n"
                                  "  tb 0 {\n"
                                  "    put ch[0].output[0] <- input[0]\n"
                                  "    signal ch[0]\n"
                                  "    wait ch[0]\n"
                                  "  }\n"
                                  "}\n");
  PipelineOptions passes;
  passes.only = {"assign", "groups", "split"};  // the prover would refuse it
  auto program = compile(sources, file, {}, passes, diagnostics);
  if (!program) std::abort();
  const auto leave_out = [&](uint32_t rank, OpKind kind) {
    std::erase_if(program->ranks[rank].ops, [=](const Op& op) { return op.kind == kind; });
  };
  leave_out(1, OpKind::signal);
  if (rank_1 == RankOne::waits_for_nothing) {
    leave_out(1, OpKind::wait);
    leave_out(0, OpKind::put);  // rank 1 would read its output meanwhile
  }
  return std::make_shared<const Program>(std::move(*program));
}

std::unique_ptr<Executable> load_unproved(Communicator& communicator,
                                          const std::shared_ptr<const Program>& plan,
                                          uint64_t max_bytes, Diagnostics& diagnostics) {
  Diagnostics said;
  auto executable =
      communicator.load(plan, {.max_bytes = max_bytes, .proof = ProofPolicy::skip}, said);
  for (const Diagnostic& d : said.all()) {
    if (d.severity == Severity::error) diagnostics.add(d);
  }
  return executable;
}

}  // namespace mscclc::testing
