// What a run has found so far. A plan with one mistake may have it in thousands of places, so the
// list has an end, and each place of the program is in it once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "passes/prove/model/finding.h"

namespace mscclc::proof {

class FindingList {
 public:
  explicit FindingList(bool in_place) : in_place_(in_place) {}

  const std::vector<Finding>& all() const { return findings_; }
  bool empty() const { return findings_.empty(); }
  size_t size() const { return findings_.size(); }
  Finding& operator[](size_t i) { return findings_[i]; }
  /// The finding is there until the next one is added.
  Finding& add(Finding::Kind kind) {
    findings_.push_back({});
    findings_.back().kind = kind;
    findings_.back().in_place = in_place_;
    return findings_.back();
  }
  /// Is there room, and is it the first time that this is asked of `key`, which stands for a place
  /// of the program? The first few findings are enough.
  bool may_report(uint64_t key) {
    constexpr size_t kMax = 50;
    return findings_.size() < kMax && reported_.insert(key).second;
  }
  /// Not decided, at an op: `text` says why. nullptr: there is no room, or it is there already.
  Finding* add_undecided(uint32_t process, uint32_t op, const char* text) {
    if (!may_report(uint64_t{process} << 32 | op)) return nullptr;
    Finding& finding = add(Finding::Kind::undecided);
    finding.second = {process, 0, op, 0};
    finding.text = text;
    return &finding;
  }
  bool reported(uint64_t key) const { return reported_.contains(key); }
  /// `key` is part of a finding that is there.
  void note_reported(uint64_t key) { reported_.insert(key); }

 private:
  const bool in_place_;
  std::vector<Finding> findings_;
  std::unordered_set<uint64_t> reported_;
};

}  // namespace mscclc::proof
