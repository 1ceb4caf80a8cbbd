#include "tests/structure/classes.h"

#include <algorithm>
#include <stdexcept>

#include "tests/structure/cpp_syntax.h"

namespace mscclc::structure {
namespace {

const std::set<std::string_view> kAccess = {"public", "private", "protected"};
/// Statements that declare neither functions nor data.
const std::set<std::string_view> kOthers = {"using", "typedef", "static_assert", "concept"};

std::string inside(const std::string& scope, const std::string& name) {
  return scope.empty() || name.empty() ? scope + name : scope + "::" + name;
}

class ClassReader {
 public:
  explicit ClassReader(Tokens tokens) : tokens_(tokens) {}

  FileClasses read() {
    while (at_ < tokens_.size()) statement("", nullptr);
    return std::move(found_);
  }

 private:
  /// The class whose body is read.
  struct Body {
    ClassSize size;
    bool open;  ///< what follows is public
  };

  const Token& at(size_t i) const {
    if (i >= tokens_.size()) fail(tokens_.back().line, "the file ends inside of a statement");
    return tokens_[i];
  }
  bool sees(size_t ahead, std::string_view text) const {
    return at_ + ahead < tokens_.size() && tokens_[at_ + ahead].is(text);
  }

  void statement(const std::string& scope, Body* body) {
    const Token& first = at(at_);
    if (first.is(";")) {
      ++at_;
    } else if (first.is("}")) {
      fail(first.line, "this } closes nothing");
    } else if (body != nullptr && kAccess.count(first.text) && sees(1, ":")) {
      body->open = first.is("public");
      at_ += 2;
    } else if (starts_prefix()) {
      skip_prefix();
    } else if (first.is("extern") && sees(1, "\"") && sees(2, "{")) {
      at_ += 2;
      block(scope, nullptr);
    } else if (first.is("namespace") || (first.is("inline") && sees(1, "namespace"))) {
      enter_namespace(scope);
    } else if (kOthers.count(first.text) || first.is("template")) {  // an instantiation
      skip_to_semicolon();
    } else if (kTypeKeywords.count(first.text)) {
      type(scope, body);
    } else {
      declaration(scope, body);
    }
  }

  /// Attributes, the heads of templates, and macros that are calls.
  bool starts_prefix() const {
    const Token& first = at(at_);
    const bool call = is_macro_name(first.text) || kWithParentheses.count(first.text);
    return first.is("[") || (first.is("template") && sees(1, "<")) || (call && sees(1, "("));
  }

  void skip_prefix() {
    if (at(at_).is("[")) {
      at_ = after_closing(tokens_, at_);
    } else if (at(at_).is("template")) {
      at_ = after_angle(tokens_, at_ + 1);
    } else {
      const bool macro = !kWithParentheses.count(at(at_).text);
      at_ = after_closing(tokens_, at_ + 1);
      if (macro && sees(0, "{")) at_ = after_closing(tokens_, at_);
    }
  }

  void enter_namespace(const std::string& scope) {
    std::string name;
    while (!at(at_).is("{")) {
      if (at(at_).is("=")) return skip_to_semicolon();
      if (!at(at_).is("namespace") && !at(at_).is("inline")) name += at(at_).text;
      ++at_;
    }
    block(inside(scope, name), nullptr);
  }

  /// The statements between `{`, where `at_` stands, and its `}`.
  void block(const std::string& scope, Body* body) {
    const size_t line = at(at_).line;
    ++at_;
    while (!sees(0, "}")) {
      if (at_ >= tokens_.size()) fail(line, "nothing closes this {");
      statement(scope, body);
    }
    ++at_;
  }

  void skip_to_semicolon() {
    while (!at(at_).is(";")) at_ = after_group(at_);
    ++at_;
  }

  /// The index after the token, or after what it opens.
  size_t after_group(size_t i) const {
    const bool opens = at(i).is("{") || at(i).is("(") || at(i).is("[");
    return opens ? after_closing(tokens_, i) : i + 1;
  }

  /// The same, where `<` may open the arguments of a template.
  size_t after_type_group(size_t i) const {
    if (i == 0 || !opens_template(tokens_, i)) return after_group(i);
    size_t depth = 0;
    for (size_t k = i; k < tokens_.size() && !tokens_[k].is(";"); k = after_group(k)) {
      if (tokens_[k].is("<")) ++depth;
      if (tokens_[k].is(">") && --depth == 0) return k + 1;
    }
    return i + 1;  // it was an operator
  }

  /// What begins with `class`, `struct`, `union` or `enum`.
  void type(const std::string& scope, Body* body) {
    const bool is_enum = at(at_).is("enum"), is_class = at(at_).is("class");
    const size_t line = at(at_).line, begin = at_;
    size_t i = at_ + 1;
    while (at(i).is("[") || at(i).is("alignas") || kTypeKeywords.count(at(i).text)) {
      i = at(i).is("alignas") ? after_closing(tokens_, i + 1) : after_group(i);
    }
    std::string name;
    for (; at(i).is_word() || at(i).is("::"); ++i) {
      if (!at(i).is("final")) name += at(i).text;
    }
    while (!at(i).is("{") && !at(i).is(";")) {
      if (at(i).is("(") || at(i).is("=")) {  // it returns, or is, of that type
        at_ = begin + 1;
        return declaration(scope, body);
      }
      i = after_type_group(i);
    }
    at_ = i;
    if (at(i).is(";")) {
      ++at_;
      return;
    }
    if (is_enum) {
      at_ = after_closing(tokens_, at_);
    } else {
      Body inner{{.name = inside(scope, name), .line = line}, !is_class};
      block(inner.size.name, &inner);
      if (!name.empty()) found_.classes.push_back(inner.size);
    }
    variables(body, at(at_).is(";") ? 0 : 1);
  }

  /// Up to the semicolon, after `names` of data of the class, or of what stands in none: counts
  /// them, and those that follow after commas.
  void variables(Body* body, size_t names, bool fixed = false) {
    bool value = false;  // what follows is an initialiser
    while (!at(at_).is(";")) {
      if (at(at_).is(",")) {
        ++names;
        value = false;
      }
      value = value || at(at_).is("=");
      at_ = value && at(at_).is("<") ? after_type_group(at_) : after_group(at_);
    }
    ++at_;
    if (body == nullptr) return;
    body->size.members += names;
    if (!body->open) body->size.hidden += names;
    if (body->open && !fixed) body->size.shown += names;
  }

  /// A function or data.
  void declaration(const std::string& scope, Body* body) {
    const size_t begin = at_;
    for (size_t i = at_; i < tokens_.size();) {
      const Token& token = at(i);
      if (token.is("operator")) return function(scope, body, begin, i, after_operator(i));
      if (kWithParentheses.count(token.text) && at(i + 1).is("(")) {
        i = after_closing(tokens_, i + 1);
      } else if (token.is("(") && !at(i + 1).is("*") && !at(i + 1).is("&")) {
        return function(scope, body, begin, i, i);
      } else if (token.is("=") || token.is("{") || token.is(";") || token.is(":") ||
                 token.is(",") || token.is("(")) {
        return data(body, begin, i);
      } else {
        i = after_type_group(i);
      }
    }
    fail(at(begin).line, "a statement without end");
  }

  bool has_word(size_t begin, size_t end, Words words) const {
    return contains_word(tokens_.subspan(begin, end - begin), words);
  }

  void data(Body* body, size_t begin, size_t end) {
    at_ = end;
    // Not the object's: a friend that is a class, constants, and what all objects share.
    const bool shared = has_word(begin, end, {"friend", "static", "constexpr"});
    variables(shared ? nullptr : body, 1, cannot_change(begin, end));
  }

  /// Is what is declared there, with its name last, a reference or a constant?
  bool cannot_change(size_t begin, size_t end) const {
    if (end < begin + 2) return false;
    const Token& before = at(end - 2);
    return before.is("&") || before.is("const") ||
           (at(begin).is("const") && !has_word(begin, end, {"*"}));
  }

  size_t after_operator(size_t i) const {
    ++i;
    if (at(i).is("(")) return after_closing(tokens_, i);
    while (!at(i).is("(")) ++i;
    return i;
  }

  void function(const std::string& scope, Body* body, size_t begin, size_t name,
                size_t parameters) {
    at_ = after_closing(tokens_, parameters);
    bool counts = true, defines = false, query = false;
    while (!at(at_).is(";")) {
      if (at(at_).is("{")) {
        defines = true;
        break;
      }
      if (at(at_).is(":")) {
        skip_initialisers();
        continue;
      }
      counts = counts && !at(at_).is("default") && !at(at_).is("delete");
      query = query || at(at_).is("const");
      at_ = after_group(at_);
    }
    at_ = after_group(at_);
    if (body != nullptr) {
      if (!counts || has_word(begin, name, {"friend"})) return;
      ++body->size.functions;
      const std::string& scopes = body->size.name;
      const bool makes = at(name - 1).is(scopes.substr(scopes.rfind(':') + 1)) ||
                         has_word(begin, name, {"static"});
      if (makes) {
        ++body->size.makers;
      } else if (query) {
        ++body->size.queries;
      }
    } else if (defines) {
      const std::string owner = owner_of(begin, name);
      if (!owner.empty()) found_.completed.insert(inside(scope, owner));
    }
  }

  /// `A::B` where the function is `A::B::f`, at the parenthesis or the word `operator` at `end`.
  std::string owner_of(size_t begin, size_t end) const {
    size_t i = end;
    if (!at(end).is("operator")) i = at(end - 1).is_word() ? end - 1 : end;
    if (i > begin && at(i - 1).is("~")) --i;
    std::string owner;
    while (i > begin + 1 && at(i - 1).is("::")) {
      --i;
      if (at(i - 1).is(">")) {
        while (i > begin && !at(i).is("<")) --i;
      } else {
        --i;
      }
      if (at(i).is("<")) --i;
      owner = inside(std::string(at(i).text), owner);
    }
    return owner;
  }

  /// `: a_(1), b_{2}` of a constructor; `at_` stands at the colon.
  void skip_initialisers() {
    do {
      ++at_;
      while (!at(at_).is("(") && !at(at_).is("{")) at_ = after_type_group(at_);
      at_ = after_closing(tokens_, at_);
      while (sees(0, ".")) ++at_;
    } while (sees(0, ","));
  }

  Tokens tokens_;
  size_t at_ = 0;
  FileClasses found_;
};

}  // namespace

FileClasses classes_of(std::string_view source) {
  const std::vector<Token> all = tokens(source);
  return ClassReader(all).read();
}

bool ClassOfTree::is_open() const {
  constexpr size_t kMany = 12, kFew = 4;
  return size.shown > kFew && size.shown > size.hidden && size.changers() > kFew &&
         size.shown + size.changers() > kMany;
}

std::vector<ClassOfTree> classes_of_tree(const std::map<std::string, std::string>& sources) {
  std::vector<ClassOfTree> all;
  std::map<std::string, std::set<std::string>> completed;
  for (const auto& [path, text] : sources) {
    try {
      const FileClasses file = classes_of(text);
      for (const ClassSize& size : file.classes) all.push_back({size, path, {}});
      for (const std::string& name : file.completed) completed[name].insert(path);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ", " + error.what());
    }
  }
  for (ClassOfTree& one : all) {
    if (const auto found = completed.find(one.size.name); found != completed.end()) {
      one.sources = found->second;
      one.sources.erase(one.path);
    }
  }
  std::ranges::stable_sort(all, [](const ClassOfTree& a, const ClassOfTree& b) {
    return a.size.size() > b.size.size();
  });
  return all;
}

}  // namespace mscclc::structure
