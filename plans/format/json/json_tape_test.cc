#include "plans/format/json/json_tape.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "plans/format/json/json_read.h"

namespace mscclc {
namespace {

JsonTape parse(std::string_view text) {
  JsonTape tape;
  Diagnostics diagnostics;
  REQUIRE(tape.parse(text, "p", diagnostics));
  return tape;
}

/// The message for a document that is not accepted, with its path.
std::string refusal(std::string_view text) {
  JsonTape tape;
  Diagnostics diagnostics;
  REQUIRE_FALSE(tape.parse(text, "p", diagnostics));
  return diagnostics.all()[0].path + ": " + diagnostics.all()[0].message;
}

}  // namespace

TEST_CASE("values lie on the tape in document order") {
  const JsonTape tape =
      parse(R"({"name":[1,-2,3.5,"i",true,null,{}],"other":18446744073709551615})");
  REQUIRE(tape.size() == 10);
  CHECK(tape[0].kind() == JsonType::object);
  CHECK(tape[0].value == 2);
  CHECK(tape[0].next == 10);
  CHECK(tape[1].key == w_name);
  CHECK(tape[1].value == 7);
  CHECK(tape[1].next == 9);
  CHECK(tape[2].value == 1);
  CHECK(static_cast<int64_t>(tape[3].value) == -2);
  CHECK(tape[4].kind() == JsonType::real);
  CHECK(tape[5].value == w_i);
  CHECK(tape[7].kind() == JsonType::null);
  CHECK(tape.text(tape[9].key) == "other");
  CHECK(tape[9].value == ~uint64_t{0});
}

TEST_CASE("paths name members and positions") {
  const JsonTape tape = parse(R"({"gpus":[{"id":0},{"channels":[[],[7]]}]})");
  CHECK(tape.path(0).empty());
  CHECK(tape.path(static_cast<NodeId>(tape.size() - 1)) == "gpus[1].channels[1][0]");
  CHECK(tape.path(3) == "gpus[0].id");
}

TEST_CASE("many different strings stay distinct") {
  std::string text = "[";
  for (int i = 0; i < 5000; ++i) text += "\"s" + std::to_string(i) + "\",";
  text.back() = ']';
  const JsonTape tape = parse(text);
  for (int i = 0; i < 5000; ++i) {
    CHECK(tape.text(static_cast<Word>(tape[static_cast<NodeId>(i) + 1].value)) ==
          "s" + std::to_string(i));
  }
}

TEST_CASE("a key that is there twice is refused") {
  CHECK(refusal(R"({"id":1,"id":1})") == "p: key 'id' appears twice");
  CHECK(refusal(R"({"id":{"x":1,"y":2,"x":3}})") == "p: id: key 'x' appears twice");
  parse(R"({"a":{"b":1},"c":{"b":1},"b":[{"b":1},{"b":2}]})");
}

TEST_CASE("deep nesting is refused before it costs anything") {
  const std::string deep(1000000, '[');
  CHECK(refusal(deep).ends_with("nested too deep"));
}

TEST_CASE("the hash is of the content, not of its form") {
  const std::string plan = R"({"gpus":[{},[1,-2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":1}}})";
  const std::string hash = canonical_hash(parse(plan));
  CHECK(hash.size() == 32);
  CHECK(canonical_hash(parse(R"( { "gpus" : [ { } , [ 1 , -2 , "a\u00e9\n" ] ],
      "mscclc":{"schema":1,"hash":"0","x":{"hash":1}}} )")) == hash);
  for (const char* other :
       {R"({"gpus":[{},[1,-2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":2}}})",
        R"({"gpus":[[],[1,-2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":1}}})",
        R"({"gpus":[{},[1,2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":1}}})",
        R"({"mscclc":{"schema":1,"x":{"hash":1}},"gpus":[{},[1,-2,"aé\n"]]})",
        R"({"gpus":[{},[1,-2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":1},"proof":{}}})",
        R"({"hash":1,"gpus":[{},[1,-2,"aé\n"]],"mscclc":{"schema":1,"x":{"hash":1}}})"}) {
    CHECK(canonical_hash(parse(other)) != hash);
  }
}

TEST_CASE("what is hashed is handed on without claims and without the hash") {
  const auto unclaimed = [](const std::string& plan) {
    std::string text;
    const std::function<bool(std::string_view)> sink = [&](std::string_view block) {
      text += block;
      return true;
    };
    CHECK(canonical_hash(parse(plan), &sink) == canonical_hash(parse(plan)));
    return text;
  };
  const std::string bare = R"({"a":1,"mscclc":{"schema":2,"target":"","x":[{}]}})";
  CHECK(unclaimed(bare) == bare);
  CHECK(unclaimed(R"({"a":1,"mscclc":{"schema":2,"target":"sm_90","x":[{}]}})") == bare);
  CHECK(unclaimed(R"({"a":1,"mscclc":{"schema":2,"target":"t","x":[{}],"hash":"5"}})") == bare);
  const std::string proof = R"("proof":{"y":[{"z":2.5}]})";
  CHECK(unclaimed(R"({"a":1,"mscclc":{"schema":2,"target":"t","x":[{}],)" + proof + "}}") == bare);
  CHECK(unclaimed(R"({"a":1,"mscclc":{"schema":2,"target":"t","x":[{}],)" + proof +
                  R"(,"hash":"5"}})") == bare);
  const std::string elsewhere = R"({"target":"t","proof":{"mscclc":{"proof":3}},"hash":[]})";
  CHECK(unclaimed(elsewhere) == elsewhere);
}

TEST_CASE("the hash is the same on every machine") {
  CHECK(canonical_hash(parse("{}")) == "dc7048f8f8747f561349cde127705c16");
}

}  // namespace mscclc
