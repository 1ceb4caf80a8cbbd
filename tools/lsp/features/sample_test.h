// An open document in which '^' marks places.
#pragma once

#include <string>
#include <vector>

#include "tools/lsp/language/document.h"

namespace mscclc::lsp::testing {

class Sample {
 public:
  explicit Sample(const std::string& with_marks) : document("file:///s.mscl", "", nothing_) {
    std::string text;
    for (const char c : with_marks) {
      if (c == '^') {
        places_.push_back(text.size());
      } else {
        text += c;
      }
    }
    document.replace(text);
  }
  Position mark(size_t i = 0) const { return document.lines().position(places_.at(i)); }
  std::vector<Position> marks() const {
    std::vector<Position> all;
    for (size_t i = 0; i < places_.size(); ++i) all.push_back(mark(i));
    return all;
  }
  /// The text after the edits of a request.
  std::string edited(const Json& edits) const {
    std::string text = document.text();
    for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit) {
      const auto range = range_of((*edit)["range"]);
      const size_t begin = document.lines().byte(range->start);
      text.replace(begin, document.lines().byte(range->end) - begin, (*edit)["newText"]);
    }
    return text;
  }

 private:
  Surroundings nothing_;
  std::vector<size_t> places_;

 public:
  Document document;
};

/// AllGather in which nothing protects the scratch from the next call.
inline const std::string kRace =
    "param      R = 4\n"
    "collective allgather(ranks: R)\n"
    "rank r in 0..R {\n"
    "  let others = 0..R except r\n"
    "  buffer s[others]\n"
    "  channel ch[p in others] = memory(p)\n"
    "  for p in others { put ch[p].s[r] <- input ; signal ch[p] }\n"
    "  copy output[r] <- input\n"
    "  for p in others { wait ch[p] }\n"
    "  for p in others { copy output[p] <- s[p] }\n"
    "}\n";

}  // namespace mscclc::lsp::testing
