#include "tests/structure/call_structs.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "ir/contract/collectives.h"
#include "tests/structure/cpp_syntax.h"
#include "tests/structure/tokens.h"

namespace mscclc::structure {
namespace {

using Words = std::set<std::string_view>;
const Words kTypes = {"Dtype", "ncclDataType_t", "mscclc_dtype_t"};
const Words kReductions = {"ReduceOp", "ncclRedOp_t", "mscclc_op_t"};
const Words kSizes = {"bytes", "count", "part_bytes"};

/// What the members of a body say.
struct Said {
  bool size = false, type = false, reduction = false;
};

bool contains(Tokens statement, const Words& words) {
  return std::any_of(statement.begin(), statement.end(),
                     [&](const Token& token) { return words.contains(token.text); });
}

/// Adds what a member says; functions, types and static members say nothing.
void add(Tokens statement, Said& said) {
  static const Words kNoMember = {"using", "typedef", "friend", "static",  "struct",
                                  "class", "union",   "enum",   "template"};
  const auto value = std::find_if(statement.begin(), statement.end(),
                                  [](const Token& token) { return token.is("="); });
  const Tokens declared = statement.first(static_cast<size_t>(value - statement.begin()));
  if (declared.empty() || kNoMember.contains(declared[0].text) || contains(declared, {"("})) return;
  said.type |= contains(declared, kTypes);
  said.reduction |= contains(declared, kReductions);
  said.size |= contains(declared, kSizes);
}

/// The members between the brackets at `open` and before `end`. What stands in braces belongs to a
/// nested type, a function or an initial value.
Said members(Tokens tokens, size_t open, size_t end) {
  Said said;
  std::vector<Token> statement;
  for (size_t at = open + 1; at + 1 < end;) {
    const Token& token = tokens[at];
    const bool label = token.is(":") && statement.size() == 1;
    if (token.is(";") || label) {
      add(statement, said);
      statement.clear();
      ++at;
    } else if (token.is("{")) {
      const bool function = contains(statement, {"("});
      at = after_closing(tokens, at);
      if (function) statement.clear();
    } else if (token.is("(")) {
      statement.push_back(token);
      at = after_closing(tokens, at);
    } else {
      statement.push_back(token);
      ++at;
    }
  }
  return said;
}

/// The index of the body's bracket of the type that is named at `at`; 0: it has no body here.
size_t body_of(Tokens tokens, size_t at) {
  while (at < tokens.size() && !tokens[at].is("{")) {
    // The last two end a parameter of a template.
    for (const char* other : {";", "(", ")", "=", ">"}) {
      if (tokens[at].is(other)) return 0;
    }
    at = tokens[at].is("<") ? after_angle(tokens, at) : at + 1;
  }
  return at < tokens.size() ? at : 0;
}

bool is_kind(std::string_view word) {
  std::string name;
  for (const char c : word) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::string_view prefix = "mscclc_";
  return find_collective(name.starts_with(prefix) ? name.substr(prefix.size()) : name).has_value();
}

/// Does a switch whose body is between these have a case for a kind?
bool has_kind(Tokens tokens, size_t open, size_t end) {
  for (size_t at = open; at < end; ++at) {
    if (!tokens[at].is("case")) continue;
    for (++at; at < end && !tokens[at].is(":"); ++at) {
      if (is_kind(tokens[at].text)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<Found> call_structs(const std::map<std::string, std::string>& sources) {
  std::vector<Found> found;
  for (const auto& [path, text] : sources) {
    const std::vector<Token> all = tokens(text);
    for (size_t at = 0; at + 1 < all.size(); ++at) {
      if (!all[at].is("struct") && !all[at].is("class")) continue;
      const std::string_view name = all[at + 1].text;
      const size_t open = name.ends_with("Key") ? 0 : body_of(all, at + 1);
      if (open == 0) continue;
      const Said said = members(all, open, after_closing(all, open));
      if (said.size && said.type && said.reduction) {
        found.push_back({std::string(name), path, all[at].line});
      }
    }
  }
  return found;
}

std::vector<Found> kind_switches(const std::map<std::string, std::string>& sources) {
  std::vector<Found> found;
  for (const auto& [path, text] : sources) {
    const std::vector<Token> all = tokens(text);
    for (size_t at = 0; at + 1 < all.size(); ++at) {
      if (!all[at].is("switch") || !all[at + 1].is("(")) continue;
      const size_t open = after_closing(all, at + 1);
      if (open >= all.size() || !all[open].is("{")) continue;
      if (has_kind(all, open, after_closing(all, open))) {
        found.push_back({"switch", path, all[at].line});
      }
    }
  }
  return found;
}

}  // namespace mscclc::structure
