#include "tools/lsp/language/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "compiler/compile.h"
#include "passes/prove/prove.h"

namespace mscclc::lsp {
namespace {

void compile_and_prove(Checked& out, FileId file, const FrontEndOptions& front) {
  out.program = compile(out.sources, file, front, {}, out.diagnostics);
  if (out.program && out.program->split) {
    out.proved = prove(*out.program, out.diagnostics, {.try_copies = true}).proved;
  }
}

}  // namespace

FrontEndOptions front_end(const Defines& defines, const ReadFile& read_file, uint64_t most_ops) {
  FrontEndOptions front;
  front.defines = defines;
  front.read_file = read_file;
  front.max_ops = most_ops;
  return front;
}

bool is_for_import(const Tree& tree) {
  const auto definition = [](const Item& item) {
    return item.stmt->kind == ast::StmtKind::def || item.stmt->kind == ast::StmtKind::let ||
           item.stmt->kind == ast::StmtKind::row || item.stmt->kind == ast::StmtKind::language;
  };
  return !tree.items.empty() && std::ranges::all_of(tree.items, definition);
}

Checked check(const std::string& path, const std::string& text, Tree* tree,
              const FrontEndOptions& front) {
  Checked out;
  const FileId file = out.sources.add(path, text);
  if (tree != nullptr && tree->whole && is_for_import(*tree)) {
    Resolution resolution;
    (void)resolve(tree->ast, tree->items, {}, false, resolution, out.diagnostics);
    return out;
  }
  try {
    compile_and_prove(out, file, front);
  } catch (const std::bad_alloc&) {
    out.program.reset();
    out.proved = false;
    out.diagnostics.error("memory", {},
                          fmt::format("'{}' takes more memory to compile than there is; fewer "
                                      "ranks, thread blocks or instances take less",
                                      path));
  }
  return out;
}

}  // namespace mscclc::lsp
