#include "tools/lsp/protocol/uri.h"

#include <catch2/catch.hpp>

using namespace mscclc::lsp;

TEST_CASE("URIs of files are their paths") {
  CHECK(path_of_uri("file:///home/a%20b/r%C3%A9.mscl") == "/home/a b/r\xc3\xa9.mscl");
  CHECK(path_of_uri("file://localhost/a.mscl") == "/a.mscl");
  CHECK(path_of_uri(uri_of_path("/x/a b%c.mscl")) == "/x/a b%c.mscl");
  CHECK(uri_of_path("/x/a b.mscl") == "file:///x/a%20b.mscl");
}

TEST_CASE("what is no URI of a file names itself") {
  for (const char* uri : {"untitled:Untitled-1", "file:/a", "file:///a%2", "file:///a%zz",
                          "file:///a%00b", "file://", ""}) {
    CHECK(path_of_uri(uri) == uri);
  }
}
