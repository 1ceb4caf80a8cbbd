#include "runtime/bootstrap/wait_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

constexpr size_t kMaxListed = 16;
constexpr size_t kMaxLines = 12;

bool has(const std::vector<uint32_t>& ranks, uint32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

std::string list_ranks(const std::vector<uint32_t>& ranks) {
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = ranks.size() <= kMaxListed ? ranks.size() : kMaxListed / 2;
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == ranks.size();
    out += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", ranks[i]);
  }
  if (shown < ranks.size()) out += fmt::format(" and {} more", ranks.size() - shown);
  return out;
}

void WaitGraph::report(uint32_t rank, const WaitReport& report) {
  Rank& own = ranks_[rank];
  own.state = State::reported;
  own.text = report.why;
  own.awaited.clear();
  for (const uint32_t r : report.awaited) {
    if (r < ranks_.size() && r != rank && !has(own.awaited, r)) own.awaited.push_back(r);
  }
  std::sort(own.awaited.begin(), own.awaited.end());
}

void WaitGraph::answer(uint32_t rank) {
  if (ranks_[rank].state == State::silent) ranks_[rank].state = State::living;
}

void WaitGraph::elsewhere(uint32_t rank, const std::string& where) {
  if (ranks_[rank].state == State::reported) return;
  ranks_[rank].state = State::elsewhere;
  ranks_[rank].text = where;
}

bool WaitGraph::complete() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) {
    return r.state == State::reported || r.state == State::elsewhere;
  });
}

/// Ranks that are waited for and wait for no other: of those the ones that do not answer, if any.
std::vector<uint32_t> WaitGraph::blamed() const {
  std::vector<uint32_t> ends, silent;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].awaited.empty() || waiting_for({r}).empty()) continue;
    ends.push_back(r);
    if (ranks_[r].state == State::silent) silent.push_back(r);
  }
  return silent.empty() ? ends : silent;
}

bool WaitGraph::reaches(uint32_t from, uint32_t to) const {
  std::vector<bool> seen(ranks_.size());
  std::vector<uint32_t> open = {from};
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const uint32_t next : ranks_[at].awaited) {
      if (next == to) return true;
      if (!seen[next]) open.push_back(next);
      seen[next] = true;
    }
  }
  return false;
}

/// Ranks that wait for themselves by way of others.
std::vector<uint32_t> WaitGraph::circle() const {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    if (reaches(r, r)) ranks.push_back(r);
  }
  return ranks;
}

std::vector<uint32_t> WaitGraph::waiting_for(const std::vector<uint32_t>& ranks) const {
  std::vector<uint32_t> waiting;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    const auto& awaited = ranks_[r].awaited;
    if (std::any_of(awaited.begin(), awaited.end(), [&](uint32_t a) { return has(ranks, a); })) {
      waiting.push_back(r);
    }
  }
  return waiting;
}

std::string WaitGraph::first_line(const std::vector<std::string>& names) const {
  if (const std::vector<uint32_t> ranks = blamed(); !ranks.empty()) {
    const bool one = ranks.size() == 1;
    const bool silent = ranks_[ranks.front()].state == State::silent;
    const std::vector<uint32_t> waiting = waiting_for(ranks);
    const char* s = waiting.size() == 1 ? "s" : "";
    const std::string named = one ? names[ranks.front()] : list_ranks(ranks);
    if (silent) {
      return fmt::format("{} {} not answer; {} wait{} for {}", named, one ? "does" : "do",
                         list_ranks(waiting), s, one ? "it" : "them");
    }
    return fmt::format("{} {} not sent what {} wait{} for", named, one ? "has" : "have",
                       list_ranks(waiting), s);
  }
  if (const std::vector<uint32_t> ranks = circle(); !ranks.empty()) {
    return fmt::format("{} wait for one another", list_ranks(ranks));
  }
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].state == State::reported) {
      return fmt::format("rank {}: {}", r, ranks_[r].text);
    }
  }
  return "no rank waits";
}

std::string WaitGraph::verdict(const std::vector<std::string>& names) const {
  precondition([&] {
    return std::ranges::any_of(ranks_,
                               [](const Rank& rank) { return rank.state == State::reported; });
  });
  std::string text = first_line(names);
  size_t lines = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    const bool awaited = !waiting_for({static_cast<uint32_t>(r)}).empty();
    std::string line;
    if (rank.state == State::reported && !rank.awaited.empty()) {
      line = fmt::format("waits for {}: {}", list_ranks(rank.awaited), rank.text);
    } else if (rank.state == State::reported && awaited) {
      line = "waits for no other rank";
    } else if (rank.state == State::elsewhere) {
      line = rank.text;
    } else if (rank.state == State::living) {
      line = "is alive, but has not reached a point where it says whether it waits";
    } else if (rank.state == State::silent) {
      line = "does not answer";
    }
    if (line.empty() || ++lines > kMaxLines) continue;
    text += fmt::format("\nrank {} {}", r, line);
  }
  if (lines > kMaxLines) text += fmt::format("\nand {} ranks more", lines - kMaxLines);
  return text;
}

}  // namespace mscclc
