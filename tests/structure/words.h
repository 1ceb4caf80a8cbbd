// The words of the glossary's table that are not to be used, and where a text has them: in comments
// and messages, and in names (far_word, FarWord).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mscclc::structure {

/// Words in order: next to each other, joined in one name ("a-b"), or with a few between ("a … b").
struct Phrase {
  struct Word {
    std::string text;
    bool joined = false;   ///< to the one before, by "-", "_" or a capital
    bool distant = false;  ///< a few others may come before it
  };
  std::string text;
  std::vector<Word> words;
};

/// A row of the table.
struct UnusedWords {
  std::string instead;
  std::vector<Phrase> phrases;
  std::vector<Phrase> unless;  ///< a phrase may stand in one of these
};

/// The table "| write | not | except in |" of the glossary; empty if the page has none.
std::vector<UnusedWords> unused_words(std::string_view glossary);

/// A line for each of these words in a text: the place, the word, and what to write instead.
std::vector<std::string> find_unused(std::string_view path, std::string_view text,
                                     const std::vector<UnusedWords>& table);

}  // namespace mscclc::structure
