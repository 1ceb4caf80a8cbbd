#include "tools/lsp/language/names.h"

#include <algorithm>

#include "tools/lsp/language/name_finder.h"

namespace mscclc::lsp {

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {
      "parameter", "value",          "loop variable",  "argument",  "function",
      "def",       "buffer",         "channel",        "semaphore", "row function",
      "external",  "array of flags", "caller's buffer"};
  return kNames[static_cast<size_t>(kind)];
}

Names::Names(const Tree& tree) : tree_(tree) {
  NameFinder(tree, *this).run();
  std::ranges::sort(uses_, {}, [](const Use& use) { return use.place.begin; });
}

const Use* Names::at(size_t byte) const {
  const uint32_t place = tree_.place_of(byte);
  const auto after =
      std::ranges::upper_bound(uses_, place, {}, [](const Use& use) { return use.place.begin; });
  if (after == uses_.begin()) return nullptr;
  const Use& use = after[-1];
  return place <= use.place.end && tree_.bytes(use.place) ? &use : nullptr;
}

std::vector<Use> Names::uses_of(uint32_t declared) const {
  std::vector<Use> found;
  std::ranges::copy_if(uses_, std::back_inserter(found),
                       [&](const Use& use) { return use.declared == declared; });
  return found;
}

std::vector<const Declared*> Names::visible(size_t byte) const {
  const uint32_t place = tree_.place_of(byte);
  std::vector<const Declared*> found;
  for (const Declared& d : all_) {
    const bool here = std::ranges::any_of(d.scopes, [&](const ast::TextRange& scope) {
      return scope.begin <= place && place <= scope.end;
    });
    if (here) found.push_back(&d);
  }
  return found;
}

}  // namespace mscclc::lsp
