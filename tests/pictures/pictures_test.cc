// Pictures of every program of the library over eight ranks, and the double tree for Graphviz.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/library/library.h"
#include "tools/draw/dot.h"
#include "tools/draw/layout.h"
#include "tools/draw/svg.h"

namespace mscclc {
namespace {

using namespace draw;

/// The program over eight ranks, in one node or two, or over as many as it allows.
CompiledWorld over_eight_ranks(const LibraryProgram& program) {
  const bool nodes = program.worlds[0][0].first == "world";
  CompiledWorld eight(program.name,
                      nodes ? Defines{{"world", "8"}, {"gpus", "4"}} : Defines{{"R", "8"}});
  if (eight.errors().empty()) return eight;
  return {program.name, program.worlds.back()};
}

/// The least size of letters, in pixels.
double smallest_text(const std::string& svg) {
  constexpr std::string_view kSize = "font-size:";
  double least = 1000;
  for (size_t at = svg.find(kSize); at != std::string::npos; at = svg.find(kSize, at + 1)) {
    least = std::min(least, std::stod(svg.substr(at + kSize.size(), 8)));
  }
  return least;
}

bool is_inside(const Area& inner, const Area& outer) {
  return inner.x >= outer.x && inner.x + inner.w <= outer.x + outer.w && inner.y >= outer.y &&
         inner.bottom() <= outer.bottom();
}

/// Boxes lie in their bands and do not overlap; bands are in order and do not, either.
void check_places(const Picture& picture) {
  double right = 0;
  uint32_t last = 0;
  for (const RankBand& band : picture.bands) {
    if (!band.is_used) continue;
    CHECK(band.at.x >= right);
    right = band.at.x + band.at.w;
    if (band.others) continue;
    CHECK(band.rank >= last);
    last = band.rank;
  }
  CHECK(right <= picture.width);
  for (size_t b = 0; b < picture.boxes.size(); ++b) {
    const Box& box = picture.boxes[b];
    CHECK(is_inside(box.at, picture.bands[box.band].at));
    if (b == 0) continue;
    const Box& before = picture.boxes[b - 1];
    if (before.band == box.band && before.column == box.column) {
      CHECK(before.at.bottom() < box.at.y);
    }
  }
}

/// Arrows go from their source's band to their target's, downward, and begin and end at boxes.
void check_arrows(const Picture& picture) {
  for (const Arrow& arrow : picture.arrows) {
    if (arrow.kind == ArrowKind::data) CHECK(!arrow.label.empty());
    if (arrow.from != kNowhere) {
      CHECK(picture.boxes[arrow.from].band == arrow.from_band);
    } else {
      CHECK(arrow.from_band < picture.bands.size());
    }
    if (arrow.to != kNowhere) CHECK(picture.boxes[arrow.to].band == arrow.to_band);
    if (arrow.kind == ArrowKind::meeting || arrow.bus != kNowhere) continue;
    REQUIRE(arrow.points.size() >= 2);
    CHECK(arrow.points.front().y <= arrow.points.back().y);
    if (arrow.from != kNowhere) {
      CHECK(arrow.points.front().y == picture.boxes[arrow.from].at.bottom());
    }
    if (arrow.to != kNowhere) CHECK(arrow.points.back().y == picture.boxes[arrow.to].at.y);
  }
}

/// Something moves in every program, so that data goes from rank to rank.
bool shows_data(const Picture& picture) {
  return std::ranges::any_of(picture.arrows, [](const Arrow& arrow) {
    return arrow.kind == ArrowKind::data && arrow.from_band != arrow.to_band;
  });
}

TEST_CASE("pictures: every program of the library over eight ranks fits a screen") {
  int fewer = 0;
  for (const LibraryProgram& program : library()) {
    INFO(program.name);
    const CompiledWorld world = over_eight_ranks(program);
    REQUIRE(world.errors().empty());
    fewer += world.program().ranks.size() < 8;
    const auto picture = lay_out(world.program(), {});
    REQUIRE(picture);
    CHECK(picture->width <= 1920);
    CHECK(picture->height <= 1080);
    CHECK(shows_data(*picture));
    check_places(*picture);
    check_arrows(*picture);
    const std::string svg = svg_of(*picture);
    CHECK(svg.size() < 200'000);
    CHECK(smallest_text(svg) >= 9);
  }
  CHECK(fewer == 1);  // sendrecv_nodes is for two
}

TEST_CASE("pictures: a ring of 64 ranks is one rank and its neighbours") {
  const CompiledWorld world("allreduce_ring", {{"R", "64"}});
  const auto picture = lay_out(world.program(), {});
  REQUIRE(picture);
  CHECK(picture->facts[0] == "all ranks do the same, and rank 0 is drawn: rank r writes to r + 1");
  check_places(*picture);
  check_arrows(*picture);
}

TEST_CASE("pictures: Graphviz gets the double tree with ranks in order") {
  const CompiledWorld world("broadcast_tree", {{"R", "8"}});
  const auto picture = lay_out(world.program(), {});
  REQUIRE(picture);
  const std::string dot = dot_of(*picture);
  size_t at = 0;
  for (const RankBand& band : picture->bands) {
    const size_t found = dot.find("label=\"" + band.title + "\"");
    REQUIRE(found != std::string::npos);
    CHECK(found > at);
    at = found;
  }
}

}  // namespace
}  // namespace mscclc
