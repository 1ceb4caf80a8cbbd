#include "tools/lsp/features/edit.h"

#include <fmt/format.h>

#include "compiler/fix/edits.h"
#include "compiler/fix/fix.h"
#include "compiler/format/format.h"

namespace mscclc::lsp {
namespace {

Json edits_to(const Document& document, const std::string& after) {
  Json edits = Json::array();
  for (const TextEdit& edit : fix::difference(document.text(), after, 0)) {
    edits.push_back(
        {{"range", to_json(document.lines().range(edit.begin, edit.end))}, {"newText", edit.text}});
  }
  return edits;
}

}  // namespace

Json formatting(Document& document) {
  Sources sources;
  Diagnostics errors;
  const auto formatted =
      format_program(sources, sources.add(document.path(), document.text()), errors);
  return formatted ? edits_to(document, *formatted) : Json(nullptr);
}

FoundPatch find_patch(Document& document) {
  FixLimits limits;
  limits.seconds = document.surroundings().patch_seconds;
  const FrontEndOptions front = document.front_end(document.parameter_sets().front());
  const FixResult found = find_fix(document.path(), document.text(), front, {}, limits);
  if (!found.refused.empty()) return {nullptr, "no patch: the document " + found.refused};
  if (found.text.empty()) {
    return {nullptr, fmt::format("no patch found: none of {} changes is proved", found.tried)};
  }
  return {edits_to(document, found.text), found.title};
}

}  // namespace mscclc::lsp
