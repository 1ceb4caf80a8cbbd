#include "tools/commands/library/select_overlap.h"

#include "runtime/api/plan_registry.h"
#include "runtime/core/overlap/choice.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {

namespace {

/// In the order in which they are asked. nullopt: reported.
std::optional<std::vector<MeasuredTable>> tables_of(const std::string& folder,
                                                    Diagnostics& diagnostics) {
  const auto registry = PlanRegistry::create({}, diagnostics);
  if (registry == nullptr) return std::nullopt;
  std::vector<MeasuredTable> tables = registry->measured()->tables;
  if (folder.empty()) return tables;
  auto more = read_measured_of(folder, diagnostics);
  if (!more) return std::nullopt;
  tables.push_back(*std::move(more));
  return tables;
}

}  // namespace

int select_overlap(const OverlapSelection& selection) {
  using overlap::RunMode;
  Diagnostics diagnostics;
  const auto tables = tables_of(selection.library, diagnostics);
  std::optional<OverlapChoice> choice;
  if (tables) {
    choice = overlap::choose_on_gpus(selection.config, selection.ranks,
                                     selection.captured ? RunMode::captured : RunMode::eager,
                                     *tables, diagnostics);
  }
  put_error(render_text(diagnostics, Sources(), 1));
  if (!choice) return kUsage;
  put(overlap::text_of(*choice) + (selection.why ? ": " + choice->why : "") + "\n");
  return kFine;
}

}  // namespace mscclc
