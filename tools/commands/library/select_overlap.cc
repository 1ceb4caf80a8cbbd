#include "tools/commands/library/select_overlap.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/overlap/choice.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {

std::vector<std::string> overlap_kind_names() {
  std::vector<std::string> names;
  for (const overlap::KindInfo& one : overlap::kinds()) names.emplace_back(name(one.kind));
  return names;
}

OverlapKind overlap_kind_of(const std::string& name) {
  const auto named = [&](const overlap::KindInfo& one) { return mscclc::name(one.kind) == name; };
  return std::ranges::find_if(overlap::kinds(), named)->kind;
}

int select_overlap(const OverlapSelection& selection) {
  using overlap::RunMode;
  Diagnostics diagnostics;
  const auto choice =
      overlap::choose_on_gpus(selection.config, selection.ranks,
                              selection.captured ? RunMode::captured : RunMode::eager, diagnostics);
  put_error(render_text(diagnostics, Sources(), 1));
  if (!choice) return kUsage;
  std::string text = choice->backend;
  if (choice->chunks != 0) text += fmt::format(", chunks {}", choice->chunks);
  if (choice->budget != 0) text += fmt::format(", budget {}", choice->budget);
  put(text + (selection.why ? ": " + choice->why : "") + "\n");
  return kFine;
}

}  // namespace mscclc
