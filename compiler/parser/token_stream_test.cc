#include "compiler/tokens/token_stream.h"

#include <catch2/catch.hpp>

#include "compiler/parser/parsing.h"

using namespace mscclc;

TEST_CASE("a newline ends a statement, but not inside of brackets") {
  Parsing p("a (b\nc) d\ne");
  CHECK(p.in.at_name());
  p.in.advance();
  p.in.open_bracket();
  p.in.advance();
  CHECK(p.in.tok().newline);
  CHECK_FALSE(p.in.fresh());
  p.in.advance();
  p.in.close_bracket();
  CHECK_FALSE(p.in.fresh());
  p.in.advance();
  CHECK(p.in.fresh());
  CHECK(p.in.at_margin());
  CHECK(p.in.end_statement());
  CHECK(p.message().empty());
}

TEST_CASE("what was expected, and what stands there") {
  Parsing p("a = 1");
  CHECK_FALSE(p.in.expected("'+'"));
  CHECK(p.message() == "expected '+' before 'a'");
  p.in.advance();
  CHECK_FALSE(p.in.end_statement());
  CHECK(p.message() == "expected the end of the statement before '='");
  Parsing end("a");
  end.in.advance();
  CHECK_FALSE(end.in.expect(Tok::comma, "','"));
  CHECK(end.message() == "expected ',' before the end of the file");
}

TEST_CASE("names that are declared are not words of the language") {
  Parsing p("for put");
  ast::Name name;
  CHECK(p.in.declared_name(name));
  CHECK(p.message() == "'for' is a word of the language; choose another name");
  p.in.callable_name(p.in.tok());
  CHECK(p.message() == "'put' is an op; choose another name");
}

TEST_CASE("escapes of strings are resolved") {
  Parsing p(R"("a\"b\n" "x\q")");
  std::string_view text;
  ast::TextRange place;
  CHECK(p.in.string_value(text, place));
  CHECK(text == "a\"b\n");
  CHECK(p.message().empty());
  CHECK(p.in.string_value(text, place));
  CHECK_FALSE(p.message().empty());
}
