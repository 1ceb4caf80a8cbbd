#include "runtime/choice/library/program_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "compiler/compile.h"
#include "runtime/choice/proofs/check_proof.h"
#include "runtime/choice/proofs/first_use.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

constexpr const char* kTarget = "sm_90";

Target library_target() {
  const auto& all = builtin_targets();
  return *std::ranges::find(all, kTarget, &Target::name);
}

uint32_t most_blocks(const Program& program) {
  uint32_t most = 0;
  for (const Rank& rank : program.ranks) most = std::max(most, rank.blocks);
  return most;
}

}  // namespace

struct ProgramLibrary::Order {
  LibraryChoice choice;
  LibraryCall call;
  uint32_t most_blocks = 0;  ///< of a rank
  uint64_t max_bytes = 0;
  uint32_t architecture = 0;  ///< of the GPUs whose kernels to look for; 0: of none

  std::string name() const { return choice.name(call); }
};

ProgramLibrary::ProgramLibrary(LibraryTable table, ReadLibraryFile read, std::string place,
                               std::string kernels, ProofPolicy policy)
    : TableProvider(std::move(table), std::move(place)),
      read_(std::move(read)),
      kernels_(std::move(kernels)),
      policy_(policy),
      target_(library_target()) {}

std::string ProgramLibrary::name_of(const LibraryRow& row, const LibraryCall& call) const {
  return place() + row.choice.name(call);
}

TableProvider::RowPlan ProgramLibrary::plan_of(const LibraryRow& row, const PlanRequest& request,
                                               Diagnostics& diagnostics) {
  Order order{row.choice, request.call, target_.max_blocks, max_bytes(row.choice, request.call),
              kernels_.empty() ? 0 : request.architecture};
  for (const uint32_t bound : {request.multiprocessors, request.most_blocks}) {
    if (bound != 0) order.most_blocks = std::min(order.most_blocks, bound);
  }
  const auto made =
      made_plan(fmt::format("{};{};{};{}", order.name(), order.most_blocks, order.architecture,
                            request.call.nodes));  // max_bytes() asks for them
  bool fresh = false;
  std::call_once(made->once, [&] { make(*made, order), fresh = true; });
  if (fresh || made->diagnostics.has_errors()) {  // warnings once, errors each time
    for (const Diagnostic& d : made->diagnostics.all()) diagnostics.add(d);
  }
  return made->of_row;
}

std::shared_ptr<ProgramLibrary::MadePlan> ProgramLibrary::made_plan(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<MadePlan>& made = made_[name];
  if (made == nullptr) made = std::make_shared<MadePlan>();
  return made;
}

void ProgramLibrary::make(MadePlan& made, const Order& wanted) const {
  const FirstUse first;
  Order order = wanted;
  try {
    const auto plan = compile_fitting(order, made);
    if (plan == nullptr || !finish(made, plan, order)) return;
  } catch (const std::bad_alloc&) {
    made.diagnostics.error(
        "memory", {}, fmt::format("'{}' takes more memory to compile than there is", order.name()));
    return;
  }
  first.log("compiled and proved", mscclc::quoted(place() + order.name()),
            "'mscclc library' writes plans that are ready, for MSCCLC_PLAN_PATH");
}

/// With fewer blocks, if it has more than there is room for.
std::shared_ptr<const Program> ProgramLibrary::compile_fitting(Order& order, MadePlan& made) const {
  for (;;) {
    auto program = compile_once(order, made.diagnostics);
    if (!program) return nullptr;
    const uint32_t blocks = mscclc::most_blocks(*program);
    if (order.choice.lower_blocks(blocks, order.most_blocks)) continue;
    if (order.most_blocks == 0 || blocks <= order.most_blocks) {
      return share_plan(*std::move(program), made.diagnostics);
    }
    made.of_row.problem = Error{fmt::format(
        "it needs {} thread blocks at once; the GPU has room for {}", blocks, order.most_blocks)};
    return nullptr;
  }
}

std::optional<Program> ProgramLibrary::compile_once(const Order& order,
                                                    Diagnostics& diagnostics) const {
  const std::string file = order.choice.program + ".mscl";
  auto text = read_(file);
  if (!text) {
    diagnostics.error("no-registry", {},
                      fmt::format("the library names '{}{}', which is not there", place(), file));
    return std::nullopt;
  }
  Sources sources;
  FrontEndOptions front{
      .defines = order.choice.defines(order.call), .read_file = read_, .relative_names = true};
  PassOptions passes;
  passes.limits = target_.op_limits();
  const FileId main = sources.add(file, *std::move(text));
  auto program = compile(sources, main, front, passes, diagnostics);
  if (program && !program->split) {
    diagnostics.error("no-registry", {},
                      fmt::format("'{}{}' is IR text that is not 'split'", place(), file));
    return std::nullopt;
  }
  return program;
}

bool ProgramLibrary::finish(MadePlan& into, std::shared_ptr<const Program> plan,
                            const Order& order) const {
  auto checked = std::make_shared<CheckedPlan>();
  PickedPlan& picked = checked->picked;
  picked.name = place() + order.name();
  picked.max_bytes = order.max_bytes;
  if (order.architecture != 0) {
    picked.file = fmt::format("{}/sm_{}/{}", kernels_, order.architecture,
                              order.choice.plan_file(order.call));
  }
  picked.why = "the first row of the library that fits";
  if (policy_ == ProofPolicy::skip) {
    warn_of_skipped(fmt::format("'{}'", picked.name), std::nullopt, into.diagnostics);
  } else {
    const auto digest = plan_digest(plan, into.diagnostics);
    if (!digest) return false;
    picked.proof = check_proof(*plan, *digest, Environment::of_process(), into.diagnostics);
    if (!picked.proof) return false;
  }
  picked.plan = std::move(plan);
  checked->facts = PlanFacts(picked);
  into.of_row.plan = std::move(checked);
  return true;
}

}  // namespace mscclc
