#include "compiler/builder/draft/texts.h"

#include <fmt/format.h>

#include <iterator>

namespace mscclc {

std::string counted(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string times(int64_t n, bool in_words) {
  static constexpr std::string_view kWords[] = {"three", "four",  "five", "six",
                                                "seven", "eight", "nine"};
  if (n == 0) return "never";
  if (n == 1) return "once";
  if (n == 2) return "twice";
  if (in_words && n < 10) return fmt::format("{} times", kWords[n - 3]);
  return fmt::format("{} times", n);
}

std::string blocks_text(const List& list) {
  if (list.count < 2 || !list.consecutive()) return list_text(list);
  return fmt::format("{}..{}", list[0], list[list.count - 1] + 1);
}

std::string list_text(const List& list) {
  constexpr int64_t kShown = 16;
  std::string out = "[";
  const int64_t head = list.count <= kShown ? list.count : kShown / 2;
  for (int64_t i = 0; i < head; ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i ? ", " : "", list[i]);
  if (head < list.count) {
    fmt::format_to(std::back_inserter(out), ", ..., {}", list[list.count - 1]);
  }
  return out + "]";
}

}  // namespace mscclc
