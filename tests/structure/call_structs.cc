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

using WordSet = std::set<std::string_view>;
const WordSet kTypes = {"Dtype", "ncclDataType_t", "mscclc_dtype_t", "dtype"};
const WordSet kReductions = {"ReduceOp", "ncclRedOp_t", "mscclc_op_t", "reduce", "op"};
const WordSet kSizes = {"bytes", "count", "part_bytes"};

/// What the members of a body say.
struct Said {
  bool size = false, type = false, reduction = false;

  bool all() const { return size && type && reduction; }
  bool any() const { return size || type || reduction; }
};

bool contains(Tokens statement, const WordSet& words) {
  return std::any_of(statement.begin(), statement.end(),
                     [&](const Token& token) { return words.contains(token.text); });
}

/// Adds what a member says; functions, types and static members say nothing.
void add(Tokens statement, Said& said) {
  static const WordSet kNoMember = {"using", "typedef", "friend", "static",  "struct",
                                    "class", "union",   "enum",   "template"};
  std::vector<Token> declared;
  bool is_value = false;
  for (const Token& token : statement) {
    is_value = !token.is(",") && (is_value || token.is("="));
    if (!is_value) declared.push_back(token);
  }
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

/// A struct that may have one that describes a call as its base.
struct Derived {
  Found place;
  bool says_more;  ///< it has members of its own for a size, a type or a reduction
  std::set<std::string> bases;
};

/// The names in what stands between the name of a type and its body.
std::set<std::string> bases(const Token* from, const Token* end) {
  std::set<std::string> names;
  for (; from < end; ++from) names.insert(std::string(from->text));
  return names;
}

/// Adds those whose bases are in `found`, and those that have these as their bases.
void add_derived(const std::vector<Derived>& all, CallStructs& found) {
  std::set<std::string> known;
  for (const Found& one : found.anew) known.insert(one.name);
  for (size_t before = 0; before != known.size();) {
    before = known.size();
    for (const Derived& one : all) {
      if (known.contains(one.place.name)) continue;
      if (std::ranges::none_of(one.bases, [&](const auto& base) { return known.contains(base); })) {
        continue;
      }
      known.insert(one.place.name);
      (one.says_more ? found.anew : found.derived).push_back(one.place);
    }
  }
}

/// Is it `== CollectiveKind::gather`, or that the other way round, where the word stands? `none` is
/// no kind.
bool is_compared(Tokens tokens, size_t word) {
  size_t begin = word;
  while (begin >= 2 && tokens[begin - 1].is("::")) begin -= 2;
  const auto equals = [&](size_t at) {
    return at + 1 < tokens.size() && (tokens[at].is("=") || tokens[at].is("!")) &&
           tokens[at + 1].is("=");
  };
  return (begin >= 2 && equals(begin - 2)) || equals(word + 1);
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

CallStructs call_structs(const std::map<std::string, std::string>& sources) {
  CallStructs found;
  std::vector<Derived> derived;
  for (const auto& [path, text] : sources) {
    const std::vector<Token> all = tokens(text);
    for (size_t at = 0; at + 1 < all.size(); ++at) {
      if (!all[at].is("struct") && !all[at].is("class")) continue;
      const std::string_view name = all[at + 1].text;
      const size_t open = name.ends_with("Key") ? 0 : body_of(all, at + 1);
      if (open == 0) continue;
      const Said said = members(all, open, after_closing(all, open));
      const Found here{std::string(name), path, all[at].line};
      if (said.all()) {
        found.anew.push_back(here);
      } else {
        derived.push_back({here, said.any(), bases(all.data() + at + 2, all.data() + open)});
      }
    }
  }
  add_derived(derived, found);
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

std::vector<Found> kind_comparisons(const std::map<std::string, std::string>& sources) {
  std::vector<Found> found;
  for (const auto& [path, text] : sources) {
    const std::vector<Token> all = tokens(text);
    for (size_t at = 0; at < all.size(); ++at) {
      if (all[at].is("static_assert")) at = after_closing(all, at + 1);
      if (at < all.size() && is_kind(all[at].text) && is_compared(all, at)) {
        found.push_back({std::string(all[at].text), path, all[at].line});
      }
    }
  }
  return found;
}

}  // namespace mscclc::structure
