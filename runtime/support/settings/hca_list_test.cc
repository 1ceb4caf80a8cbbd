// Lists of devices in NCCL's syntax.
#include "runtime/support/settings/hca_list.h"

#include <catch2/catch.hpp>

namespace mscclc {
namespace {

HcaList parse(std::string_view text) {
  const auto list = parse_hca_list(text);
  INFO((list ? "" : list.error().text()));
  REQUIRE(list);
  return *list;
}

TEST_CASE("an empty list means every device, and names none") {
  CHECK(parse("").has("mlx5_0", 1));
  CHECK(!parse("").names());
}

TEST_CASE("names begin so, or are whole") {
  CHECK(parse("mlx5").has("mlx5_0", 2));
  CHECK(parse("mlx5_1").has("mlx5_10", 1));
  CHECK(!parse("=mlx5_1").has("mlx5_10", 1));
  CHECK(parse("=mlx5_1").has("mlx5_1", 1));
  CHECK(!parse("mlx5").has("rxe0", 1));
  CHECK(parse("rxe0,mlx5_1").has("mlx5_1", 1));
  CHECK(parse("rxe0").names());
}

TEST_CASE("ports") {
  CHECK(parse("mlx5_0:2").has("mlx5_0", 2));
  CHECK(!parse("mlx5_0:2").has("mlx5_0", 1));
  CHECK(parse("mlx5_0:2,mlx5_0:1").has("mlx5_0", 1));
  CHECK(!parse("=mlx5_0:1").has("mlx5_01", 1));
}

TEST_CASE("all but these") {
  CHECK(!parse("^mlx5_0").has("mlx5_0", 1));
  CHECK(parse("^mlx5_0").has("mlx5_1", 1));
  CHECK(parse("^=mlx5_1").has("mlx5_10", 1));
  CHECK(!parse("^mlx5_0:1,mlx5_1").has("mlx5_1", 4));
  CHECK(parse("^mlx5_0:1").has("mlx5_0", 2));
  CHECK(!parse("^mlx5_0").names());
}

TEST_CASE("those of these that are usable") {
  CHECK(parse("?mlx5").has("mlx5_0", 2));
  CHECK(!parse("?=mlx5_1").has("mlx5_10", 1));
  CHECK(!parse("?mlx5").names());
}

TEST_CASE("what is not a list") {
  const auto why = [](std::string_view text) {
    const auto list = parse_hca_list(text);
    return list ? "a list" : list.error().text();
  };
  CHECK(why("^") == "a device has no name");
  CHECK(why("=") == "a device has no name");
  CHECK(why("a,") == "a device has no name");
  CHECK(why("a,,b") == "a device has no name");
  CHECK(why(":1") == "a device has no name");
  CHECK(why("a:") == "'' is not a port: ports are numbered from 1 to 255");
  CHECK(why("a:0") == "'0' is not a port: ports are numbered from 1 to 255");
  CHECK(why("a:256") == "'256' is not a port: ports are numbered from 1 to 255");
  CHECK(why("?") == "a device has no name");
  CHECK(why("=?a") == "'?', '^' and '=' stand once, before the whole list, in this order");
  CHECK(why("^^a") == "'?', '^' and '=' stand once, before the whole list, in this order");
  CHECK(why("=^a") == "'?', '^' and '=' stand once, before the whole list, in this order");
  CHECK(why("^=a,=b") == "'?', '^' and '=' stand once, before the whole list, in this order");
  CHECK(why("a, b") == "no device has a name with spaces");
  CHECK(why("a:1:0") == "'1:0' is not a port: ports are numbered from 1 to 255");
  CHECK(why("a:1x") == "'1x' is not a port: ports are numbered from 1 to 255");
}

}  // namespace
}  // namespace mscclc
