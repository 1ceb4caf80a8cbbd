#include "tools/playground/request.h"

#include <catch2/catch.hpp>

namespace mscclc::playground {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

std::string refusal(const std::string& json) {
  const auto read = read_request(json);
  REQUIRE_FALSE(read);
  return read.error().text();
}

TEST_CASE("playground: a request is read") {
  const auto read = read_request(
      R"({"ask":"program","name":"a.mscl","text":"program a","parameters":" R=4  C=1,2\nI=R*2 ",)"
      R"("bytes":"64K","machine":"8xH100"})");
  REQUIRE(read);
  CHECK(read->ask == Ask::program);
  CHECK(read->name == "a.mscl");
  CHECK(read->text == "program a");
  CHECK(read->parameters == Parameters{{"R", "4"}, {"C", "1,2"}, {"I", "R*2"}});
  CHECK(read->bytes == 65536);
  CHECK(read->machine == "8xH100");
  CHECK(read_request(R"({"ask":"library"})")->ask == Ask::library);
}

TEST_CASE("playground: what is no request is refused, and says why") {
  CHECK(refusal("") == "a request is a JSON object with 'ask'");
  CHECK(refusal("[1]") == "a request is a JSON object with 'ask'");
  CHECK(refusal(R"({"text":"program a"})") == "a request is a JSON object with 'ask'");
  CHECK(refusal(R"({"ask":"all"})") == "'ask' is 'library' or 'program', not 'all'");
  CHECK(refusal(R"({"ask":"program","text":1})") == "'text' is a text");
  CHECK(refusal(R"({"ask":"program","file":"/etc/passwd"})") == "a request has no 'file'");
  CHECK(refusal(R"({"ask":"program","parameters":"R"})") ==
        "parameter 'R' is not of the form NAME=VALUE, as in 'R=8 I=2'");
  CHECK(refusal(R"({"ask":"program","parameters":"R=1 R=2"})") == "parameter 'R' is given twice");
  CHECK(refusal(R"({"ask":"program","bytes":"much"})") ==
        "'much' is no size of a message; '64K' or '1M' is one");
  CHECK(refusal(R"({"ask":"program","machine":"plans/machines/8xH100.json"})")
            .starts_with("unknown machine 'plans/machines/8xH100.json'; there are: "));
  CHECK(refusal(R"({"ask":"program","text":")" + std::string((256 << 10) + 1, 'x') + "\"}") ==
        "the program has 262145 bytes; the page takes 262144 at most");
}

}  // namespace
}  // namespace mscclc::playground
