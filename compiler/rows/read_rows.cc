#include "compiler/rows/read_rows.h"

#include <map>

#include "compiler/rows/row_parser.h"

namespace mscclc::rows {
namespace {

class FileReader {
 public:
  FileReader(const ast::File& file, ast::Ast& ast, Diagnostics& diagnostics)
      : ast_(ast), in_(file, ast, diagnostics), diagnostics_(diagnostics) {}

  std::optional<std::vector<Function>> functions() {
    in_.advance();
    while (in_.tok().kind != Tok::end) {
      in_.set_fresh(false);
      if (in_.accept(Tok::semicolon)) continue;
      if (at_row()) {
        declaration();
      } else {
        in_.expected("'row'");
        skip_to_row();
      }
    }
    if (in_.errors() > 0) return {};
    return std::move(functions_);
  }

 private:
  bool at_row() const { return in_.at_word() && ast_.text(in_.tok().symbol) == "row"; }

  void skip_to_row() {
    do {
      in_.advance();
      in_.set_fresh(false);
    } while (in_.tok().kind != Tok::end && !(in_.tok().newline && at_row()));
  }

  void declaration() {
    RowParser parser(ast_, in_, diagnostics_);
    std::optional<Function> function = parser.declaration();
    if (!function) return;
    const auto [first, fresh] = places_.emplace(function->name, ast_.place(parser.name()));
    if (!fresh) {
      in_.error("redeclared", ast_.place(parser.name()),
                "'" + function->name + "' is declared twice")
          .notes.push_back({"the first is here", ast_.span(first->second)});
      return;
    }
    functions_.push_back(*std::move(function));
  }

  const ast::Ast& ast_;
  TokenStream in_;
  Diagnostics& diagnostics_;
  std::vector<Function> functions_;
  std::map<std::string, ast::TextRange> places_;
};

}  // namespace

std::optional<std::vector<Function>> read_rows(const Sources& sources, FileId file,
                                               Diagnostics& diagnostics) {
  ast::Ast ast(sources);
  const ast::File* parsed = ast.add_file(file);
  if (parsed == nullptr) {
    diagnostics.error("file-too-large", {.file = file, .line = 1, .column = 1},
                      "the file is larger than 1 GiB");
    return {};
  }
  return FileReader(*parsed, ast, diagnostics).functions();
}

}  // namespace mscclc::rows
