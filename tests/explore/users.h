// Which processes share counters, queues and slots: where the order of processes matters. Not for
// use outside the explorer.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "ir/program/program.h"
#include "tests/explore/steps.h"

namespace mscclc::explorer {

/// Which counters, queues and slots have several givers, or takers. A packet slot that is put into
/// more than once in a call, be it by one process, has its readers as takers, too: what they see,
/// and whether a put comes after they have emptied the slot, depends on when they come.
class Users {
 public:
  /// `plain`: also places of plain data.
  Users(const Model& model, bool plain)
      : plain_(plain),
        givers_(model.channels),
        takers_(model.channels),
        posters_(model.channels),
        acquirers_(model.semaphores),
        releasers_(model.semaphores),
        sharers_(model.semaphores),
        writers_(model.cells),
        root_(model.processes.size()) {
    std::iota(root_.begin(), root_.end(), 0u);
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) add(model, p, step);
    }
    add_readers(model);
    find_circles(model);
  }

  /// Processes that contend with each other, directly or by way of others.
  const std::vector<std::vector<size_t>>& circles() const { return circles_; }

  /// Has a semaphore several releasers or acquirers?
  bool several_share(uint32_t semaphore) const {
    return releasers_[semaphore].several || acquirers_[semaphore].several;
  }

  /// May it matter what other givers or takers do before the step?
  bool contended(const Step& step) const {
    switch (step.kind) {
      case Step::Kind::signal:
        return step.index != kNone && givers_[step.index].several;
      case Step::Kind::wait:
        return takers_[step.index].several;
      case Step::Kind::post:
      case Step::Kind::flush:
        return posters_[step.index].several;
      case Step::Kind::release:
      case Step::Kind::acquire:
        return several_share(step.index);
      case Step::Kind::poll:
      case Step::Kind::access:
        return moves_contended(step);
      default:
        return false;
    }
  }

  /// Do others write there, too, or is a packet read from where several are put? For a post: other
  /// ports or strands.
  bool moves_contended(const Step& step) const {
    return std::ranges::any_of(step.elements, [&](const Element& e) {
      return std::ranges::any_of(
                 e.dsts, [&](const Cell& c) { return counts(c) && writers_[c.first].several; }) ||
             std::ranges::any_of(e.srcs, [&](const Cell& c) { return put_again(c); });
    });
  }

 private:
  struct User {
    uint32_t process = kNone;
    bool several = false;
    void add(uint32_t p, std::vector<uint32_t>& root) {
      several |= process != kNone && process != p;
      if (process != kNone) root[find(root, p)] = find(root, process);
      process = p;
    }
  };
  static uint32_t find(const std::vector<uint32_t>& root, uint32_t p) {
    while (root[p] != p) p = root[p];
    return p;
  }

  void find_circles(const Model& model) {
    std::set<uint32_t> contending;
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) {
        if (contended(step)) contending.insert(p);
        if (moves_contended(step)) contending.insert(mover(model, p, step));
      }
    }
    std::map<uint32_t, std::vector<size_t>> members;
    for (const uint32_t p : contending) members[find(root_, p)].push_back(p);
    for (auto& [root, circle] : members) circles_.push_back(std::move(circle));
  }

  bool counts(const Cell& cell) const { return plain_ || cell.packets != PacketFormat::none; }

  /// Is more than one packet put there in a call?
  bool put_again(const Cell& cell) const {
    return cell.packets != PacketFormat::none && writers_[cell.first].several;
  }

  /// What reads and writes: what is posted, the port's proxy.
  static uint32_t mover(const Model& model, uint32_t p, const Step& step) {
    if (step.kind != Step::Kind::post) return p;
    const auto proxy = std::ranges::find_if(model.processes, [&](const Process& q) {
      return q.kind == Process::Kind::proxy && q.port == step.index;
    });
    return static_cast<uint32_t>(proxy - model.processes.begin());
  }

  void add(const Model& model, uint32_t p, const Step& step) {
    if (step.kind == Step::Kind::signal && step.index != kNone) givers_[step.index].add(p, root_);
    if (step.kind == Step::Kind::wait) takers_[step.index].add(p, root_);
    if (step.kind == Step::Kind::post || step.kind == Step::Kind::flush)
      posters_[step.index].add(p, root_);
    if (step.kind == Step::Kind::release) releasers_[step.index].add(p, root_);
    if (step.kind == Step::Kind::acquire) acquirers_[step.index].add(p, root_);
    const bool shared = step.kind == Step::Kind::release || step.kind == Step::Kind::acquire;
    if (shared) sharers_[step.index].add(p, root_);
    if (step.kind == Step::Kind::poll) return;  // a later step of the op moves
    for (const Element& e : step.elements) {
      for (const Cell& c : e.dsts) {
        if (!counts(c)) continue;
        User& own = writers_[c.first];
        own.several |= c.packets != PacketFormat::none && own.process != kNone;
        own.add(mover(model, p, step), root_);
      }
    }
  }

  /// REQUIRES: all writers are known.
  void add_readers(const Model& model) {
    for (uint32_t p = 0; p < model.processes.size(); ++p) {
      for (const Step& step : model.processes[p].steps) {
        for (const Element& e : step.elements) {
          for (const Cell& c : e.srcs) {
            if (!put_again(c)) continue;
            writers_[c.first].add(step.kind == Step::Kind::poll ? p : mover(model, p, step), root_);
          }
        }
      }
    }
  }

  const bool plain_;
  std::vector<User> givers_, takers_, posters_, acquirers_, releasers_, sharers_, writers_;
  std::vector<uint32_t> root_;  ///< by process: another one that contends with it, or itself
  std::vector<std::vector<size_t>> circles_;
};

}  // namespace mscclc::explorer
