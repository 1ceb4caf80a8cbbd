// The front door: parses a program and what it imports, unrolls it, runs the passes.
#include "compiler/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "compiler/ast/ast.h"
#include "compiler/parser/parser.h"
#include "compiler/rows/library.h"
#include "compiler/unroll/unroll.h"
#include "ir/support/read_file.h"
#include "ir/verify/verify.h"

namespace mscclc {
namespace {

/// Replaces imports by the items of the files they name, each file once.
class Loader {
 public:
  Loader(Sources& sources, const FrontEndOptions& options, ast::Ast& ast, Diagnostics& diagnostics)
      : sources_(sources), options_(options), ast_(ast), diagnostics_(diagnostics) {}

  /// nullptr after errors; `items` then must not be used.
  const ast::File* load(FileId file, std::vector<Item>& items) {
    open_.push_back(file);
    const ast::File* main = parse_file(sources_, file, ast_, diagnostics_);
    if (main != nullptr) add_items(*main, items);
    open_.pop_back();
    return diagnostics_.has_errors() ? nullptr : main;
  }

 private:
  static std::string normal(const std::string& path) {
    return std::filesystem::path(path).lexically_normal().string();
  }

  Diagnostic& error(std::string code, ast::TextRange place, std::string message) {
    return diagnostics_.error(std::move(code), ast_.span(place), std::move(message));
  }

  void add_items(const ast::File& file, std::vector<Item>& items) {
    const bool imported = open_.size() > 1;
    for (const ast::Stmt* s : file.items) {
      if (s->kind == ast::StmtKind::import) {
        import(file, s->as<ast::Import>(), items);
        continue;
      }
      const bool definition = s->kind == ast::StmtKind::def || s->kind == ast::StmtKind::let ||
                              s->kind == ast::StmtKind::row || s->kind == ast::StmtKind::language;
      if (imported && !definition) {
        error("import", s->keyword,
              fmt::format("'{}' in an imported file, which has only "
                          "'def', 'let' and 'row'",
                          ast_.text(s->keyword)));
      } else {
        items.push_back({s, imported});
      }
    }
  }

  /// Reports an import of a file that is being loaded.
  bool is_cycle(const std::string& path, const ast::Import& s) {
    std::vector<std::string> names;
    for (const FileId id : open_) names.push_back(normal(sources_.file(id).name));
    const auto cycle = std::ranges::find(names, path);
    if (cycle == names.end()) return false;
    Diagnostic& d = error("import-cycle", s.path_place, "import cycle");
    for (auto file = cycle; file != names.end(); ++file) {
      const std::string& next = file + 1 == names.end() ? path : file[1];
      d.notes.push_back({fmt::format("'{}' imports '{}'", *file, next), {}});
    }
    return true;
  }

  bool is_done(const std::string& path) const {
    return std::ranges::find(done_, path) != done_.end();
  }

  void import(const ast::File& from, const ast::Import& s, std::vector<Item>& items) {
    const std::filesystem::path folder =
        std::filesystem::path(sources_.file(from.id).name).parent_path();
    std::string path = normal((folder / std::string(s.path)).string());
    if (is_cycle(path, s) || is_done(path)) return;
    errno = 0;
    std::optional<std::string> text = options_.read_file ? options_.read_file(path) : std::nullopt;
    if (!text && s.path == rows::kLibraryFile && (errno == 0 || errno == ENOENT)) {
      path = rows::kLibraryFile;  // whichever folder asks
      if (is_done(path)) return;
      text = rows::library_text();
    }
    if (!text) {
      const std::string why = errno == 0 ? "" : ": " + file_error(errno);
      error("import", s.path_place, fmt::format("cannot read '{}'{}", path, why));
      return;
    }
    done_.push_back(path);
    const FileId id = sources_.add(path, *text);
    open_.push_back(id);
    if (const ast::File* file = parse_file(sources_, id, ast_, diagnostics_)) {
      add_items(*file, items);
    }
    open_.pop_back();
  }

  Sources& sources_;
  const FrontEndOptions& options_;
  ast::Ast& ast_;
  Diagnostics& diagnostics_;
  std::vector<FileId> open_;       ///< being loaded
  std::vector<std::string> done_;  ///< paths of those that were imported
};

/// The texts of `-D` become sources of their own, so that mistakes in them can be shown.
std::vector<Define> parse_defines(Sources& sources, const FrontEndOptions& options, ast::Ast& ast) {
  std::vector<Define> out;
  for (const auto& [name, text] : options.defines) {
    Define& d = out.emplace_back(Define{.name = name, .text = text});
    const FileId id = sources.add("-D " + name, text);
    d.symbol = ast.names().intern(std::string_view(sources.file(id).name).substr(3));
    if (!parse_define(id, ast, d.value)) d.value = {};
  }
  return out;
}

}  // namespace

std::optional<Program> parse_program(Sources& sources, FileId file, const FrontEndOptions& options,
                                     Diagnostics& diagnostics, bool* is_ir) {
  ast::Ast ast(sources);
  std::vector<Item> items;
  const ast::File* main = Loader(sources, options, ast, diagnostics).load(file, items);
  if (main == nullptr) return std::nullopt;
  if (is_ir != nullptr) *is_ir = main->is_ir;
  const std::vector<Define> defines = parse_defines(sources, options, ast);
  std::optional<Program> program =
      unroll(sources, ast, *main, items, defines, options, diagnostics);
  // IR text may be anything; what programs cannot say is not looked for in them.
  if (program && main->is_ir && !verify_structure(*program, diagnostics)) program.reset();
  return program;
}

std::optional<Program> compile(Sources& sources, FileId file, const FrontEndOptions& options,
                               const PassOptions& passes, Diagnostics& diagnostics,
                               ProofGate* gate) {
  bool is_ir = false;
  std::optional<Program> program = parse_program(sources, file, options, diagnostics, &is_ir);
  if (!program) return std::nullopt;
  const bool as_it_is = is_ir && passes.only.empty();
  if (!as_it_is && !run_passes(*program, passes, diagnostics)) return std::nullopt;
  // Errors name files as the caller does; the program's own names follow when there are none.
  if (gate != nullptr && !gate->pass(*program, diagnostics)) return std::nullopt;
  if (options.relative_names) make_names_relative(*program, sources.file(file).name);
  return program;
}

void make_names_relative(Program& program, const std::string& main) {
  const std::string folder = main.substr(0, main.rfind('/') + 1);
  if (folder.empty()) return;
  for (std::string& name : program.files) {
    if (name.starts_with(folder)) name.erase(0, folder.size());
  }
}

}  // namespace mscclc
