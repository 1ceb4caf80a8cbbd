#include "plans/format/target.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

namespace mscclc {
namespace {

std::string file_with(const std::string& text) {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/target.json";
  std::ofstream(path) << text;
  return path;
}

const std::string kRight =
    R"({"name":"tiny","description":"","mscclpp_wire_only":true,"max_threads_per_block":1,)"
    R"("max_blocks":2,"max_ops_per_block":3,"max_operands_per_op":4,"max_channels_per_op":5,)"
    R"("max_channels_per_block":6,"max_remote_buffers_per_block":7,"max_semaphores_per_op":8,)"
    R"("max_channels":10,"max_barriers":9,"shared_bytes_per_op":11,"max_shared_bytes":12,)"
    R"("vector_bytes":13,"max_bytes":18446744073709551615})";

/// The message for a target file, without the path of the file.
std::string refused_target(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  const std::string path = file_with(text);
  Diagnostics diagnostics;
  CHECK_FALSE(find_target(path, diagnostics));
  const Diagnostic& d = diagnostics.all().at(0);
  return d.path.substr(path.size()) + ": " + d.message;
}

}  // namespace

TEST_CASE("the built-in targets") {
  std::string names;
  for (const Target& target : builtin_targets()) names += target.name + " ";
  CHECK(names == "host mscclpp sm_90 ");
  Diagnostics diagnostics;
  const auto host = find_target("host", diagnostics);
  REQUIRE(host);
  CHECK_FALSE(host->mscclpp_wire_only);
  CHECK(host->max_blocks == 0);
  CHECK(find_target("mscclpp", diagnostics)->mscclpp_wire_only);
  CHECK(find_target("mscclpp", diagnostics)->max_bytes == 0xffffffff);
  CHECK(find_target("sm_90", diagnostics)->max_blocks == 132);
}

TEST_CASE("a file is a target") {
  Diagnostics diagnostics;
  const auto target = find_target(file_with(kRight), diagnostics);
  REQUIRE(target);
  CHECK(target->name == "tiny");
  CHECK(target->mscclpp_wire_only);
  CHECK(target->max_threads_per_block == 1);
  CHECK(target->max_blocks == 2);
  CHECK(target->max_ops_per_block == 3);
  CHECK(target->max_operands_per_op == 4);
  CHECK(target->max_channels_per_op == 5);
  CHECK(target->max_channels_per_block == 6);
  CHECK(target->max_remote_buffers_per_block == 7);
  CHECK(target->max_semaphores_per_op == 8);
  CHECK(target->max_channels == 10);
  CHECK(target->max_barriers == 9);
  CHECK(target->shared_bytes_per_op == 11);
  CHECK(target->max_shared_bytes == 12);
  CHECK(target->vector_bytes == 13);
  CHECK(target->max_bytes == ~uint64_t{0});
}

TEST_CASE("mistakes in target files") {
  CHECK(refused_target(kRight, "\"max_blocks\":2,", "") == ": key 'max_blocks' is missing");
  CHECK(refused_target(kRight, "max_blocks", "max_block") == ": unknown key 'max_block'");
  CHECK(refused_target(kRight, ":true", ":1") ==
        ": mscclpp_wire_only: expected a boolean, found a number");
  CHECK(refused_target(kRight, ":2,", ":\"2\",") ==
        ": max_blocks: expected a number, found a string");
  CHECK(refused_target(kRight, ":2,", ":4294967296,") ==
        ": max_blocks: 4294967296 is too large; at most 4294967295");
  CHECK(refused_target(kRight, "\"tiny\"", "\"\"") == ": name: a target must have a name");
  CHECK(refused_target(kRight, "{", "").starts_with(": not JSON: "));
}

TEST_CASE("a name that is neither") {
  Diagnostics diagnostics;
  CHECK_FALSE(find_target("hots", diagnostics));
  CHECK(render_text(diagnostics, Sources()) ==
        "error: 'hots' is neither a built-in target nor a readable file\n"
        "note: did you mean 'host'?\n"
        "note: built in are host, mscclpp, sm_90\n");
}

}  // namespace mscclc
