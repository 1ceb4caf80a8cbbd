// Programs without banned links.
#include "tools/topology/bans.h"

#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "passes/prove/prove.h"
#include "plans/format/embedded_library.h"

namespace mscclc::topology {
namespace {

Program program_of(const std::string& name, const std::string& ranks) {
  for (const LibraryFile& file : embedded_library()) {
    if (file.name != name + ".mscl") continue;
    Sources sources;
    Diagnostics diagnostics;
    FrontEndOptions options;
    options.defines = {{"R", ranks}};
    const FileId id = sources.add(name, std::string(file.text));
    auto program = compile(sources, id, options, {}, diagnostics);
    INFO(render_text(diagnostics, sources));
    REQUIRE(program);
    return *std::move(program);
  }
  FAIL("no program " + name);
  return {};
}

std::vector<Ban> bans_of(std::string_view text, uint32_t ranks) {
  const auto bans = parse_bans(text, ranks);
  REQUIRE(bans);
  return *bans;
}

bool is_proved(const Program& program) {
  Diagnostics diagnostics;
  return prove(program, diagnostics).proved;
}

std::string refusal(std::string_view text) {
  const auto bans = parse_bans(text, 4);
  REQUIRE_FALSE(bans);
  return bans.error().text();
}

}  // namespace

TEST_CASE("bans are read, and what is none is refused") {
  CHECK(bans_of("0-3", 4) == std::vector<Ban>{{0, 3}});
  CHECK(bans_of("3-0,1-2,0-3", 4) == std::vector<Ban>{{0, 3}, {1, 2}});
  CHECK(bans_text(bans_of("3-0,1-2", 4)) == "0-3,1-2");
  for (const char* text : {"", "0", "0-", "-3", "0-0", "a-b", "0-3,", "0-3;1-2", "0--3"}) {
    CHECK(refusal(text).find("is no link") != std::string::npos);
  }
  CHECK(refusal("0-4") == "'0-4': there are 4 ranks, from 0 on");
}

TEST_CASE("a ring goes round a banned link") {
  const Program ring = program_of("allreduce_ring", "4");
  for (const char* text : {"0-3", "0-1", "0-1,2-3", "1-3"}) {
    INFO(text);
    const auto bans = bans_of(text, 4);
    const auto numbers = numbers_without(ring, bans);
    REQUIRE(numbers);
    const Program plan = renumbered(ring, *numbers);
    CHECK_FALSE(broken_ban(plan, bans));
    CHECK(is_proved(plan));
  }
  // A rank that two of its three links are banned of is on no ring.
  CHECK_FALSE(numbers_without(ring, bans_of("0-1,0-2", 4)));
  // What breaks no ban stays as it is.
  CHECK(numbers_without(ring, bans_of("0-2", 4)) == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(broken_ban(ring, bans_of("0-2,0-3", 4)) == Ban{0, 3});
}

TEST_CASE("a root keeps its number") {
  const Program chain = program_of("broadcast_chain_packets", "4");
  const auto bans = bans_of("0-1", 4);
  const auto numbers = numbers_without(chain, bans);
  REQUIRE(numbers);
  CHECK(numbers->front() == 0);
  const Program plan = renumbered(chain, *numbers);
  CHECK_FALSE(broken_ban(plan, bans));
  CHECK(is_proved(plan));
}

TEST_CASE("a program whose ranks all send to one another has no plan without a link") {
  CHECK_FALSE(numbers_without(program_of("allreduce_push", "4"), bans_of("1-2", 4)));
  CHECK_FALSE(numbers_without(program_of("allreduce_switch", "4"), bans_of("1-2", 4)));
}

TEST_CASE("ranks whose chunks are their own keep their numbers") {
  CHECK(can_be_renumbered(program_of("allreduce_ring", "4").contract));
  CHECK(can_be_renumbered(program_of("broadcast_chain_packets", "4").contract));
  CHECK_FALSE(can_be_renumbered(program_of("allgather_ring", "4").contract));
}

}  // namespace mscclc::topology
