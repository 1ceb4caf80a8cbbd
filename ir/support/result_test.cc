#include "ir/support/result.h"

#include <catch2/catch.hpp>
#include <memory>

using namespace mscclc;

namespace {

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return Error{"it is negative", "give another"};
  return std::make_unique<int>(value);
}

Result<std::string> name_of(int value) {
  auto made = make(value);
  if (!made) return made.error();
  return "number " + std::to_string(**made);
}

Result<void> check(int value) {
  if (value > 9) return Error{.message = "it is large", .code = "large"};
  return {};
}

std::optional<Error> why_not(int value) {
  if (value == 0) return Error{"it is nothing"};
  return std::nullopt;
}

}  // namespace

TEST_CASE("a result has a value, which can be moved out, or an error") {
  auto made = make(3);
  REQUIRE(made);
  CHECK(**made == 3);
  const std::unique_ptr<int> taken = *std::move(made);
  CHECK(*taken == 3);
  REQUIRE_FALSE(make(-1));
  CHECK(make(-1).error().message == "it is negative");
  CHECK(make(-1).error().text() == "it is negative; give another");
  CHECK(make(-1).error().code.empty());
}

TEST_CASE("an error goes on as the error of another result") {
  CHECK(*name_of(3) == "number 3");
  CHECK(name_of(3)->size() == 8);
  CHECK(name_of(-1).error() == "it is negative; give another");
}

TEST_CASE("what is done for its effect has no value") {
  CHECK(check(1));
  REQUIRE_FALSE(check(10));
  CHECK(check(10).error().code == "large");
  CHECK(check(10).error().text() == "it is large");
}

TEST_CASE("what a check finds can be compared with a text") {
  CHECK(why_not(1) == std::nullopt);
  CHECK(why_not(0) == "it is nothing");
  CHECK(why_not(0) != "it is something");
}

TEST_CASE("a null pointer is neither a value nor an error") {
  STATIC_REQUIRE(std::is_convertible_v<std::unique_ptr<int>, Result<std::unique_ptr<int>>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<std::nullptr_t, Result<std::unique_ptr<int>>>);
  STATIC_REQUIRE_FALSE(std::is_default_constructible_v<Result<int>>);
}
