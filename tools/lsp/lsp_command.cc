// mscclc lsp: the language server, for editors (docs/editor.md).
#include <unistd.h>

#include <CLI/App.hpp>

#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/lsp/serve.h"

namespace mscclc {
namespace {

constexpr const char* kLspExamples =
    R"(  mscclc lsp          an editor starts it: docs/editor.md shows how)";

/// nullopt: the compiler reports what cannot be read.
std::optional<std::string> read_import_of_editor(const std::string& path) {
  auto text = read_regular_file(path);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

void lsp_options(CommandLine&, CLI::App& app, bool& unused) {
  app.add_flag("--stdio", unused, "changes nothing: some editors pass it");
}

}  // namespace

void add_lsp(CommandLine& line) {
  line.add("lsp", "serve an editor: diagnostics, hover, completion and more, as it types (LSP)",
           kLspExamples, lsp_options,
           [](bool) { return lsp::serve(STDIN_FILENO, STDOUT_FILENO, read_import_of_editor); });
}

}  // namespace mscclc
