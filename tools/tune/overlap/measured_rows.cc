#include "tools/tune/overlap/measured_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "tools/measure/turns.h"

namespace mscclc::tune {
namespace {

using namespace overlap;

/// What rows can be joined over: of these, all ranges are disjoint or the same.
struct RowGroup {
  OverlapKind kind;
  RunMode mode;
  uint32_t ranks;
  Dtype dtype;
  auto operator<=>(const RowGroup&) const = default;
};

/// Whole flops a byte on both sides of what a shape has.
struct Band {
  uint64_t least, most;
  auto operator<=>(const Band&) const = default;
};

struct Rows {
  uint64_t least, most;
  auto operator<=>(const Rows&) const = default;
};

/// A measured range of both, and what it takes.
struct Area {
  Rows rows;
  Band band;
  GemmWay way;
};

Band band_of(const OverlapConfig& shape) {
  const double intensity = intensity_of(shape);
  return {static_cast<uint64_t>(std::floor(intensity)),
          static_cast<uint64_t>(std::ceil(intensity))};
}

/// Nanoseconds; nullopt: it has no time.
std::optional<double> time_of(const GemmResult& result, const GemmWay& way) {
  const auto found = std::ranges::find(result.times, way, &GemmTime::way);
  return found == result.times.end() ? std::nullopt : std::optional(found->ns);
}

/// What all take together; nullopt: one has no time, or `serial` is as fast.
std::optional<double> time_of_all(const std::vector<const GemmResult*>& shapes,
                                  const GemmWay& way) {
  double all = 0;
  for (const GemmResult* shape : shapes) {
    const auto ns = time_of(*shape, way);
    if (!ns || *ns > shape->serial_ns() * (1 - kGain)) return std::nullopt;
    all += *ns;
  }
  return all;
}

/// Of shapes that a table takes for one.
GemmWay way_of(const std::vector<const GemmResult*>& shapes) {
  if (shapes.size() == 1) return shapes.front()->best.way;
  GemmWay found{kSerial};
  std::optional<double> least;
  for (const GemmResult* shape : shapes) {
    const auto all = time_of_all(shapes, shape->best.way);
    if (!all || (least && *all >= *least)) continue;
    least = all;
    found = shape->best.way;
  }
  return found;
}

/// Joins each area with the one before where they differ in one range alone, and nothing was
/// measured between: `order` has all that was measured of that range, rising.
template <class Range>
std::vector<Area> joined(std::vector<Area> areas, Range Area::*joins,
                         const std::vector<Range>& order) {
  const auto place = [&](uint64_t Range::*end, const Range& of) {
    return std::ranges::find(order, of.*end, end) - order.begin();
  };
  std::ranges::stable_sort(areas, {}, [&](const Area& a) { return (a.*joins).least; });
  std::vector<Area> found;
  for (Area& area : areas) {
    const auto before = std::ranges::find_if(found, [&](const Area& other) {
      Area like = other;
      like.*joins = area.*joins;
      return like.rows == area.rows && like.band == area.band && like.way == area.way &&
             place(&Range::most, other.*joins) + 1 == place(&Range::least, area.*joins);
    });
    if (before == found.end()) {
      found.push_back(std::move(area));
    } else {
      ((*before).*joins).most = (area.*joins).most;
    }
  }
  return found;
}

using Points = std::map<std::pair<Rows, Band>, std::vector<const GemmResult*>>;

template <class Range>
std::vector<Range> rising(std::vector<Range> all) {
  std::ranges::sort(all);
  const auto again = std::ranges::unique(all);
  all.erase(again.begin(), again.end());
  return all;
}

std::vector<Area> areas_of(const Points& points) {
  std::vector<Area> areas;
  std::vector<Rows> all_rows;
  std::vector<Band> all_bands;
  for (const auto& [at, shapes] : points) {
    areas.push_back({at.first, at.second, way_of(shapes)});
    all_rows.push_back(at.first);
    all_bands.push_back(at.second);
  }
  areas = joined(std::move(areas), &Area::rows, rising(std::move(all_rows)));
  areas = joined(std::move(areas), &Area::band, rising(std::move(all_bands)));
  // Where bands touch, the narrower is not in the wider one.
  std::ranges::stable_sort(areas, {}, [](const Area& a) { return a.band.most - a.band.least; });
  return areas;
}

}  // namespace

std::vector<MeasuredChoice> measured_rows(std::span<const GemmResult> results) {
  std::map<RowGroup, Points> groups;
  for (const GemmResult& r : results) {
    if (r.best.ns == 0) continue;
    const RowGroup group{r.shape.kind, r.mode, r.ranks, r.shape.a_dtype};
    groups[group][{{r.shape.m, r.shape.m}, band_of(r.shape)}].push_back(&r);
  }
  std::vector<MeasuredChoice> rows;
  for (const auto& [group, points] : groups) {
    for (const Area& area : areas_of(points)) {
      rows.push_back(
          {.kind = group.kind,
           .mode = group.mode,
           .ranks = group.ranks,
           .dtype = group.dtype,
           .least_rows = area.rows.least,
           .most_rows = area.rows.most,
           .least_intensity = area.band.least,
           .most_intensity = area.band.most,
           .backend = area.way.backend,
           .chunks = area.way.chunks,
           .budget = area.way.budget,
           .gemm = group.mode == RunMode::eager ? MeasuredGemm::own : MeasuredGemm::any});
    }
  }
  return rows;
}

}  // namespace mscclc::tune
