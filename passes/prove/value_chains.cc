#include "passes/prove/value_chains.h"

#include <algorithm>

namespace mscclc::proof {

uint32_t ValueChains::add(const Event& event, uint32_t rank, Position position,
                          const Extent& extent, uint64_t length,
                          const std::vector<ReadValue>& parents) {
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({event, rank, position, extent, length, static_cast<uint32_t>(parents_.size()),
                    static_cast<uint32_t>(parents.size())});
  parents_.insert(parents_.end(), parents.begin(), parents.end());
  by_process_[event.process].push_back(id);
  return id;
}

std::span<const uint32_t> ValueChains::stored_by(const Event& event) const {
  const std::vector<uint32_t>& stored = by_process_[event.process];
  const auto time = [&](uint32_t i) { return nodes_[i].event.time; };
  const auto found = std::ranges::equal_range(stored, event.time, {}, time);
  return {found.begin(), found.end()};
}

void Provenance::add(const ValueChains& chains, uint32_t value, const Extent& extent) {
  const Extent& stored = chains.node(value).extent;
  if (extent.covers(stored)) {
    read_.push_back({value, {}});
  } else if (stored.covers(extent)) {
    read_.push_back({value, extent});
  }
}

void Provenance::clear() {
  for (const uint32_t value : origins_) is_whole_[value] = is_sure_[value] = false;
  read_.clear();
  origins_.clear();
  pieces_.clear();
  calls_.clear();
  looked_at_ = 0;
}

/// Has it not been reached like that before?
bool Provenance::is_new(const ValueChains::Node& node, const Link& link) {
  const auto [value, piece] = link.read;
  bool found = false;
  if (link.sure && !is_sure_[value]) {
    found = is_sure_[value] = true;
    if (calls_.size() <= node.rank) calls_.resize(node.rank + 1, 0);
    calls_[node.rank] = std::max(calls_[node.rank], node.event.call + 1);
  }
  if (piece.whole() && link.length == 0) {
    found |= !is_whole_[value];
    is_whole_[value] = true;
  } else if (!is_whole_[value]) {
    std::vector<Bytes>& pieces = pieces_[value];
    const Bytes bytes{piece, link.length};
    if (std::ranges::find(pieces, bytes) == pieces.end()) {
      pieces.push_back(bytes);
      found = true;
    }
  }
  if (found) origins_.push_back(value);
  return found;
}

void Provenance::look_at(const ValueChains& chains, const Link& link) {
  const ValueChains::Node& node = chains.node(link.read.value);
  const Extent& piece = link.read.piece;
  if (node.length != 0 && link.length != 0 && node.length != link.length) return;
  Link here = link;
  here.length = std::max(link.length, node.length);
  here.sure &= here.length == 0 && (piece.whole() ? node.extent.sure : piece.sure);
  if (is_new(node, here)) open_.push_back(here);
}

/// Parents of what has been reached: of a piece of a value as much comes from a parent as they have
/// in common.
void Provenance::look_behind(const ValueChains& chains, const Link& link) {
  const Extent& piece = link.read.piece;
  for (const ReadValue& parent : chains.parents(chains.node(link.read.value))) {
    const Extent& stored = chains.node(parent.value).extent;
    if (piece.whole()) {
      look_at(chains, {parent, link.sure, link.length});
    } else if (piece.covers(stored)) {
      look_at(chains, {{parent.value, {}}, link.sure, link.length});
    } else if (stored.covers(piece)) {
      look_at(chains, {{parent.value, piece}, link.sure, link.length});
    }
  }
}

bool Provenance::comes_from(const ValueChains& chains, uint32_t value, uint64_t length,
                            Covering& covering) const {
  if (value >= is_whole_.size()) return false;
  const Extent& stored = chains.node(value).extent;
  if (is_whole_[value]) return covering.add(stored);
  const auto pieces = pieces_.find(value);
  return pieces != pieces_.end() && std::ranges::any_of(pieces->second, [&](const Bytes& bytes) {
           return (bytes.length == 0 || bytes.length == length) &&
                  covering.add(bytes.piece.whole() ? stored : bytes.piece);
         });
}

bool Provenance::follow(const ValueChains& chains, const Cuts& cuts, size_t count,
                        const Load& load) {
  if (looked_at_ < count) {
    is_whole_.resize(chains.size(), false);
    is_sure_.resize(chains.size(), false);
    for (; looked_at_ < count; ++looked_at_) look_at(chains, {read_[looked_at_], true, 0});
    while (!open_.empty()) {
      const Link link = open_.back();
      open_.pop_back();
      look_behind(chains, link);
    }
  }
  if (load.rank < calls_.size() && calls_[load.rank] > load.event.call + 1) return true;
  Covering covering(cuts, load.bytes);
  return std::ranges::any_of(chains.stored_by(load.event), [&](uint32_t value) {
    return chains.node(value).position == load.position &&
           comes_from(chains, value, load.length, covering);
  });
}

}  // namespace mscclc::proof
