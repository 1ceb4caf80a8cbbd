#include "tests/structure/words.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <sstream>

namespace mscclc::structure {
namespace {

/// What is between a word and the one before.
enum class Gap { none, joined, space, other };

struct TextWord {
  std::string text;  ///< in small letters
  size_t line;
  Gap gap;
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

/// A new line may begin with the mark of a comment, or go on with a string. "plan's" is two words.
Gap gap_of(std::string_view between) {
  if (between.find_first_not_of("-_0123456789") == between.npos) return Gap::joined;
  if (between == "'") return Gap::space;
  const bool new_line = between.find('\n') != between.npos;
  const char* const spaces = new_line ? " \t\r\n/!<#*\"" : " \t";
  return between.find_first_not_of(spaces) == between.npos ? Gap::space : Gap::other;
}

/// The end of the word at `begin`: FarWord is two, and so is NCCLWord.
size_t end_of_word(std::string_view text, size_t begin) {
  size_t end = begin + 1;
  while (end < text.size() && is_letter(text[end])) {
    const bool begins =
        is_upper(text[end]) &&
        (!is_upper(text[end - 1]) ||
         (end + 1 < text.size() && is_letter(text[end + 1]) && !is_upper(text[end + 1])));
    if (begins) break;
    ++end;
  }
  return end;
}

std::vector<TextWord> words_of(std::string_view text) {
  std::vector<TextWord> words;
  size_t line = 1, last = 0;  // the end of the word before
  for (size_t at = 0; at < text.size();) {
    if (!is_letter(text[at])) {
      const size_t next = std::min(at + (text[at] == '\\' ? 2 : 1), text.size());
      line += std::ranges::count(text.substr(at, next - at), '\n');
      at = next;
      continue;
    }
    const size_t end = end_of_word(text, at);
    std::string word(text.substr(at, end - at));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
    const Gap gap = words.empty() ? Gap::none : gap_of(text.substr(last, at - last));
    words.push_back({std::move(word), line, gap});
    at = last = end;
  }
  return words;
}

Phrase phrase_of(std::string_view text) {
  constexpr std::string_view kDots = "…";
  Phrase phrase{std::string(text), {}};
  bool distant = false;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kDots)) {
      distant = true;
      at += kDots.size();
    } else if (!is_letter(text[at])) {
      ++at;
    } else {
      const size_t end = end_of_word(text, at);
      const bool joined = at > 0 && (text[at - 1] == '-' || text[at - 1] == '_');
      phrase.words.push_back({std::string(text.substr(at, end - at)), joined, distant});
      distant = false;
      at = end;
    }
  }
  return phrase;
}

/// How many words the phrase takes at the beginning of `words`; 0: it is not there.
size_t match(std::span<const TextWord> words, const Phrase& phrase) {
  constexpr size_t kMaxBetween = 4;
  size_t at = 0;
  for (const Phrase::Word& wanted : phrase.words) {
    for (size_t skipped = 0;; ++skipped, ++at) {
      if (at == words.size()) return 0;
      const Gap gap = words[at].gap;
      if (at > 0 && (gap == Gap::other || (wanted.joined && gap != Gap::joined))) return 0;
      if (words[at].text == wanted.text) break;
      if (!wanted.distant || skipped == kMaxBetween) return 0;
    }
    ++at;
  }
  return at;
}

/// Are the `count` words at `begin` within one of the phrases?
bool within(std::span<const TextWord> words, size_t begin, size_t count,
            const std::vector<Phrase>& phrases) {
  constexpr size_t kMaxBefore = 8;
  return std::ranges::any_of(phrases, [&](const Phrase& phrase) {
    for (size_t first = begin - std::min(begin, kMaxBefore); first <= begin; ++first) {
      if (first + match(words.subspan(first), phrase) >= begin + count) return true;
    }
    return false;
  });
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    parts.push_back(first == part.npos ? "" : part.substr(first, last - first + 1));
  }
  return parts;
}

std::vector<Phrase> phrases_of(const std::string& cell) {
  std::vector<Phrase> phrases;
  for (const std::string& text : split(cell, ',')) {
    if (!text.empty()) phrases.push_back(phrase_of(text));
  }
  return phrases;
}

}  // namespace

std::vector<UnusedWords> unused_words(std::string_view glossary) {
  std::vector<UnusedWords> table;
  std::istringstream lines{std::string(glossary)};
  std::string line;
  while (std::getline(lines, line) && line != "| write | not | except in |") {
  }
  std::getline(lines, line);  // below the heading
  while (std::getline(lines, line) && line.starts_with("|")) {
    const std::vector<std::string> cells = split(line, '|');  // the first is before the row
    if (cells.size() < 4) continue;
    table.push_back({cells[1], phrases_of(cells[2]), phrases_of(cells[3])});
  }
  return table;
}

std::vector<std::string> find_unused(std::string_view path, std::string_view text,
                                     const std::vector<UnusedWords>& table) {
  const std::vector<TextWord> words = words_of(text);
  const std::span<const TextWord> all(words);
  std::vector<std::string> found;
  for (size_t at = 0; at < words.size(); ++at) {
    for (const UnusedWords& row : table) {
      for (const Phrase& phrase : row.phrases) {
        const size_t count = match(all.subspan(at), phrase);
        if (count == 0 || within(all, at, count, row.unless)) continue;
        found.push_back(std::string(path) + ":" + std::to_string(words[at].line) + ": '" +
                        phrase.text + "'; write: " + row.instead);
      }
    }
  }
  return found;
}

}  // namespace mscclc::structure
