#include "tools/lsp/protocol/json.h"

#include <catch2/catch.hpp>

using namespace mscclc::lsp;

TEST_CASE("JSON from outside: members of the wrong type are nothing") {
  const Json object = Json::parse(R"({"text":"a","number":3,"less":-1,"half":0.5,"list":[1]})");
  CHECK(text_of(object, "text") == "a");
  CHECK_FALSE(text_of(object, "number"));
  CHECK_FALSE(text_of(object, "missing"));
  CHECK(number_of(object, "number", 3) == 3);
  CHECK_FALSE(number_of(object, "number", 2));
  for (const char* name : {"text", "less", "half", "list", "missing"}) {
    CHECK_FALSE(number_of(object, name, UINT64_MAX));
  }
  CHECK(member(Json::parse("[1]"), "text").is_null());
  CHECK(member(member(object, "missing"), "text").is_null());
}

TEST_CASE("JSON to outside is UTF-8 whatever a text holds") {
  CHECK(to_text(Json("a\xff")) == "\"a\xef\xbf\xbd\"");
}
