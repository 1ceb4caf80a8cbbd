// What the ranks of a run say, without repetitions: each text once, and of errors of one line that
// differ in numbers only the first, with the ranks that say the others. What has more lines than
// that, such as the ops that blocks of each rank wait at, is said by each.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mscclc {

class DistinctTexts {
 public:
  /// A rank's text; what of it is to be printed.
  [[nodiscard]] std::string add(uint32_t rank, const std::string& text);
  /// What is to be printed at the end; "" if no text was left out for its numbers.
  [[nodiscard]] std::string ranks_left_out() const;

 private:
  /// The first one of such texts.
  struct Said {
    uint32_t rank;
    std::string text;
    std::vector<uint32_t> others;  ///< ranks with other numbers in it
  };
  std::map<std::string, Said> said_;  ///< by the text; of errors of one line without its numbers
};

}  // namespace mscclc
