// What tests of the unroller's parts begin with: a text that is parsed and resolved, and the parts
// over it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/parser/parser.h"
#include "compiler/unroll/declarer.h"
#include "compiler/unroll/header_lines.h"
#include "compiler/unroll/op_reader.h"

namespace mscclc {

struct Unrolling {
  Sources sources;
  const FileId id;
  ast::Ast ast;
  Diagnostics diagnostics;
  const ast::File* file;
  std::vector<Define> defines;
  FrontEndOptions options;
  Resolution resolution;
  std::vector<Item> items;
  UnrollScope scope;
  ContractLines contract;
  HeaderLines header;
  Declarer declarer;
  OpSites sites;
  OpReader ops;

  /// REQUIRES: a text without mistakes of syntax.
  explicit Unrolling(std::string text)
      : id(sources.add("a.mscl", std::move(text))),
        ast(sources),
        file(parse_file(sources, id, ast, diagnostics)),
        items(resolved()),
        scope({sources, ast, *file, defines, options, resolution}, diagnostics),
        contract(scope),
        header(scope, contract),
        declarer(scope, header),
        sites(scope),
        ops(scope, sites) {
    scope.evaluator.value(ast::w_input).kind = ValueKind::buffer;
    scope.evaluator.value(ast::w_input).thing = scope.name_id(ast::w_input);
    scope.evaluator.value(ast::w_output).kind = ValueKind::buffer;
    scope.evaluator.value(ast::w_output).thing = scope.name_id(ast::w_output);
    for (const Item& item : items) header.line(item);
  }
  Program& program() { return scope.builder.program(); }
  /// The statements of the only `rank` item's body.
  ast::Array<const ast::Stmt* const> body() const {
    return items.back().stmt->as<ast::Placed>().body.statements;
  }
  /// Declares what the body declares, for this rank.
  void declare(uint32_t rank) {
    scope.builder.rank(rank);
    for (const ast::Stmt* s : body()) declarer.declare(*s);
  }
  /// Of the mistake reported last; "" without one.
  std::string message() const {
    return diagnostics.all().empty() ? "" : diagnostics.all().back().message;
  }

 private:
  std::vector<Item> resolved() {
    std::vector<Item> out;
    for (const ast::Stmt* s : file->items) out.push_back({s});
    resolve(ast, out, defines, file->is_ir, resolution, diagnostics);
    return out;
  }
};

}  // namespace mscclc
