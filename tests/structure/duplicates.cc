#include "tests/structure/duplicates.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "tests/structure/tokens.h"

namespace mscclc::structure {
namespace {

/// A line of Python without its comment; nothing of one that imports. tokens() takes comments that
/// begin a line for lines of the preprocessor.
std::string_view without_comment(std::string_view line) {
  if (line.starts_with("import ") || line.starts_with("from ")) return {};
  char quote = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return line.substr(0, at);
    }
  }
  return line;
}

std::string without_comments(std::string_view python) {
  std::string text;
  while (!python.empty()) {
    const size_t end = std::min(python.find('\n'), python.size());
    text += without_comment(python.substr(0, end));
    text += '\n';
    python.remove_prefix(std::min(end + 1, python.size()));
  }
  return text;
}

struct File {
  std::string path, text;
  std::vector<Token> tokens;
  std::vector<uint64_t> hashes;  ///< by token
};

/// Where a run of kDuplicateTokens begins.
struct Window {
  uint64_t hash;
  uint32_t file, at;
  auto operator<=>(const Window&) const = default;
};

class Search {
 public:
  explicit Search(const std::map<std::string, std::string>& sources) {
    files_.reserve(sources.size());  // tokens refer to texts
    for (const auto& [path, text] : sources) {
      File& file = files_.emplace_back();
      file.path = path;
      file.text = path.ends_with(".py") ? without_comments(text) : text;
      file.tokens = structure::tokens(file.text);
      for (const Token& token : file.tokens) {
        file.hashes.push_back(std::hash<std::string_view>()(token.spelt));
      }
    }
  }

  std::vector<DuplicatePair> run() {
    const std::vector<Window> windows = sorted_windows();
    for (size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
      while (end < windows.size() && windows[end].hash == windows[begin].hash) ++end;
      // Of many copies each is compared to the next: a pair for each that there is too many.
      for (size_t i = begin + 1; i < end; ++i) compare(windows[i - 1], windows[i]);
    }
    std::vector<DuplicatePair> found;
    for (auto& [files, pair] : longest_) found.push_back(std::move(pair));
    std::ranges::stable_sort(found, std::greater(), &DuplicatePair::tokens);
    return found;
  }

 private:
  std::vector<Window> sorted_windows() const {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
    uint64_t first_factor = 1;  // of the token that goes
    for (size_t i = 0; i < kDuplicateTokens; ++i) first_factor *= kFactor;
    std::vector<Window> windows;
    for (uint32_t f = 0; f < files_.size(); ++f) {
      const std::vector<uint64_t>& hashes = files_[f].hashes;
      uint64_t rolled = 0;
      for (size_t i = 0; i < hashes.size(); ++i) {
        rolled = rolled * kFactor + hashes[i];
        if (i >= kDuplicateTokens) rolled -= hashes[i - kDuplicateTokens] * first_factor;
        if (i + 1 < kDuplicateTokens) continue;
        windows.push_back({rolled, f, static_cast<uint32_t>(i + 1 - kDuplicateTokens)});
      }
    }
    std::ranges::sort(windows);
    return windows;
  }

  size_t common(const Window& a, const Window& b) const {
    const std::vector<uint64_t>&x = files_[a.file].hashes, &y = files_[b.file].hashes;
    size_t n = 0;
    while (a.at + n < x.size() && b.at + n < y.size() && x[a.at + n] == y[b.at + n]) ++n;
    return a.file == b.file ? std::min<size_t>(n, b.at - a.at) : n;  // not over each other
  }

  void compare(const Window& a, const Window& b) {
    DuplicatePair& pair = longest_[{a.file, b.file}];
    const size_t tokens = common(a, b);
    if (tokens < kDuplicateTokens) {
      if (pair.tokens == 0) longest_.erase({a.file, b.file});
      return;
    }
    if (tokens <= pair.tokens) return;
    pair = {place(a), place(b), tokens};
  }

  DuplicatePair::Place place(const Window& window) const {
    const File& file = files_[window.file];
    return {file.path, file.tokens[window.at].line};
  }

  std::vector<File> files_;
  std::map<std::pair<uint32_t, uint32_t>, DuplicatePair> longest_;  ///< by files
};

}  // namespace

std::vector<DuplicatePair> duplicate_pairs(const std::map<std::string, std::string>& sources) {
  return Search(sources).run();
}

}  // namespace mscclc::structure
