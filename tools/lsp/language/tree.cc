#include "tools/lsp/language/tree.h"

#include <algorithm>
#include <filesystem>

#include "compiler/parser/parser.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::lsp {
namespace {

/// Rounds in which lines are left out.
constexpr int kRounds = 6;

/// Adds the items of files to a tree.
class Importer {
 public:
  Importer(Tree& tree, const ReadFile& read_file) : tree_(tree), read_file_(read_file) {}

  void add(const ast::File& file, bool imported) {
    for (const ast::Stmt* s : file.items) {
      if (s->kind == ast::StmtKind::import) {
        import(file, s->as<ast::Import>());
      } else {
        tree_.items.push_back({s, imported});
      }
    }
  }
  void opened(const std::string& path) { done_.push_back(path); }

 private:
  void import(const ast::File& from, const ast::Import& s) {
    const std::filesystem::path folder =
        std::filesystem::path(tree_.sources.file(from.id).name).parent_path();
    const std::string path = (folder / std::string(s.path)).lexically_normal().string();
    if (std::ranges::find(done_, path) != done_.end() || !read_file_) return;
    opened(path);
    const std::optional<std::string> text = read_file_(path);
    if (!text) return;
    Diagnostics unused;
    const FileId id = tree_.sources.add(path, *text);
    if (const ast::File* file = parse_file(tree_.sources, id, tree_.ast, unused)) {
      add(*file, true);
    }
  }

  Tree& tree_;
  const ReadFile& read_file_;
  std::vector<std::string> done_;
};

/// Bytes of a text.
struct Piece {
  size_t begin, end;
};

/// Where the line begins that an error at a byte is about: the one before, if that goes on.
size_t wrong_line(std::string_view text, size_t byte) {
  const size_t begin = byte == 0 ? 0 : text.rfind('\n', byte - 1) + 1;
  const size_t last = begin == 0 ? begin : text.find_last_not_of(" \t\r\n", begin - 1);
  if (begin == 0 || last == std::string_view::npos) return begin;
  const size_t before = last == 0 ? 0 : text.rfind('\n', last) + 1;
  return goes_on(text.substr(before, last + 1 - before)) ? before : begin;
}

/// The statement that an error at a byte is in, as far as it stands on one line. Nothing if it has
/// a block: without it, what follows would mean something else.
std::optional<Piece> wrong_statement(std::string_view text, size_t byte) {
  constexpr std::string_view kEnds = "{};";
  const size_t line = wrong_line(text, byte);
  const size_t line_end = std::min(text.find('\n', line), text.size());
  const size_t at = std::clamp(byte, line, line_end);
  size_t begin = at;
  while (begin > line && kEnds.find(text[begin - 1]) == std::string_view::npos) --begin;
  const size_t end = std::min(text.find_first_of(kEnds, at), line_end);
  if (end < line_end && text[end] == '{') return std::nullopt;
  return Piece{begin, end};
}

/// Makes a blank of each character of the statements that errors are in. False: that is of no use.
bool leave_out(const Diagnostics& errors, std::string& text) {
  bool changed = false;
  for (const Diagnostic& d : errors.all()) {
    if (!d.span.valid() || d.span.begin > text.size()) continue;
    const auto wrong = wrong_statement(text, d.span.begin);
    if (!wrong) return false;
    const auto [begin, end] = *wrong;
    changed = changed || std::string_view(text).substr(begin, end - begin).find_first_not_of(' ') !=
                             std::string_view::npos;
    text.replace(begin, end - begin, end - begin, ' ');
  }
  return changed;
}

}  // namespace

bool goes_on(std::string_view line) {
  constexpr std::string_view kSigns = ",([=<-+*/%";
  constexpr std::string_view kWords[] = {" for", " in",  " where",  " or",
                                         " and", " not", " except", " to"};
  line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
  if (line.empty()) return false;
  return kSigns.find(line.back()) != std::string_view::npos ||
         std::ranges::any_of(kWords, [&](std::string_view word) { return line.ends_with(word); });
}

std::optional<Tree::Bytes> Tree::bytes(ast::TextRange place) const {
  const auto size = static_cast<uint32_t>(main->text.size());
  if (place.begin < main->base || place.end > main->base + size) return std::nullopt;
  return Bytes{place.begin - main->base, place.end - main->base};
}

std::unique_ptr<Tree> read_tree(const std::string& path, const std::string& text,
                                const ReadFile& read_file) {
  std::string left = text;
  for (int round = 0; round < kRounds; ++round) {
    auto tree = std::make_unique<Tree>();
    Diagnostics errors;
    const FileId id = tree->sources.add(path, left);
    tree->main = parse_file(tree->sources, id, tree->ast, errors);
    if (tree->main != nullptr) {
      tree->whole = round == 0;
      Importer importer(*tree, read_file);
      importer.opened(std::filesystem::path(path).lexically_normal().string());
      importer.add(*tree->main, false);
      return tree;
    }
    if (!leave_out(errors, left)) break;
  }
  return nullptr;
}

}  // namespace mscclc::lsp
