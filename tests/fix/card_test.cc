// The card of the language: short, whole, and its programs are right.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "ir/ops/ops.h"
#include "ir/support/read_file.h"
#include "passes/prove/prove.h"

namespace mscclc {
namespace {

constexpr size_t kMaxLines = 300;

std::string card() { return read_file("docs/language_card.md").value(); }

/// The blocks of the language that are whole programs.
std::vector<std::string> programs() {
  std::istringstream lines(card());
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "```mscl") {
      inside = true;
      found.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + '\n';
    }
  }
  return found;
}

bool proved(const std::string& text, const std::string& ranks) {
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("card.mscl", text);
  FrontEndOptions options;
  options.defines = {{"R", ranks}};
  const auto program = compile(sources, file, options, {}, diagnostics);
  const bool right = program && prove(*program, diagnostics).proved;
  INFO(render_text(diagnostics, sources));
  CHECK(right);
  return right;
}

bool mentions(const std::string& text, std::string_view word) {
  const std::string quoted = "`" + std::string(word);
  for (size_t at = 0; (at = text.find(quoted, at)) != std::string::npos; ++at) {
    const char next = text[at + quoted.size()];
    if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '_') return true;
  }
  return false;
}

TEST_CASE("the card is short") {
  const std::string text = card();
  CHECK(static_cast<size_t>(std::ranges::count(text, '\n')) <= kMaxLines);
}

TEST_CASE("its programs are proved, for several numbers of ranks, and in canonical form") {
  const std::vector<std::string> all = programs();
  CHECK(all.size() >= 5);
  for (const std::string& text : all) {
    INFO(text);
    for (const char* ranks : {"2", "3", "4", "8"}) CHECK(proved(text, ranks));
    Sources sources;
    Diagnostics diagnostics;
    CHECK(format_program(sources, sources.add("card.mscl", text), diagnostics) == text);
  }
}

#define COLLECTIVE(name, ...) #name,
constexpr std::string_view kCollectives[] = {
#include "ir/contract/collectives.def"
};
#undef COLLECTIVE
#define FORMAT(name, ...) #name,
constexpr std::string_view kFormats[] = {
#include "ir/ops/formats.def"
};
#undef FORMAT
#define RESERVED(word) #word,
constexpr std::string_view kWords[] = {
#include "ir/ops/words.def"
};

TEST_CASE("it has every op, collective, packet format and word of the grammar") {
  const std::string text = card();
  const auto check = [&](std::string_view word) {
    INFO(word);
    CHECK(mentions(text, word));
  };
  for (const OpInfo& op : op_table()) check(op.name);
  for (const std::string_view name : kCollectives) {
    if (name != "none") check(name);
  }
  for (const std::string_view name : kFormats) check(name);
  for (const std::string_view word : kWords) {
    INFO(word);
    CHECK(text.find(word) != std::string::npos);
  }
}

}  // namespace
}  // namespace mscclc
