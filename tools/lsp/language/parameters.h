// Which parameters a document is compiled with: those that its comments ask for, or else its
// defaults with what the editor's settings say.
//
//   # mscclc: -D R=4 -D B=2      a set of parameters; each such line is a set, and all are checked
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/lsp/language/tree.h"

namespace mscclc::lsp {

/// As FrontEndOptions::defines.
using Defines = std::vector<std::pair<std::string, std::string>>;

struct ParameterSet {
  Defines defines;
  size_t line = 0;  ///< of the comment, from 0; 0 if there is none
};

/// So many comments of a file are checked.
inline constexpr size_t kMaxSets = 8;

/// At least one set, and one beyond kMaxSets where there are more. Of `settings` those count that
/// the program has as parameters.
std::vector<ParameterSet> parameter_sets(const std::string& text, const Tree* tree,
                                         const std::map<std::string, std::string>& settings);
/// "-D R=4 -D B=2"; empty: the defaults.
std::string text_of(const Defines& defines);

}  // namespace mscclc::lsp
