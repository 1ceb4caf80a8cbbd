#include "tests/structure/definitions.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include "tests/structure/cpp_syntax.h"
#include "tests/structure/tokens.h"

namespace mscclc::structure {
namespace {

std::string join(Tokens tokens) {
  std::string text;
  for (const Token& token : tokens) {
    if (!text.empty() && token.is_word() && std::isalnum(static_cast<unsigned char>(text.back()))) {
      text += ' ';
    }
    text += token.text;
  }
  return text;
}

/// Types of parameters, without names and default values.
std::string parameter_types(Tokens parameters) {
  std::string types;
  for (size_t begin = 0; begin < parameters.size();) {
    size_t end = begin, type_end = parameters.size();
    while (end < parameters.size() && !parameters[end].is(",")) {
      if (parameters[end].is("=")) type_end = std::min(type_end, end);
      const bool angle = end > begin && opens_template(parameters, end);
      const bool bracket = parameters[end].is("(") || parameters[end].is("{");
      end = angle     ? after_angle(parameters, end)
            : bracket ? after_closing(parameters, end)
                      : end + 1;
    }
    type_end = std::min(type_end, end);
    Tokens type = parameters.subspan(begin, type_end - begin);
    if (type.size() > 1 && type.back().is_word() && !type[type.size() - 2].is("::")) {
      type = type.first(type.size() - 1);
    }
    types += (types.empty() ? "" : ",") + join(type);
    begin = end + 1;
  }
  return types;
}

class Finder {
 public:
  explicit Finder(Tokens tokens) : tokens_(tokens) {}

  std::vector<Definition> find() {
    while (at_ < tokens_.size()) statement("", false);
    return std::move(found_);
  }

 private:
  /// The statement at `at_`, which stands in namespace `path`. `hidden`: an unnamed one is around.
  void statement(const std::string& path, bool hidden) {
    skip_prefix();
    if (at_ >= tokens_.size()) return;
    if (at(at_).is("}")) fail(at(at_).line, "this } closes nothing");
    if (starts_namespace()) return enter_namespace(path, hidden);
    if (at(at_).is("extern") && next_is(1, "\"") && next_is(2, "{")) {
      at_ += 2;
      return block(path, hidden);
    }
    const size_t begin = at_;
    const bool defines = kTypeKeywords.count(at(at_).text) ? type() : other();
    if (!defines || hidden) return;
    found_.push_back({(path.empty() ? "" : path + "::") + name_, at(begin).line});
  }

  const Token& at(size_t i) const {
    if (i >= tokens_.size()) fail(tokens_.back().line, "the file ends inside of a statement");
    return tokens_[i];
  }

  bool next_is(size_t ahead, std::string_view text) const {
    return at_ + ahead < tokens_.size() && at(at_ + ahead).is(text);
  }

  /// Templates, attributes, macros that are calls, and semicolons that end nothing.
  void skip_prefix() {
    while (at_ < tokens_.size()) {
      const Token& token = at(at_);
      if (token.is(";")) {
        ++at_;
      } else if (token.is("[")) {
        at_ = after_closing(tokens_, at_);
      } else if (token.is("template") && next_is(1, "<")) {
        at_ = after_angle(tokens_, at_ + 1);
      } else if (kWithParentheses.count(token.text) && next_is(1, "(")) {
        at_ = after_closing(tokens_, at_ + 1);
      } else if (token.is("static_assert")) {
        skip_rest();
      } else if (is_macro_name(token.text) && next_is(1, "(")) {
        at_ = after_closing(tokens_, at_ + 1);
        if (at_ < tokens_.size() && at(at_).is("{")) at_ = after_closing(tokens_, at_);
      } else {
        return;
      }
    }
  }

  bool starts_namespace() const {
    const bool is_inline = at(at_).is("inline") && next_is(1, "namespace");
    if (!at(at_).is("namespace") && !is_inline) return false;
    for (size_t i = at_; i < tokens_.size(); ++i) {
      if (at(i).is("{")) return true;
      if (at(i).is("=") || at(i).is(";")) return false;
    }
    return false;
  }

  void enter_namespace(std::string path, bool hidden) {
    const size_t begin = at_;
    while (!at(at_).is("{")) ++at_;
    std::string name;
    for (const Token& token : tokens_.subspan(begin, at_ - begin)) {
      if (!token.is("namespace") && !token.is("inline")) name += token.text;
    }
    if (name.empty()) hidden = true;
    block(path.empty() || name.empty() ? path + name : path + "::" + name, hidden);
  }

  /// The statements between `{`, where `at_` stands, and its `}`.
  void block(const std::string& path, bool hidden) {
    const size_t line = at(at_).line;
    ++at_;
    while (true) {
      skip_prefix();
      if (at_ >= tokens_.size()) fail(line, "nothing closes this {");
      if (at(at_).is("}")) break;
      statement(path, hidden);
    }
    ++at_;
  }

  /// A statement that begins with `class`, `struct`, `union` or `enum`. False if it defines
  /// nothing.
  bool type() {
    size_t i = at_ + 1;
    while (i < tokens_.size() &&
           (kTypeKeywords.count(at(i).text) || at(i).is("[") || at(i).is("alignas"))) {
      if (at(i).is("alignas")) ++i;
      i = at(i).is("[") || at(i).is("(") ? after_closing(tokens_, i) : i + 1;
    }
    const size_t name_begins = i;
    while (i < tokens_.size() && (at(i).is_word() || at(i).is("::")) && !at(i).is("final")) {
      ++i;
    }
    if (i < tokens_.size() && at(i).is("<")) i = after_angle(tokens_, i);
    name_ = join(tokens_.subspan(name_begins, i - name_begins));
    while (i < tokens_.size() && !at(i).is("{") && !at(i).is(";")) {
      if (at(i).is("(") || at(i).is("=")) return other();  // returns or is of that type
      ++i;
    }
    const bool defines = i < tokens_.size() && at(i).is("{");
    at_ = i;
    skip_rest();
    return defines && !name_.empty();
  }

  /// What is left of a statement that ends with a semicolon.
  void skip_rest() {
    while (!at(at_).is(";")) {
      const bool opens = at(at_).is("{") || at(at_).is("(") || at(at_).is("[");
      at_ = opens ? after_closing(tokens_, at_) : at_ + 1;
    }
    ++at_;
  }

  /// A function or a variable. False if it defines nothing that other files see.
  bool other() {
    const size_t begin = at_;
    for (size_t i = at_; i < tokens_.size();) {
      const Token& token = at(i);
      if (token.is("operator")) return function(begin, i, after_operator(i));
      if (token.is("<")) {
        i = after_angle(tokens_, i);
      } else if (token.is("[")) {
        i = after_closing(tokens_, i);
      } else if (kWithParentheses.count(token.text) && at(i + 1).is("(")) {
        i = after_closing(tokens_, i + 1);
      } else if (token.is("(")) {
        return function(begin, name_begin(begin, i), i);
      } else if (token.is("=") || token.is("{") || token.is(";")) {
        return variable(begin, i);
      } else {
        ++i;
      }
    }
    fail(at(begin).line, "a statement without end");
  }

  size_t after_operator(size_t i) const {
    ++i;
    if (at(i).is("(")) return after_closing(tokens_, i);
    while (!at(i).is("(")) ++i;
    return i;
  }

  /// Where the qualified name begins that ends at `end`.
  size_t name_begin(size_t begin, size_t end) const {
    size_t i = end;
    if (i > begin && at(i - 1).is(">")) {
      while (i > begin && !at(i).is("<")) --i;
    }
    while (i > begin && (at(i - 1).is("::") || at(i - 1).is("~") ||
                         (at(i - 1).is_word() &&
                          (i == end || at(i).is("<") || at(i).is("::") || at(i).is("~"))))) {
      --i;
    }
    return i;
  }

  bool has_word(size_t begin, size_t end, Words words) const {
    return contains_word(tokens_.subspan(begin, end - begin), words);
  }

  bool variable(size_t begin, size_t end) {
    const bool defines = !at(end).is(";");
    const bool is_inline = has_word(begin, end, {"inline"});
    const bool local = has_word(begin, end, {"static", "const", "constexpr"}) && !is_inline;
    const bool no_variable = has_word(begin, end, {"using", "typedef", "concept", "namespace"});
    size_t last = end;
    while (last > begin && !at(last - 1).is_word()) --last;
    name_ = last > begin ? at(last - 1).text : "";
    at_ = end;
    skip_rest();
    return defines && !local && !no_variable && !name_.empty();
  }

  /// The function whose name stands at [name, parameters).
  bool function(size_t begin, size_t name, size_t parameters) {
    const size_t after = after_closing(tokens_, parameters);
    name_ = join(tokens_.subspan(name, parameters - name)) + "(" +
            parameter_types(tokens_.subspan(parameters + 1, after - parameters - 2)) + ")";
    at_ = after;
    const bool defines = skip_to_body();
    if (!defines) {
      skip_rest();
      return false;
    }
    at_ = after_closing(tokens_, at_);
    return !has_word(begin, name, {"static"});
  }

  /// Goes to the `{` of a function's body; false at a declaration.
  bool skip_to_body() {
    while (at_ < tokens_.size()) {
      const Token& token = at(at_);
      if (token.is("{")) return true;
      if (token.is(";") || token.is("=")) return false;
      if (token.is(":")) {
        skip_initialisers();
      } else {
        at_ = token.is("(") || token.is("[") ? after_closing(tokens_, at_) : at_ + 1;
      }
    }
    return false;
  }

  /// `: a_(1), b_{2}` of a constructor; `at_` stands at the colon.
  void skip_initialisers() {
    do {
      ++at_;
      while (!at(at_).is("(") && !at(at_).is("{")) {
        at_ = at(at_).is("<") ? after_angle(tokens_, at_) : at_ + 1;
      }
      at_ = after_closing(tokens_, at_);
      while (next_is(0, ".")) ++at_;
    } while (next_is(0, ","));
  }

  Tokens tokens_;
  size_t at_ = 0;
  std::string name_;  ///< of the statement read last
  std::vector<Definition> found_;
};

}  // namespace

std::vector<Definition> definitions(std::string_view source) {
  const std::vector<Token> all = tokens(source);
  return Finder(all).find();
}

namespace {

/// Does the file stand in the place of another, of which the build takes one?
bool is_twin(const std::string& path) {
  return path.find("_without_gpu.") != path.npos || path.find("_on_host.") != path.npos ||
         (path.starts_with("executor/cuda/host/") && path.ends_with("access.h"));
}

}  // namespace

std::map<std::string, std::set<std::string>> doubles(
    const std::map<std::string, std::string>& sources) {
  std::map<std::string, std::set<std::string>> paths;
  for (const auto& [path, text] : sources) {
    if (is_twin(path)) continue;
    try {
      for (const Definition& one : definitions(text)) {
        if (one.name.starts_with("mscclc::")) paths[one.name].insert(path);
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ", " + error.what());
    }
  }
  std::erase_if(paths, [](const auto& entry) { return entry.second.size() < 2; });
  return paths;
}

}  // namespace mscclc::structure
