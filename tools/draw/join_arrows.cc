// Arrows of one row from each of several boxes to all others, joined to one line.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tools/draw/layout_parts.h"

namespace mscclc::draw {
namespace {

constexpr size_t kLeastFan = 3;  // arrows at one end of a box that are worth a bus

/// Sets of boxes that arrows connect.
class Groups {
 public:
  explicit Groups(size_t n) : parent_(n) {
    for (size_t i = 0; i < n; ++i) parent_[i] = i;
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<size_t> parent_;
};

/// Does every box of `from` have an arrow to each of `to` that is in another band?
bool is_complete(const Picture& picture, const Bus& bus, size_t arrows) {
  size_t pairs = 0;
  for (const uint32_t a : bus.from) {
    for (const uint32_t b : bus.to) pairs += picture.boxes[a].band != picture.boxes[b].band;
  }
  return pairs == arrows && std::max(bus.from.size(), bus.to.size()) >= kLeastFan;
}

Bus bus_of(const Picture& picture, const std::vector<size_t>& arrows) {
  std::set<uint32_t> from, to;
  std::set<std::string> labels;
  Bus bus;
  for (const size_t i : arrows) {
    const Arrow& arrow = picture.arrows[i];
    from.insert(arrow.from);
    to.insert(arrow.to);
    if (!arrow.label.empty()) labels.insert(arrow.label);
    bus.chunks.insert(arrow.chunks.begin(), arrow.chunks.end());
    bus.kind = arrow.kind;
  }
  bus.from.assign(from.begin(), from.end());
  bus.to.assign(to.begin(), to.end());
  if (labels.size() == 1) bus.label = *labels.begin();
  if (labels.size() > 1) bus.label = *labels.begin() + ", …";
  return bus;
}

}  // namespace

void join_arrows(Picture& picture) {
  using Key = std::tuple<uint32_t, uint32_t, ArrowKind, size_t>;  // rows, kind, group
  std::map<std::tuple<uint32_t, uint32_t, ArrowKind>, Groups> groups;
  const size_t boxes = picture.boxes.size();
  const auto key_of = [&](const Arrow& a) {
    return std::tuple(picture.boxes[a.from].row, picture.boxes[a.to].row, a.kind);
  };
  const auto may_join = [&](const Arrow& a) {
    return a.from != kNowhere && a.to != kNowhere && a.from_band != a.to_band &&
           a.kind != ArrowKind::meeting;
  };
  for (const Arrow& a : picture.arrows) {
    if (!may_join(a)) continue;
    // A box can be at both ends: as a giver and as a taker it is two.
    groups.try_emplace(key_of(a), 2 * boxes).first->second.join(a.from, boxes + a.to);
  }
  std::map<Key, std::vector<size_t>> joined;
  for (size_t i = 0; i < picture.arrows.size(); ++i) {
    const Arrow& a = picture.arrows[i];
    if (!may_join(a)) continue;
    const auto key = key_of(a);
    joined[std::tuple_cat(key, std::tuple(groups.at(key).find(a.from)))].push_back(i);
  }
  for (const auto& [key, arrows] : joined) {
    const Bus bus = bus_of(picture, arrows);
    if (!is_complete(picture, bus, arrows.size())) continue;
    for (const size_t i : arrows) {
      picture.arrows[i].bus = static_cast<uint32_t>(picture.buses.size());
    }
    picture.buses.push_back(bus);
  }
}

}  // namespace mscclc::draw
