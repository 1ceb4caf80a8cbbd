// The canonical form: by examples (testdata/format.txt), and by its laws on every program of the
// repository: it is its own form, and other white space does not matter.
#include "compiler/format/format.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "compiler/testing/text_cases.h"
#include "compiler/tokens/lexer.h"
#include "ir/print/print.h"
#include "ir/support/read_file.h"
#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;

namespace {

std::string formatted(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  const auto out = format_program(sources, sources.add("a.mscl", text), diagnostics);
  INFO(text);
  INFO(render_text(diagnostics, sources));
  REQUIRE(out.has_value());
  return *out;
}

/// The library, the examples and the test programs.
std::vector<std::filesystem::path> programs() {
  std::vector<std::filesystem::path> out;
  for (const char* folder : {"plans", "plans/examples", "plans/rows", "tests/programs"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".mscl") out.push_back(entry.path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// A token or a comment, and the white space in front of it.
struct Piece {
  Tok kind;
  std::string space, text;
  bool newline() const { return space.find('\n') != std::string::npos; }
  bool blank() const { return std::count(space.begin(), space.end(), '\n') > 1; }
};

std::vector<Piece> pieces(const std::string& text) {
  Sources sources;
  const FileId id = sources.add("a.mscl", text);
  ast::Ast ast(sources);
  Diagnostics diagnostics;
  Lexer lexer(*ast.add_file(id), ast, diagnostics, true);
  std::vector<Piece> out;
  size_t end = 0;
  Token token;
  do {
    lexer.next(token);
    const size_t begin = token.place.begin;
    out.push_back({token.kind, text.substr(end, begin - end), std::string(ast.text(token.place))});
    end = token.place.end;
  } while (token.kind != Tok::end);
  return out;
}

/// Tokens and comments but ';'.
std::string content(const std::string& text) {
  std::string out;
  for (const Piece& p : pieces(text)) {
    if (p.kind == Tok::semicolon) continue;
    out += p.text.substr(0, p.text.find_last_not_of(" \t\r") + 1) + ' ';
  }
  return out;
}

/// Changes white space and ';' of a canonical text at random, where that must not matter.
class Mess {
 public:
  explicit Mess(unsigned seed) : random_(seed) {}

  std::string of(const std::string& text) {
    const std::vector<Piece> all = pieces(text);
    std::vector<bool> one_line;  // of the blocks around
    std::string out;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind == Tok::lbrace) one_line.push_back(closes_in_line(all, i));
      const bool inside = !one_line.empty() && one_line.back();
      out += i == 0 ? newlines(0) : gap(all[i - 1], all[i], inside);
      out += all[i].text;
      if (all[i].kind == Tok::rbrace) one_line.pop_back();
    }
    return out;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  std::string spaces(size_t least) { return std::string(least + below(3), below(4) ? ' ' : '\t'); }
  std::string newlines(size_t least) {
    std::string out;
    for (size_t n = least + below(3); n > 0; --n) out += spaces(0) + "\n";
    return out + spaces(0);
  }

  static bool closes_in_line(const std::vector<Piece>& all, size_t open) {
    int depth = 0;
    for (size_t i = open;; ++i) {
      if (i > open && all[i].newline()) return false;
      depth += all[i].kind == Tok::lbrace;
      depth -= all[i].kind == Tok::rbrace;
      if (depth == 0) return true;
    }
  }

  std::string gap(const Piece& a, const Piece& b, bool one_line) {
    if (b.kind == Tok::comment && !b.newline()) return spaces(0);
    if (b.kind == Tok::end) return newlines(0);
    if (b.newline()) {
      const bool edge = a.kind == Tok::lbrace || b.kind == Tok::rbrace;
      if (edge || b.blank()) return newlines(edge ? 1 : 2);
      const bool statement = a.kind != Tok::comment && b.kind != Tok::comment;
      const bool wrapped = b.space.size() > 7 || a.kind == Tok::comma;  // a continuation line
      if (statement && !wrapped && below(3) == 0) return spaces(0) + ";" + spaces(0);
      return spaces(0) + "\n" + spaces(0);
    }
    const bool continues = a.kind == Tok::comma || a.kind == Tok::arrow || a.kind == Tok::assign;
    if (continues && !one_line && below(4) == 0) return newlines(1);
    return spaces(b.space.empty() ? 0 : 1);
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("examples") {
  CHECK(each_case("compiler/testdata/format.txt", [](const TextCase& c) {
          INFO(c.name);
          CHECK(formatted(c.text) == c.expected);
          CHECK(formatted(c.expected) == c.expected);
          CHECK(content(c.expected) == content(c.text));
        }) == 13);
}

TEST_CASE("little texts") {
  CHECK(formatted("") == "");
  CHECK(formatted("\n\n") == "");
  CHECK(formatted("# a") == "# a\n");
  CHECK(formatted("\xef\xbb\xbfprogram x") == "program    x\n");
  CHECK(formatted("program x\r\n# a\r\n") == "program    x\n# a\n");
}

TEST_CASE("a text with errors has no form") {
  Sources sources;
  Diagnostics diagnostics;
  CHECK_FALSE(format_program(sources, sources.add("a.mscl", "param R"), diagnostics));
  CHECK(diagnostics.all().size() == 1);
}

TEST_CASE("the programs are in canonical form") {
  CHECK(programs().size() >= 15);
  for (const auto& path : programs()) {
    INFO(path);
    const std::string text = read_file(path).value();
    CHECK(formatted(text) == text);
  }
}

TEST_CASE("white space does not matter") {
  for (const auto& path : programs()) {
    const std::string text = read_file(path).value();
    for (unsigned seed = 0; seed < 20; ++seed) {
      INFO(path << ", seed " << seed);
      const std::string mess = Mess(seed).of(text);
      CHECK(content(mess) == content(text));
      CHECK(formatted(mess) == text);
    }
  }
}

TEST_CASE("the programs in the language's pages are in canonical form") {
  const std::string page =
      read_file("docs/language.md").value() + read_file("docs/design/ir_text.md").value();
  const std::string fence = "```mscl\n";
  int programs = 0;
  for (size_t at = 0; (at = page.find(fence, at)) != std::string::npos; ++programs) {
    at += fence.size();
    const std::string text = page.substr(at, page.find("```", at) - at);
    CHECK(formatted(text) == text);
  }
  CHECK(programs == 2);
}

TEST_CASE("printed IR is in canonical form") {
  testing::TestProgram p(2, 2);
  p.program.description = "Two ranks.";
  p.program.launch.threads = 512;
  for (uint32_t r = 0; r < 2; ++r) p.channel(r, ChannelKind::memory, "ch", {1 - r}, 1 - r, 0);
  const std::string text = print_ir(p.program);
  CHECK(formatted(text) == text);
}
