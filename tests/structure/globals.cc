#include "tests/structure/globals.h"

#include <algorithm>
#include <initializer_list>

#include "tests/structure/cpp_syntax.h"
#include "tests/structure/tokens.h"

namespace mscclc::structure {
namespace {

enum class Scope { of_namespace, of_class, of_code };

bool has_word(Tokens statement, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(statement, [&](const Token& token) {
    return std::ranges::find(words, token.text) != words.end();
  });
}

/// Does this value come from `new`? Then it can change, whatever the pointer to it can.
bool is_made(Tokens value) {
  return has_word(value.first(std::min<size_t>(value.size(), 2)), {"new"});
}

/// Can what it declares not change? A pointer to const can.
bool is_constant(Tokens statement) {
  bool constant = false;
  for (const Token& token : statement) {
    if (token.is("constexpr")) return true;
    if (token.is("const")) constant = true;
    if (token.is("*")) constant = false;
  }
  return constant;
}

class GlobalFinder {
 public:
  explicit GlobalFinder(Tokens tokens) : tokens_(tokens) {}

  std::vector<MutableGlobal> find() {
    for (size_t i = 0; i < tokens_.size();) i = step(i);
    return std::move(found_);
  }

 private:
  /// Takes the token at `i`; returns the next one.
  size_t step(size_t i) {
    const Token& token = tokens_[i];
    if (token.is("template") && i + 1 < tokens_.size() && tokens_[i + 1].is("<")) {
      begin_ = after_angle(tokens_, i + 1);
      return begin_;
    }
    if (i > begin_ && opens_template(tokens_, i) && angle_end(i) != 0) return angle_end(i);
    if (token.is("(") || token.is("[")) {
      if (token.is("(")) calls_ = true;
      return after_closing(tokens_, i);
    }
    if (token.is("{")) return open(i);
    if (token.is("}")) {
      if (scopes_.empty()) fail(token.line, "this } closes nothing");
      scopes_.pop_back();
      return begin(i + 1);
    }
    if (token.is("=") && !calls_) {
      note(tokens_.subspan(begin_, i - begin_), is_made(tokens_.subspan(i + 1)));
      while (!tokens_[i].is(";")) {
        const bool opens = tokens_[i].is("{") || tokens_[i].is("(") || tokens_[i].is("[");
        i = opens ? after_closing(tokens_, i) : i + 1;
        if (i >= tokens_.size()) return i;
      }
      return begin(i + 1);
    }
    if (token.is(";")) {
      if (!calls_) note(tokens_.subspan(begin_, i - begin_));
      return begin(i + 1);
    }
    if (token.is(":") && scope() == Scope::of_class && i == begin_ + 1) return begin(i + 1);
    return i + 1;
  }

  /// After the bracket that closes the angle bracket at `i`; 0: it is an operator.
  size_t angle_end(size_t i) const {
    for (size_t depth = 0; i < tokens_.size();) {
      const Token& token = tokens_[i];
      if (token.is(";") || token.is("{")) return 0;
      if (token.is("<")) ++depth;
      i = token.is("(") || token.is("[") ? after_closing(tokens_, i) : i + 1;
      if (token.is(">") && --depth == 0) return i;
    }
    return 0;
  }

  size_t begin(size_t i) {
    begin_ = i;
    calls_ = false;
    return i;
  }

  size_t open(size_t i) {
    const Tokens statement = tokens_.subspan(begin_, i - begin_);
    const bool linkage = statement.size() == 2 && statement[0].is("extern");
    if (has_word(statement, {"namespace"}) || linkage) {
      scopes_.push_back(Scope::of_namespace);
    } else if (!calls_ && has_word(statement, {"class", "struct", "union", "enum"})) {
      scopes_.push_back(has_word(statement, {"enum"}) ? Scope::of_code : Scope::of_class);
    } else if (!calls_ && !statement.empty() && scope() != Scope::of_code) {
      note(statement);  // `int x{3};`
      calls_ = true;
      return after_closing(tokens_, i);
    } else if (!calls_ && has_word(statement, {"static", "thread_local"})) {
      note(statement);
      calls_ = true;
      return after_closing(tokens_, i);
    } else {
      scopes_.push_back(Scope::of_code);
    }
    return begin(i + 1);
  }

  Scope scope() const { return scopes_.empty() ? Scope::of_namespace : scopes_.back(); }

  void note(Tokens statement, bool made = false) {
    const bool keeps = has_word(statement, {"static", "thread_local"});
    if (scope() == Scope::of_code && !keeps) return;
    if (scope() == Scope::of_class && !(keeps && has_word(statement, {"inline"}))) return;
    if ((is_constant(statement) && !made) ||
        has_word(statement,
                 {"using", "typedef", "concept", "namespace", "extern", "friend", "class", "struct",
                  "union", "enum", "return", "goto", "static_assert", "operator"})) {
      return;
    }
    const auto words =
        std::ranges::count_if(statement, [](const Token& token) { return token.is_word(); });
    if (words < 2 || statement.empty()) return;
    size_t last = 0;  // after the name: before the bounds of an array
    while (last < statement.size() && !statement[last].is("[")) ++last;
    while (last > 0 && !statement[last - 1].is_word()) --last;
    if (last == 0) return;
    found_.push_back({std::string(statement[last - 1].text), statement[last - 1].line});
  }

  Tokens tokens_;
  size_t begin_ = 0;    ///< of the statement at hand
  bool calls_ = false;  ///< it has had parentheses: a function, or a call
  std::vector<Scope> scopes_;
  std::vector<MutableGlobal> found_;
};

}  // namespace

std::vector<MutableGlobal> mutable_globals(std::string_view source) {
  const std::vector<Token> all = tokens(source);
  return GlobalFinder(all).find();
}

}  // namespace mscclc::structure
