// Every #include line against the table of layers. Visibility alone would let through what comes
// with another dependency.
#include "tests/structure/walls.h"

#include <catch2/catch.hpp>

#include "ir/support/read_file.h"
#include "tests/structure/sources.h"

namespace mscclc::structure {
namespace {

const std::string kTable =
    "ir:\n"
    "passes/framework: ir\n"
    "passes: ir passes/framework\n"
    "passes tests: compiler\n"
    "compiler: ir passes\n"
    "tests: *\n";

std::vector<std::string> wrong(const std::string& file, const std::string& source) {
  return wrong_includes(file, source, Layers(kTable));
}

TEST_CASE("every include is one that the table of layers allows") {
  const Layers layers(read_file("tests/structure/layers.txt").value());
  REQUIRE(layers.folder_of("ir/program/program.h") == "ir/program");
  const auto texts = sources();
  REQUIRE(texts.size() > 600);
  for (const auto& [path, text] : texts) {
    for (const std::string& message : wrong_includes(path, text, layers)) FAIL_CHECK(message);
  }
}

TEST_CASE("an include that goes upward is found") {
  CHECK(wrong("ir/program/program.h", "#pragma once\n  # include \"passes/pass.h\"\n") ==
        std::vector<std::string>{
            "ir/program/program.h includes passes/pass.h: ir may not include passes (layers.bzl)"});
  CHECK(wrong("passes/framework/pass.h", "#include \"passes/registry.h\"\n").size() == 1);
  CHECK(wrong("passes/fuse.cc", "#include <compiler/compile.h>\n#include <map>\n").size() == 1);
}

TEST_CASE("an include that the table allows is right") {
  CHECK(wrong("passes/fuse.cc", "#include \"passes/framework/pass.h\"\n#include \"ir/ops/ops.h\"\n")
            .empty());
  CHECK(wrong("ir/program/program.cc",
              "#include \"ir/program/program.h\"\n// #include \"passes/fuse.h\"\n")
            .empty());
  CHECK(wrong("tests/any.cc", "#include \"compiler/compile.h\"\n").empty());
}

TEST_CASE("tests of a folder may include what is said of them") {
  CHECK(wrong("passes/fuse_test.cc", "#include \"compiler/compile.h\"\n").empty());
  CHECK(wrong("passes/fuse_test_text.h", "#include \"compiler/compile.h\"\n").empty());
  CHECK(wrong("passes/framework/pass_test.cc", "#include \"compiler/compile.h\"\n").size() == 1);
}

TEST_CASE("a file or an include outside of all folders is found") {
  CHECK(wrong("new/a.cc", "#include \"ir/ops/ops.h\"\n") ==
        std::vector<std::string>{"new/a.cc lies in no folder of layers.bzl"});
  CHECK(wrong("ir/a.cc", "#include \"ops.h\"\n") ==
        std::vector<std::string>{"ir/a.cc includes ops.h, which lies in no folder of ours"});
}

}  // namespace
}  // namespace mscclc::structure
