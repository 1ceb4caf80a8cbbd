// Changes of a text: applied, and found again between two texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/facts.h"

namespace mscclc::fix {

/// A change that may fix a program.
struct Candidate {
  std::string title;            ///< "add 'copies: 2'"
  std::vector<TextEdit> edits;  ///< in order, not overlapping
};

/// The text with the edits. REQUIRES: they are in order, do not overlap, and lie in the text.
std::string patched(std::string_view text, const std::vector<TextEdit>& edits);
/// The edits that make `after` of `before`, a few lines at most each.
std::vector<TextEdit> difference(std::string_view before, std::string_view after, FileId file);
/// The same as a unified diff with three lines of context.
std::string unified_diff(const std::string& name, std::string_view before, std::string_view after);

}  // namespace mscclc::fix
