// One table of words: ops of traces are ops of ours, and Python knows them by the same numbers.
#include <catch2/catch.hpp>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "compiler/mscclpp/read_trace.h"
#include "ir/base/read_file.h"

using namespace mscclc;
using namespace mscclc::mscclpp;

namespace {

const std::vector<std::pair<std::string, Name>> kNames = {
#define MSCCLPP_OP(name, op, form, reads, writes) {#name, Name::name},
#include "compiler/mscclpp/op_names.def"
#undef MSCCLPP_OP
};

/// The names on the left of each assignment, with the numbers that `range` gives them.
std::map<std::string, uint64_t> numbers_of_python() {
  const std::string text =
      read_file("python/mscclc/mscclpp/language/internal/words.py").value_or("");
  std::map<std::string, uint64_t> numbers;
  size_t at = text.find("\"\"\"", 3);
  while (true) {
    const size_t range = text.find(") = range(", at);
    const size_t plain = text.find(" = range(", at);
    if (plain == std::string::npos) return numbers;
    const size_t end = std::min(range, plain);
    const size_t begin = range == end ? text.rfind('(', end) : text.rfind('\n', end);
    const size_t open = text.find("range(", end) + 6;
    const std::string first = text.substr(open, text.find_first_of(",)", open) - open);
    uint64_t number = text[open + first.size()] == ',' ? std::stoull(first) : 0;
    std::string word;
    for (size_t i = begin + 1; i <= end; ++i) {
      const char c = text[i];
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        word += c;
      } else if (!word.empty()) {
        numbers[std::exchange(word, "")] = number++;
      }
    }
    at = open;
  }
}

std::string python_name(Name name) {
  std::string out = is_relaxed(name) ? "RELAXED_" : "";
  for (const char c : info(op_of(name)).name) {
    out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name == Name::pipeline ? "_" + out : out;  // which no call of Python's is
}

}  // namespace

TEST_CASE("the table of ops has the words that plans call ops by") {
  for (const auto& [word, name] : kNames) {
    INFO(word);
    CHECK(text_of(name) == (name == Name::glre ? "" : word));  // which must become part of another
    bool relaxed = false;
    if (name != Name::glre) CHECK(find_wire_op(word, relaxed) == op_of(name));
    CHECK(relaxed == is_relaxed(name));
  }
  CHECK(text_of(Kind::by_switch) == "switch");
  CHECK(reduction_of(1) == "sum");
  CHECK(reduction_of(3) == "max");
}

TEST_CASE("Python's numbers of records are the reader's") {
  const std::map<std::string, uint64_t> numbers = numbers_of_python();
  for (uint64_t i = 0; i <= static_cast<uint64_t>(Name::gstorepkt); ++i) {
    const std::string word = python_name(kNames[i].second);
    INFO(word);
    REQUIRE(numbers.count(word) == 1);
    CHECK(numbers.at(word) == i);
  }
  CHECK(numbers.at("CODE") == kCode);
  CHECK(numbers.at("GROUP") == kGroup);
  CHECK(numbers.at("CHANNEL") == kChannel);
  CHECK(numbers.at("SWITCH") == mscclpp::kSwitch);
  CHECK(numbers.at("SEMAPHORE") == kSemaphore);
  CHECK(numbers.at("LOOP") == kLoop);
  CHECK(numbers.at("END_OF_LOOP") == kEndOfLoop);
  CHECK(numbers.size() == static_cast<size_t>(Name::gstorepkt) + 1 + 7);
}
