// docs/collectives.md names every program of the library and every example, and the parameters of
// each.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "compiler/parser/parser.h"
#include "ir/support/read_file.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

/// The parameters that a program declares, except `I`, which all have.
std::vector<std::string> parameters(std::string_view program) {
  Sources sources;
  ast::Ast ast(sources);
  Diagnostics diagnostics;
  const FileId id = sources.add(std::string(program), library_text(program));
  const ast::File* file = parse_file(sources, id, ast, diagnostics);
  REQUIRE(file != nullptr);
  std::vector<std::string> names;
  for (const ast::Stmt* item : file->items) {
    if (item->kind != ast::StmtKind::param) continue;
    for (const ast::Definition& definition : item->as<ast::Let>().definitions) {
      if (const auto name = ast.text(definition.name); name != "I") names.emplace_back(name);
    }
  }
  std::ranges::sort(names);
  return names;
}

/// The words in `code` of a row's second cell: "| NAME | `R`, `B` blocks | … |".
std::vector<std::string> listed(const std::string& page, std::string_view program) {
  std::stringstream lines(page);
  const std::string head = "| " + std::string(program) + " | ";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(head)) continue;
    std::stringstream cell(line.substr(head.size(), line.find(" |", head.size()) - head.size()));
    std::vector<std::string> words;
    bool code = false;
    for (std::string part; std::getline(cell, part, '`'); code = !code) {
      if (code) words.push_back(part);
    }
    std::ranges::sort(words);
    return words;
  }
  return {};
}

void check_page(const std::vector<LibraryProgram>& programs) {
  const std::string page = read_file("docs/collectives.md").value();
  for (const LibraryProgram& program : programs) {
    INFO(program.name);
    const std::string_view row = program.name.substr(program.name.find('/') + 1);
    CHECK(page.find("](../plans/" + std::string(program.name) + ".mscl)") != std::string::npos);
    CHECK(listed(page, row) == parameters(program.name));
  }
}

TEST_CASE("library: the page of collectives has every program with its parameters") {
  check_page(library());
}

TEST_CASE("library: the page of collectives has every example with its parameters") {
  check_page(examples());
}

}  // namespace
}  // namespace mscclc
