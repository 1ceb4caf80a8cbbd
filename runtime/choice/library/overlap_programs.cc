// The programs of plans/overlap, which are part of the binary: compiled and proved when an object
// first needs one.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler/compile.h"
#include "plans/format/embedded_library.h"
#include "plans/format/target.h"
#include "runtime/api/overlap.h"
#include "runtime/choice/proofs/check_proof.h"
#include "runtime/choice/proofs/first_use.h"
#include "runtime/choice/proofs/plan_digest.h"
#include "runtime/choice/proofs/policy.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {
namespace {

std::string said(const OverlapProgram& what) {
  return fmt::format("'{}:R={},C={},I={}'", what.name, what.ranks, what.chunks, what.instances);
}

std::optional<Program> compile_program(const OverlapProgram& what, Diagnostics& diagnostics) {
  const std::string file = what.name + ".mscl";
  const auto files = embedded_overlap();
  const auto found = std::ranges::find(files, file, &LibraryFile::name);
  if (found == files.end()) {
    diagnostics.error("no-plan", {}, fmt::format("this library has no '{}'", file));
    return std::nullopt;
  }
  Sources sources;
  FrontEndOptions front{.defines = {{"R", std::to_string(what.ranks)},
                                    {"C", std::to_string(what.chunks)},
                                    {"I", std::to_string(what.instances)}},
                        .read_file = [](const std::string&) { return std::nullopt; },
                        .relative_names = true};
  const auto target = find_target("sm_90", diagnostics);
  if (!target) return std::nullopt;
  PassOptions passes;
  passes.limits = target->op_limits();
  const FileId main = sources.add(file, std::string(found->text));
  return compile(sources, main, front, passes, diagnostics);
}

/// Proved, unless the environment says otherwise. False: reported.
bool prove(const std::shared_ptr<const Program>& plan, const OverlapProgram& what,
           Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  const auto policy = proof_policy(std::nullopt, environment, diagnostics);
  if (!policy) return false;
  if (*policy == ProofPolicy::skip) {
    warn_of_skipped(said(what), std::nullopt, diagnostics);
    return true;
  }
  const auto digest = plan_digest(plan, diagnostics);
  return digest && check_proof(*plan, *digest, environment, diagnostics);
}

class BuiltinOverlapPrograms final : public OverlapPrograms {
 public:
  std::shared_ptr<const Program> program(const OverlapProgram& what,
                                         Diagnostics& diagnostics) override {
    const std::lock_guard lock(mutex_);  // ranks that are threads need the same one
    std::shared_ptr<const Program>& made = made_[what];
    if (made == nullptr) made = make(what, diagnostics);
    return made;
  }

 private:
  static std::shared_ptr<const Program> make(const OverlapProgram& what, Diagnostics& diagnostics) {
    const FirstUse first;
    auto program = compile_program(what, diagnostics);
    if (!program) return nullptr;
    const auto plan = share_plan(*std::move(program), diagnostics);
    if (plan == nullptr || !prove(plan, what, diagnostics)) return nullptr;
    first.log("compiled and proved", said(what), "make the object before it is needed");
    return plan;
  }

  std::mutex mutex_;
  std::map<OverlapProgram, std::shared_ptr<const Program>> made_;
};

}  // namespace

std::shared_ptr<OverlapPrograms> builtin_overlap_programs() {
  return std::make_shared<BuiltinOverlapPrograms>();
}

}  // namespace mscclc
