// What tests of the parser's parts begin with: a text and the parts over it, at the first token.
#pragma once

#include <string>
#include <utility>

#include "compiler/parser/definition_parser.h"
#include "compiler/parser/op_parser.h"

namespace mscclc {

struct Parsing {
  Sources sources;
  const FileId id;
  ast::Ast ast;
  Diagnostics diagnostics;
  ast::File& file;
  TokenStream in;
  ExprParser exprs;
  OpParser ops;
  DefinitionParser definitions;

  explicit Parsing(std::string text)
      : id(sources.add("a.mscl", std::move(text))),
        ast(sources),
        file(*ast.add_file(id)),
        in(file, ast, diagnostics),
        exprs(file, ast, in),
        ops(file, ast, in, exprs),
        definitions(ast, in, exprs) {
    in.advance();
  }
  /// Of the mistake reported last; "" without one.
  std::string message() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().message;
  }
};

}  // namespace mscclc
