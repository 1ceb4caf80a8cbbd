// What a picture shows and where: bands, rows, arrows, what is folded, what options pick.
#include "tools/draw/layout.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::draw;
using namespace mscclc::testing;

namespace {

/// Each rank puts a chunk into its neighbour's inbox, which adds it up; `blocks` do the same.
TestProgram ring(uint32_t ranks, uint32_t blocks = 1) {
  TestProgram t(ranks, 1);
  for (uint32_t r = 0; r < ranks; ++r) {
    t.buffer(r, "inbox", blocks);
    for (uint32_t b = 0; b < blocks; ++b) {
      t.channel(r, ChannelKind::memory, "next", {b}, (r + 1) % ranks, 2 * b + 1);
      t.channel(r, ChannelKind::memory, "prev", {b}, (r + ranks - 1) % ranks, 2 * b);
      t.op_in(r, b, OpKind::put, {far(2 * b, 2, b)}, {local(kInput, 0)});
      t.op_in(r, b, OpKind::sync, {});
      t.op_in(r, b, OpKind::signal, {end_of(2 * b)});
      t.op_in(r, b, OpKind::wait, {end_of(2 * b + 1)});
      t.op_in(r, b, OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(2, b)});
    }
  }
  return t;
}

Picture drawn(const Program& program, const DrawOptions& options = {}) {
  auto picture = lay_out(program, options);
  INFO((picture ? "" : picture.error().text()));
  REQUIRE(picture);
  return std::move(*picture);
}

std::string error_of(const Program& program, const DrawOptions& options) {
  const auto picture = lay_out(program, options);
  return picture ? "a picture" : picture.error().text();
}

}  // namespace

TEST_CASE("draw layout: bands in order, steps downward, arrows from band to band") {
  const TestProgram t = ring(4);
  const Picture picture = drawn(t.program);
  REQUIRE(picture.bands.size() == 4);
  for (uint32_t l = 0; l < 4; ++l) {
    CHECK(picture.bands[l].rank == l);
    if (l > 0) CHECK(picture.bands[l].at.x > picture.bands[l - 1].at.x);
  }
  REQUIRE(picture.boxes.size() == 8);
  CHECK(picture.rows == 2);
  for (const Box& box : picture.boxes) {
    const Area& band = picture.bands[box.band].at;
    CHECK(box.at.x >= band.x);
    CHECK(box.at.x + box.at.w <= band.x + band.w);
    CHECK(box.row == (box.name == "put" ? 0 : 1));
  }
  REQUIRE(picture.arrows.size() == 4);
  for (const Arrow& arrow : picture.arrows) {
    CHECK(arrow.kind == ArrowKind::data);
    CHECK(arrow.label == "inbox[0]");
    CHECK(arrow.to_band == (arrow.from_band + 1) % 4);
    CHECK(picture.boxes[arrow.from].band == arrow.from_band);
    CHECK(picture.boxes[arrow.to].band == arrow.to_band);
    CHECK(picture.boxes[arrow.from].at.bottom() < picture.boxes[arrow.to].at.y);
    CHECK(arrow.around == (arrow.from_band == 3));
  }
}

TEST_CASE("draw layout: blocks that do the same are one column") {
  const TestProgram t = ring(4, 3);
  const Picture picture = drawn(t.program);
  REQUIRE(picture.bands[0].columns.size() == 1);
  CHECK(picture.bands[0].columns[0].label == "tb 0–2: alike");
  CHECK(picture.bands[0].columns[0].blocks == "0 1 2");
  CHECK(picture.arrows.size() == 4);
  CHECK(picture.arrows[0].label == "inbox[0]");  // of the block that is drawn
}

TEST_CASE("draw layout: of many ranks that do the same one is drawn") {
  const TestProgram t = ring(12);
  const Picture picture = drawn(t.program);
  REQUIRE(picture.bands.size() == 3);  // the others stand at both sides
  CHECK(picture.bands[0].others);
  CHECK(picture.bands[1].title == "rank r (r = 0)");
  CHECK(picture.bands[2].others);
  REQUIRE(!picture.facts.empty());
  CHECK(picture.facts[0] == "all ranks do the same, and rank 0 is drawn: rank r writes to r + 1");
  std::set<std::string> labels;
  for (const Arrow& arrow : picture.arrows) labels.insert(arrow.label);
  CHECK(labels == std::set<std::string>{"r + 1: inbox[0]", "r − 1: inbox[0]"});
}

TEST_CASE("draw layout: ranks that do other things are drawn each") {
  TestProgram t(10, 1);
  t.buffer(0, "inbox", 1);
  for (uint32_t r = 1; r < 10; ++r) {
    t.channel(0, ChannelKind::memory, "from", {r}, r, 0);
    t.channel(r, ChannelKind::memory, "root", {}, 0, r - 1);
    t.op_in(r, 0, OpKind::put, {far(0, 2, 0)}, {local(kInput, 0)});
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
    t.op_in(0, 0, OpKind::wait, {end_of(r - 1)});
  }
  const Picture picture = drawn(t.program);
  REQUIRE(picture.bands.size() == 4);
  CHECK(picture.bands[1].rank == 0);
  CHECK(picture.bands[2].rank == 1);
  CHECK(picture.bands[2].note == "as ranks 1–9");
}

TEST_CASE("draw layout: options pick ranks, blocks and chunks") {
  const TestProgram t = ring(4, 2);
  CHECK(
      drawn(t.program, {.ranks = {2}, .blocks = {}, .chunk = "", .proved = "", .between_calls = ""})
          .bands[1]
          .rank == 2);
  DrawOptions one;
  one.blocks = {1};
  CHECK(drawn(t.program, one).bands[0].columns[0].label == "tb 1");
  DrawOptions chunk;
  chunk.chunk = "inbox[1]";
  const Picture touching = drawn(t.program, chunk);
  for (const Box& box : touching.boxes) {
    const uint32_t rank = touching.bands[box.band].rank;
    const bool put = box.name == "put";
    const std::string place = std::to_string(put ? (rank + 1) % 4 : rank) + " inbox[1]";
    CHECK((put ? box.writes : box.reads).contains(place));
  }
  chunk.chunk = "0";
  CHECK(drawn(t.program, chunk).boxes.size() == 8);
}

TEST_CASE("draw layout: what options pick must be there") {
  const TestProgram t = ring(4);
  DrawOptions options;
  options.ranks = {4};
  CHECK(error_of(t.program, options) == "--rank 4: the program's ranks are 0 to 3");
  options = {};
  options.blocks = {7};
  CHECK(error_of(t.program, options) == "--tb 7: no rank has ops in this thread block");
  options = {};
  options.chunk = "outbox[0]";
  CHECK(error_of(t.program, options) ==
        "--chunk outbox[0]: no op that is drawn touches it; chunks are called as in 'input[0]'");
}

TEST_CASE("draw layout: too many boxes are an error with a remedy") {
  TestProgram t(1, 1);
  for (size_t i = 0; i <= kMaxBoxes; ++i) {
    t.op_in(0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  }
  CHECK(error_of(t.program, {}) ==
        "the picture would have 6001 boxes, and 6000 are the most; pick some with --rank, --tb or "
        "--chunk");
}

TEST_CASE("draw layout: each to all others is one line") {
  TestProgram t(4, 1);
  for (uint32_t r = 0; r < 4; ++r) {
    for (uint32_t p = 0; p < 4; ++p) {
      if (p != r) t.channel(r, ChannelKind::memory, "ch", {p}, p, r < p ? r : r - 1);
    }
    t.op_in(r, 0, OpKind::signal, {end_of(0), end_of(1), end_of(2)});
    t.op_in(r, 0, OpKind::wait, {end_of(0), end_of(1), end_of(2)});
  }
  const Picture picture = drawn(t.program);
  REQUIRE(picture.buses.size() == 1);
  CHECK(picture.buses[0].from.size() == 4);
  CHECK(picture.buses[0].to.size() == 4);
  CHECK(picture.arrows.size() == 12);
  for (const Arrow& arrow : picture.arrows) CHECK(arrow.bus == 0);
}

TEST_CASE("draw layout: what a barrier orders travels with the signal after it") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
  t.op_in(0, 0, OpKind::barrier, {id(0), id(1)});
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(0, 1, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
  t.op_in(0, 1, OpKind::barrier, {id(0), id(1)});
  t.op_in(1, 0, OpKind::wait, {end_of(0)});
  const Picture picture = drawn(t.program);
  const auto data = std::ranges::find(picture.arrows, ArrowKind::data, &Arrow::kind);
  REQUIRE(data != picture.arrows.end());
  CHECK(data->label == "output[0]");
  CHECK(data->from_band == 0);
  CHECK(data->to_band == 1);
}

TEST_CASE("draw layout: pipelines get frames with their unit") {
  TestProgram t(1, 1);
  t.program.loops.push_back({1 << 19, 1});
  t.op_in(0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)}).loop = 0;
  t.op_in(0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)}).loop = 0;
  const Picture picture = drawn(t.program);
  REQUIRE(picture.frames.size() == 1);
  CHECK(picture.frames[0].label == "pipeline: units of 512 KiB");
  CHECK(picture.frames[0].first == 0);
  CHECK(picture.frames[0].last == 1);
}

TEST_CASE("draw layout: arrows pass a frame's label") {
  TestProgram t = ring(4);
  t.program.loops.push_back({1 << 19, 1});
  for (Rank& rank : t.program.ranks) {
    for (const size_t i : {3, 4}) rank.ops[i].loop = 0;  // wait, reduce
  }
  const Picture picture = drawn(t.program);
  REQUIRE(picture.frames.size() == 4);
  for (const Arrow& arrow : picture.arrows) {
    CHECK(arrow.points.back().x > picture.boxes[arrow.to].at.x + 130);
  }
}

TEST_CASE("draw layout: what repeats in a strip is counted, whatever its names are") {
  TestProgram t(1, 1);
  t.semaphore(0, "x × y", {}, 4);
  t.semaphore(0, "x", {}, 4);
  for (const uint32_t semaphore : {0u, 1u, 1u, 0u, 0u}) {
    t.op_in(0, 0, OpKind::acquire, {id(semaphore)});
  }
  t.op_in(0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  const Picture picture = drawn(t.program);
  REQUIRE(picture.boxes.size() == 1);
  CHECK(picture.boxes[0].before ==
        std::vector<std::string>{"acquire x × y", "acquire x × 2", "acquire x × y × 2"});
}

TEST_CASE("draw layout: ops that wait in a circle are drawn") {
  TestProgram t(2, 1);
  for (const uint32_t r : {0u, 1u}) {
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
    t.op_in(r, 0, OpKind::wait, {end_of(0)});
    t.op_in(r, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
    t.op_in(r, 0, OpKind::signal, {end_of(0)});
  }
  CHECK(drawn(t.program).boxes.size() == 2);
}

TEST_CASE(
    "draw layout: what a block repeats is drawn once if the picture is higher than a screen") {
  TestProgram t(2, 40);
  for (const uint32_t r : {0u, 1u}) {
    t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
    t.op_in(r, 0, OpKind::copy, {local(kOutput, 39)}, {local(kInput, 0)});
    for (uint32_t i = 0; i < 20; ++i) {
      t.op_in(r, 0, OpKind::reduce, {local(kOutput, i)}, {local(kInput, i), local(kInput, 39)});
      t.op_in(r, 0, OpKind::copy, {local(kOutput, 20 + i)}, {local(kInput, i)});
      t.op_in(r, 0, OpKind::signal, {end_of(0)});
    }
    for (uint32_t i = 0; i < 20; ++i) t.op_in(r, 0, OpKind::wait, {end_of(0)});
  }
  const Picture picture = drawn(t.program);
  CHECK(picture.height <= 1080);
  CHECK(picture.facts.back() == "what a block repeats is drawn once; --rank draws all");
  REQUIRE(picture.boxes.size() == 8);
  CHECK(picture.boxes[0].chunk != -1);
  CHECK(picture.boxes[1].chunk == -1);  // of several
  CHECK(picture.boxes[1].ops.size() == 20);
  REQUIRE(picture.frames.size() == 2);
  CHECK(picture.frames[0].label == "20 times, all alike");
  CHECK(picture.frames[0].first == 1);
  CHECK(picture.frames[0].last == 2);
  DrawOptions options;
  options.ranks = {0};
  CHECK(drawn(t.program, options).boxes.size() == 42);
}
