#include "passes/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ir/verify/verify.h"
#include "passes/framework/passes.h"

namespace mscclc {
namespace {

constexpr PassInfo kPasses[] = {
#define PASS(name, summary) {#name, summary, run_##name},
#include "passes/framework/passes.def"
#undef PASS
};

/// The passes that `options` asks for; false after reporting an unknown name.
bool select_passes(const PassOptions& options, std::vector<const PassInfo*>& selected,
                   Diagnostics& diagnostics) {
  if (options.none) return true;
  if (options.only.empty()) {
    for (const PassInfo& pass : kPasses) selected.push_back(&pass);
    return true;
  }
  std::vector<std::string_view> names;
  for (const PassInfo& pass : kPasses) names.push_back(pass.name);
  bool known = true;
  for (const std::string& name : options.only) {
    selected.push_back(find_pass(name));
    if (selected.back() != nullptr) continue;
    known = false;
    const std::string near = nearest(name, names);
    const std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
    diagnostics.error("unknown-pass", {}, fmt::format("unknown pass '{}'{}", name, hint));
  }
  return known;
}

uint64_t count_ops(const Program& program) {
  uint64_t ops = 0;
  for (const Rank& rank : program.ranks) ops += rank.ops.size();
  return ops;
}

/// Runs a pass, and fills the record if there is one.
bool run_recorded(const PassInfo& pass, Program& program, PassContext& context) {
  if (context.record == nullptr) return pass.run(program, context);
  PassRecord& record = *context.record;
  record.pass = pass.name;
  record.ops_before = count_ops(program);
  const RunClock clock;
  const bool done = pass.run(program, context);
  clock.stop(record);
  record.ops_after = count_ops(program);
  return done;
}

}  // namespace

std::span<const PassInfo> passes() { return kPasses; }

const PassInfo* find_pass(std::string_view name) {
  const auto found = std::find_if(std::begin(kPasses), std::end(kPasses),
                                  [&](const PassInfo& pass) { return pass.name == name; });
  return found == std::end(kPasses) ? nullptr : found;
}

bool run_passes(Program& program, const PassOptions& options, Diagnostics& diagnostics) {
  std::vector<const PassInfo*> selected;
  if (!select_passes(options, selected, diagnostics)) return false;
  PassContext context{diagnostics, options.limits, options.max_thread_blocks, nullptr,
                      options.threads};
  for (const PassInfo* pass : selected) {
    if (options.before) options.before(*pass, program, options.context);
    if (options.records) context.record = &options.records->emplace_back();
    if (!run_recorded(*pass, program, context)) return false;
    if (options.after) options.after(*pass, program, options.context);
    if (options.verify_each && !verify_structure(program, diagnostics)) return false;
  }
  return true;
}

}  // namespace mscclc
