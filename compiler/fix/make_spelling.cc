// Words that are spelt wrong, signs that are missing or too many, braces.
#include <algorithm>
#include <map>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

constexpr size_t kMaxSpellings = 4;  ///< tried for a word

/// How often each word stands in the text, and the words of the language.
std::map<std::string_view, int> known_words(const Case& c) {
  static const ast::Names names;
  std::map<std::string_view, int> known;
  for (ast::Symbol s = 0; s < ast::w_count; ++s) ++(known[names.text(s)] = 1);
  for (const Word& w : c.outline().words()) {
    if (w.is_word()) ++known[c.outline().text(w)];
  }
  return known;
}

void respell_word(Case& c, uint32_t i, const std::map<std::string_view, int>& known) {
  if (!c.outline().words()[i].is_word()) return;
  std::vector<std::string_view> candidates;
  for (const auto& [word, count] : known) {
    if (word != c.word(i)) candidates.push_back(word);
  }
  for (size_t tried = 0; tried < kMaxSpellings; ++tried) {
    const std::string near = nearest(c.word(i), candidates);
    if (near.empty()) return;
    c.replace(i, near);
    std::erase(candidates, near);
  }
}

/// The word at the error, or the next one.
uint32_t word_at_error(const Case& c) {
  const auto& words = c.outline().words();
  for (uint32_t i = 0; c.at() != kNothing && i < words.size(); ++i) {
    if (words[i].end > c.at()) return i;
  }
  return kNothing;
}

std::vector<uint32_t> words_of_line(const Case& c, uint32_t i) {
  const auto& words = c.outline().words();
  uint32_t first = i, end = i + 1;
  while (first > 0 && !words[first].newline) --first;
  while (end < words.size() && !words[end].newline) ++end;
  std::vector<uint32_t> line;
  for (uint32_t w = first; w < end; ++w) line.push_back(w);
  return line;
}

std::string spaced(const std::string& sign) { return ' ' + sign + ' '; }

size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

/// What stands only once, and is near to the word that is not known: that may be spelt wrong.
void respell_others(Case& c, uint32_t at, const std::map<std::string_view, int>& known) {
  if (!c.outline().words()[at].is_word() || known.at(c.word(at)) < 2) return;
  const auto& words = c.outline().words();
  for (uint32_t w = 0; w < words.size(); ++w) {
    if (!words[w].is_word() || known.at(c.word(w)) > 1) continue;
    if (!nearest(c.word(w), {c.word(at)}).empty()) c.replace(w, std::string(c.word(at)));
  }
}

}  // namespace

void rename(Case& c) {
  const uint32_t at = word_at_error(c);
  if (at == kNothing || !c.outline().words()[at].is_word()) return;
  const uint32_t s = c.outline().statement_at(c.outline().words()[at].begin);
  if (s == kNothing) return;
  for (const std::string& variable : c.scope().variables(s)) c.replace(at, variable);
}

void respell(Case& c) {
  const auto known = known_words(c);
  const uint32_t at = word_at_error(c);
  if (at == kNothing) return;
  respell_others(c, at, known);
  respell_word(c, at, known);
  for (const uint32_t w : words_of_line(c, at)) {  // one that stands nowhere else
    const auto found = known.find(c.word(w));
    if (w != at && found != known.end() && found->second == 1) respell_word(c, w, known);
  }
}

void fix_syntax(Case& c) {
  static const std::vector<std::string> kSigns = {"<-", ",", "=", "{",  "}",  ")",  "]",
                                                  "(",  "[", ":", "..", "in", "for"};
  static const std::vector<std::string> kInLine = {"]", ")", "[", "(",   "<-",
                                                   ",", "=", ".", " in", " .."};
  const uint32_t at = word_at_error(c);
  if (at == kNothing) return;
  for (const std::string& sign : kSigns) {
    c.put_before(at, spaced(sign));
    if (at > 0) c.put_after(at - 1, spaced(sign));
    c.replace(at, sign);
  }
  c.replace(at, "");
  std::vector<uint32_t> near = words_of_line(c, at);
  if (at > 0 && c.outline().words()[at].newline) {  // found too late: the line before
    std::ranges::copy(words_of_line(c, at - 1), std::back_inserter(near));
  }
  for (const uint32_t w : near) {
    for (const std::string& sign : kInLine) c.put_after(w, sign);
  }
}

void close_braces(Case& c) {
  const std::string& text = c.outline().text();
  // A line further left than the one before, except for a '}', is the likeliest place.
  for (const bool likely : {true, false}) {
    size_t before = 0;
    for (size_t begin = 0; begin <= text.size();) {
      const std::string_view line =
          std::string_view(text).substr(begin, text.find('\n', begin) - begin);
      const size_t indent = indentation(line);
      const bool empty = indent == line.size();
      const bool fits = indent < before && (empty || line[indent] != '}');
      if (fits == likely && (!empty || begin == text.size())) {
        c.add("add '}' before line " + std::to_string(c.outline().line_of(uint32_t(begin))),
              {{0, uint32_t(begin), uint32_t(begin),
                std::string(indent, ' ') + "}" + c.outline().newline()}});
      }
      if (!empty) before = indent;
      begin += line.size() + 1;
    }
  }
}

}  // namespace mscclc::fix
