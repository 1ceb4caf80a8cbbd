// Tokens: kinds, values, places, newlines.
#include "compiler/tokens/lexer.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace mscclc;

namespace {

struct Lexed {
  std::vector<Token> tokens;  // without the end
  std::vector<std::string> texts;
  std::vector<Diagnostic> errors;
};

Lexed lex(std::string text, bool comments = false) {
  Sources sources;
  const FileId id = sources.add("a.mscl", std::move(text));
  ast::Ast ast(sources);
  Diagnostics diagnostics;
  const ast::File* file = ast.add_file(id);
  Lexer lexer(*file, ast, diagnostics, comments);
  Lexed out;
  Token token;
  for (lexer.next(token); token.kind != Tok::end; lexer.next(token)) {
    out.tokens.push_back(token);
    out.texts.emplace_back(ast.text(token.place));
  }
  lexer.next(token);
  CHECK(token.kind == Tok::end);
  out.errors = diagnostics.all();
  return out;
}

std::vector<Tok> kinds(std::string text) {
  std::vector<Tok> out;
  for (const Token& token : lex(std::move(text)).tokens) out.push_back(token.kind);
  return out;
}

/// The value of a text that is one good number.
uint64_t number(std::string text) {
  const Lexed lexed = lex(text);
  CHECK(lexed.errors.empty());
  REQUIRE(lexed.tokens.size() == 1);
  CHECK(lexed.tokens[0].kind == Tok::integer);
  CHECK(lexed.texts[0] == text);
  return lexed.tokens[0].value;
}

}  // namespace

TEST_CASE("numbers with a fraction or an exponent") {
  for (const char* text : {"1.5", "0.001", "1e5", "1E+5", "1.25e-05", "1234567890123456789012.5"}) {
    const Lexed lexed = lex(text);
    INFO(text);
    CHECK(lexed.errors.empty());
    REQUIRE(lexed.tokens.size() == 1);
    CHECK(lexed.tokens[0].kind == Tok::decimal);
    CHECK(lexed.texts[0] == text);
  }
  CHECK(kinds("1..5") == std::vector{Tok::integer, Tok::range, Tok::integer});
  CHECK(kinds("1.x") == std::vector{Tok::integer, Tok::dot, Tok::name});
  CHECK(lex("1e").errors[0].message == "unknown unit 'e'");
  CHECK(kinds("1.5KiB") == std::vector{Tok::integer, Tok::dot, Tok::integer});
}

TEST_CASE("numbers") {
  CHECK(number("0") == 0);
  CHECK(number("42") == 42);
  CHECK(number("007") == 7);
  CHECK(number("1_000_000") == 1000000);
  CHECK(number("0x2a") == 42);
  CHECK(number("0XfF_Ff") == 0xffff);
  CHECK(number("512KiB") == 512u << 10);
  CHECK(number("0x10MiB") == 16u << 20);
  CHECK(number("3GiB") == uint64_t{3} << 30);
  CHECK(number("999999999999999999") == 999999999999999999u);
  CHECK(number("9223372036854775807") == INT64_MAX);
  CHECK(number("9223372036854775808") == uint64_t{1} << 63);  // good after a '-'
}

TEST_CASE("numbers end where they must") {
  CHECK(kinds("1..2") == std::vector{Tok::integer, Tok::range, Tok::integer});
  CHECK(kinds("1MiB..,") == std::vector{Tok::integer, Tok::range, Tok::comma});
  CHECK(kinds("18:25(") == std::vector{Tok::integer, Tok::colon, Tok::integer, Tok::lparen});
}

TEST_CASE("longest token first") {
  CHECK(kinds("<- <= << < -") == std::vector{Tok::arrow, Tok::le, Tok::shl, Tok::lt, Tok::sub});
  CHECK(kinds(">= >> > == = != .. .") == std::vector{Tok::ge, Tok::shr, Tok::gt, Tok::eq,
                                                     Tok::assign, Tok::ne, Tok::range, Tok::dot});
  CHECK(kinds("a<-1") == std::vector{Tok::name, Tok::arrow, Tok::integer});
  CHECK(kinds("()[]{},:;@+-*/%&|^").size() == 18);
}

TEST_CASE("words") {
  CHECK(kinds("or and not except") == std::vector{Tok::or_, Tok::and_, Tok::not_, Tok::except});
  CHECK(kinds("rank put min LL16 input ranks memory _x1") ==
        std::vector{Tok::keyword, Tok::op, Tok::function, Tok::name, Tok::name, Tok::name,
                    Tok::name, Tok::name});
  const Lexed lexed = lex("put get ring x ring LL16");
  CHECK(ast::op_of(lexed.tokens[0].symbol) == OpKind::put);
  CHECK(ast::op_of(lexed.tokens[1].symbol) == OpKind::get);
  CHECK(lexed.tokens[2].symbol == lexed.tokens[4].symbol);
  CHECK(lexed.tokens[2].symbol != lexed.tokens[3].symbol);
}

TEST_CASE("every word of the tables has its symbol") {
  const ast::Names names;
  CHECK(names.text(ast::w_language) == "language");
  CHECK(names.text(ast::w_or) == "or");
  CHECK(names.text(ast::w_min) == "min");
  CHECK(names.text(ast::w_len) == "len");
  CHECK(names.text(ast::w_copy) == "copy");
  CHECK(names.text(ast::w_pipeline) == "pipeline");
  CHECK(names.text(ast::w_input) == "input");
  CHECK(names.text(ast::w_count - 1) == "from");
  CHECK(names.size() == ast::w_count);
}

TEST_CASE("many names, many lengths") {
  Sources sources;
  ast::Ast ast(sources);
  std::vector<std::string> words;
  for (int i = 0; i < 5000; ++i) {
    words.push_back(std::string(i % 40 + 1, 'a' + i % 26) + std::to_string(i));
  }
  for (size_t i = 0; i < words.size(); ++i) {
    CHECK(ast.names().intern(words[i]) == ast::w_count + i);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    CHECK(ast.names().intern(words[i]) == ast::w_count + i);
    CHECK(ast.names().text(static_cast<ast::Symbol>(ast::w_count + i)) == words[i]);
  }
}

TEST_CASE("newlines and comments") {
  const Lexed lexed = lex("a b # c\n\n# d\nc\r\n\td");
  REQUIRE(lexed.texts == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK_FALSE(lexed.tokens[0].newline);
  CHECK_FALSE(lexed.tokens[1].newline);
  CHECK(lexed.tokens[2].newline);
  CHECK(lexed.tokens[3].newline);
  CHECK(lex("a # ä\n#", true).texts == std::vector<std::string>{"a", "# ä", "#"});
}

TEST_CASE("strings") {
  CHECK(lex(R"("a" "b\"c" "\\" x)").texts ==
        std::vector<std::string>{R"("a")", R"("b\"c")", R"("\\")", "x"});
  CHECK(lex("\"ä # no comment\"").errors.empty());
}

TEST_CASE("a byte order mark is passed") {
  const Lexed lexed = lex("\xef\xbb\xbfrank");
  CHECK(lexed.errors.empty());
  REQUIRE(lexed.texts == std::vector<std::string>{"rank"});
  CHECK(lexed.tokens[0].place.begin == 3);
}

TEST_CASE("encoding") {
  const auto good = [](std::string text) { return lex("#" + std::move(text)).errors.empty(); };
  CHECK(good("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"));
  CHECK_FALSE(good("\x80"));      // a byte that continues nothing
  CHECK_FALSE(good("\xc0\xaf"));  // overlong
  CHECK_FALSE(good("\xe0\x80\xaf"));
  CHECK_FALSE(good("\xf0\x80\x80\xaf"));
  CHECK_FALSE(good("\xed\xa0\x80"));      // surrogate
  CHECK_FALSE(good("\xf4\x90\x80\x80"));  // beyond U+10FFFF
  CHECK_FALSE(good("\xf5\x80\x80\x80"));
  CHECK_FALSE(good("\xe2\x82"));  // cut off
  CHECK_FALSE(good("\xff"));
}
