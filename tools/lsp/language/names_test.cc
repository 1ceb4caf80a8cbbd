#include "tools/lsp/language/names.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "ir/support/read_file.h"

using namespace mscclc;
using namespace mscclc::lsp;

namespace {

/// A text in which '^' marks places; they are taken out.
struct Marked {
  std::string text;
  std::vector<size_t> places;
};
Marked marked(const std::string& with_marks) {
  Marked out;
  for (const char c : with_marks) {
    if (c == '^') {
      out.places.push_back(out.text.size());
    } else {
      out.text += c;
    }
  }
  return out;
}

/// Are the marked places all the places of one name?
void check_same_name(const std::string& with_marks) {
  const Marked m = marked(with_marks);
  INFO(with_marks);
  const auto tree = read_tree("a.mscl", m.text, {});
  REQUIRE(tree != nullptr);
  const Names names(*tree);
  REQUIRE(!m.places.empty());
  const Use* first = names.at(m.places[0]);
  REQUIRE(first != nullptr);
  std::vector<size_t> found;
  for (const Use& use : names.uses_of(first->declared)) {
    found.push_back(tree->bytes(use.place)->begin);
  }
  CHECK(found == m.places);
}

std::vector<std::string> visible_at(const std::string& with_mark) {
  const Marked m = marked(with_mark);
  const auto tree = read_tree("a.mscl", m.text, {});
  REQUIRE(tree != nullptr);
  const Names names(*tree);
  std::vector<std::string> found;
  for (const Declared* d : names.visible(m.places.at(0))) {
    found.emplace_back(tree->ast.text(d->symbol));
  }
  std::ranges::sort(found);
  return found;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("names: parameters and values of the file") {
  check_same_name(
      "param ^R = 4\ncollective allgather(ranks: ^R)\nrank r in 0..^R { let n = ^R }\n");
  check_same_name("let ^a = 1, b = ^a\nlet c = [^a + i for i in 0..^a]\n");
}

TEST_CASE("names: the same name in different scopes is not the same") {
  check_same_name(
      "rank r in 0..2 { for ^p in 0..2 { sync ; let n = ^p } for p in 0..3 { sync } }\n");
  check_same_name("rank r in 0..2 { for p in 0..2 { sync } for ^p in 0..3 { let n = ^p } }\n");
  check_same_name("let f(^x) = ^x + 1\nlet g(x) = x\n");
}

TEST_CASE("names: functions, with values of their own") {
  check_same_name("let ^f(x) = x\nlet a = ^f(^f(1))\n");
  check_same_name("let f(x) = {\n  let ^y = x\n  ^y + ^y\n}\nlet y = 2\n");
}

TEST_CASE("names: a variable is visible before the 'for' of its operand or list") {
  check_same_name(
      "rank r in 0..2 {\n  channel ch[q in 0..2] = memory(q)\n"
      "  wait ch[^p] for ^p in 0..2\n}\n");
  check_same_name("let a = [^i * ^i for ^i in 0..4 where ^i > 1]\n");
}

TEST_CASE("names: what ranks own is one thing in all bodies, and at far ends") {
  check_same_name(
      "rank 0 {\n  buffer ^s[1]\n  channel up = memory(1) to down\n  copy ^s[0] <- input\n}\n"
      "rank 1 {\n  buffer ^s[1]\n  channel down = memory(0) to up\n  put down.^s[0] <- ^s[0]\n}\n");
  check_same_name(
      "rank 0 {\n  buffer s[1]\n  channel ^up = memory(1) to down\n}\n"
      "rank 1 {\n  channel down = memory(0) to ^up\n  signal down\n}\n");
  check_same_name("rank 0 {\n  semaphore ^m = 1\n  release ^m\n  acquire ^m\n}\n");
  check_same_name(
      "rank 0 {\n  channel ^c[1] = memory(1)\n  channel ^c[2] = memory(2)\n"
      "  wait ^c[1], ^c[2]\n}\n");
}

TEST_CASE("names: defs, and their arguments at far ends") {
  check_same_name("def ^move(c) { signal c }\nrank 0 { channel ch = memory(1)\n  ^move(ch) }\n");
  check_same_name(
      "def move(c, ^b) { put c.^b[0] <- input }\n"
      "rank 0 { buffer b[1]\n  channel ch = memory(1)\n  move(ch, b) }\n");
}

TEST_CASE("names: words of options are no names, formats that are parameters are") {
  check_same_name("param ^F = LL16\nrank 0 { buffer s[1] packets: ^F }\n");
  check_same_name("param ^sum = 1\ncollective allreduce(ranks: ^sum)\nselect ops: sum\n");
}

TEST_CASE("names: contracts") {
  check_same_name(
      "param R = 2\ncollective custom(ranks: R, input: 1, output: 1)\n"
      "ensure output[0] at ^r = input[0] at ^r for ^r in 0..R\n");
}

TEST_CASE("names: row functions, externals and flags") {
  check_same_name("param ^B = 2, K = 1\nexternal flags ready[^B] of: input, raises: K\n");
  check_same_name("param B = 2, ^K = 1\nexternal flags ready[B] of: input, raises: ^K\n");
  const std::string row = "(x: row T, bias: columns T) {\n  out y: row T = x + bias\n}\n";
  check_same_name("row ^f" + row +
                  "external bias: columns T\ncollective allreduce(ranks: 1, then: ^f)\n"
                  "rank 0 { tb 0 { apply ^f output <- input, bias\n"
                  "  reduce output <- input, input then ^f _ <- _, bias } }\n");
  check_same_name("row f" + row + "external ^bias: columns T\n" +
                  "rank 0 { tb 0 { apply f output <- input, ^bias } }\n");
  check_same_name(
      "external flags ^a[2] of: input\nexternal flags b[2] of: output, after: ^a\n"
      "rank 0 { tb 0 { await ^a[0] } }\n");
}

TEST_CASE("names: what is visible where") {
  const std::string program =
      "param R = 2\nlet f(x) = x$0\nrank r in 0..R {\n  let a = 1 $1\n  for p in 0..R { sync$2 }\n"
      "  let b = 2\n}\n";
  const auto at = [&](const std::string& mark) {
    std::string text = program;
    for (const char* other : {"$0", "$1", "$2"}) {
      const size_t place = text.find(other);
      text.replace(place, 2, other == mark ? "^" : "");
    }
    return visible_at(text);
  };
  CHECK(at("$0") == Strings{"R", "input", "output", "x"});
  CHECK(at("$1") == Strings{"R", "a", "f", "input", "output", "r"});
  CHECK(at("$2") == Strings{"R", "a", "f", "input", "output", "p", "r"});
}

TEST_CASE("names: in the library every word is a name, or one of the language") {
  size_t uses = 0;
  for (const auto& entry : std::filesystem::directory_iterator("plans")) {
    if (entry.path().extension() != ".mscl") continue;
    const auto tree = read_tree(entry.path(), read_file(entry.path()).value(), {});
    INFO(entry.path());
    REQUIRE(tree != nullptr);
    REQUIRE(tree->whole);
    const Names names(*tree);
    uses += names.uses().size();
    for (uint32_t i = 0; i < names.all().size(); ++i) {
      if (names.all()[i].kind == Kind::callers || names.all()[i].kind == Kind::variable) continue;
      const auto all = names.uses_of(i);
      INFO(tree->ast.text(names.all()[i].symbol));
      CHECK(std::ranges::any_of(all, &Use::declares));
      CHECK(all.size() > 1);  // no value or thing of the library is never used
    }
  }
  CHECK(uses > 1000);
}
