#include "tools/io/colours.h"

#include <unistd.h>

#include <cstdlib>

namespace mscclc {
namespace {

constexpr std::string_view kBold = "\x1b[1m", kPlain = "\x1b[0m", kGreen = "\x1b[32m";

struct Word {
  std::string_view text, colour;
};
constexpr Word kWords[] = {
    {"error: ", "\x1b[1;31m"}, {"warning: ", "\x1b[1;35m"}, {"note: ", "\x1b[36m"}};

/// Where a word of kWords stands: at the beginning, or after the place, "a.mscl:3:5: ".
size_t find_word(std::string_view line, std::string_view word) {
  if (line.starts_with(word)) return 0;
  const std::string after = ": " + std::string(word);
  const size_t at = line.find(after);
  return at == std::string_view::npos ? at : at + 2;
}

std::string coloured_line(std::string_view line) {
  if (line.find_first_not_of(" ^~") == std::string_view::npos &&
      line.find('^') != std::string_view::npos) {
    return std::string(kGreen) + std::string(line) + std::string(kPlain);
  }
  if (line.starts_with(' ')) return std::string(line);  // of the program
  for (const Word& word : kWords) {
    const size_t at = find_word(line, word.text);
    if (at == std::string_view::npos) continue;
    std::string out(kBold);
    out.append(line.substr(0, at)).append(kPlain).append(word.colour);
    out.append(word.text.substr(0, word.text.size() - 1)).append(kPlain);
    return out.append(line.substr(at + word.text.size() - 1));
  }
  return std::string(line);
}

}  // namespace

bool terminal_has_colours() {
  const char* none = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  return isatty(STDERR_FILENO) == 1 && (none == nullptr || *none == '\0') && !dumb;
}

std::string with_colours(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out += coloured_line(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace mscclc
