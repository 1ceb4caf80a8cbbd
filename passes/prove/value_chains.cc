#include "passes/prove/value_chains.h"

#include <algorithm>

namespace mscclc::proof {

uint32_t ValueChains::add(const Event& event, uint32_t rank, Position position,
                          const std::vector<uint32_t>& parents) {
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({event, rank, position, static_cast<uint32_t>(parents_.size()),
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

void Provenance::clear() {
  for (const uint32_t value : origins_) is_origin_[value] = false;
  read_.clear();
  origins_.clear();
  calls_.clear();
  looked_at_ = 0;
}

void Provenance::look_at(const ValueChains& chains, uint32_t value) {
  if (is_origin_[value]) return;
  is_origin_[value] = true;
  origins_.push_back(value);
  const ValueChains::Node& node = chains.node(value);
  if (calls_.size() <= node.rank) calls_.resize(node.rank + 1, 0);
  calls_[node.rank] = std::max(calls_[node.rank], node.event.call + 1);
}

/// Finds what the first `count` values were made of.
void Provenance::look_back(const ValueChains& chains, size_t count) {
  if (looked_at_ >= count) return;
  is_origin_.resize(chains.size(), false);
  size_t open = origins_.size();
  for (; looked_at_ < count; ++looked_at_) look_at(chains, read_[looked_at_]);
  for (; open < origins_.size(); ++open) {
    for (const uint32_t parent : chains.parents(chains.node(origins_[open]))) {
      look_at(chains, parent);
    }
  }
}

bool Provenance::follow_later(const ValueChains& chains, size_t count, uint32_t rank,
                              uint32_t call) {
  look_back(chains, count);
  return rank < calls_.size() && calls_[rank] > call + 1;
}

bool Provenance::follow(const ValueChains& chains, size_t count, const Event& event, uint32_t rank,
                        Position position) {
  if (follow_later(chains, count, rank, event.call)) return true;
  return std::ranges::any_of(chains.stored_by(event), [&](uint32_t value) {
    return value < is_origin_.size() && is_origin_[value] &&
           chains.node(value).position == position;
  });
}

}  // namespace mscclc::proof
