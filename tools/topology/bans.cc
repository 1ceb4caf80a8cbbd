#include "tools/topology/bans.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace mscclc::topology {
namespace {

constexpr uint64_t kMaxSteps = 1'000'000;

std::optional<uint32_t> rank_of(std::string_view text) {
  uint32_t rank = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || after != text.data() + text.size()) return std::nullopt;
  return rank;
}

/// Calls `with(peer)` for each rank that a channel leads to.
template <class F>
void each_peer(const Program& program, const Channel& channel, const F& with) {
  if (channel.kind != ChannelKind::switch_) return with(channel.peer);
  for (uint32_t i = 0; i < channel.group.count; ++i) {
    with(static_cast<uint32_t>(*program.integers.at(channel.group.first + i)));
  }
}

/// By rank and rank: does a channel join them?
std::vector<std::vector<bool>> joined_ranks(const Program& program) {
  const size_t ranks = program.ranks.size();
  std::vector<std::vector<bool>> joined(ranks, std::vector<bool>(ranks));
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Channel& channel : program.ranks[r].channels) {
      each_peer(program, channel, [&](uint32_t peer) {
        if (peer < ranks && peer != r) joined[r][peer] = joined[peer][r] = true;
      });
    }
  }
  return joined;
}

/// Gives ranks numbers one after the other, and takes the last back where a ban is broken.
class Numbering {
 public:
  Numbering(const Program& program, const std::vector<Ban>& bans)
      : joined_(joined_ranks(program)),
        banned_(program.ranks.size(), std::vector<bool>(program.ranks.size())),
        used_(program.ranks.size()) {
    for (const Ban& ban : bans) banned_[ban.a][ban.b] = banned_[ban.b][ban.a] = true;
    if (has_root(program.contract.kind)) root_ = program.contract.root;
  }

  std::optional<std::vector<uint32_t>> find() {
    return place() ? std::optional(numbers_) : std::nullopt;
  }

 private:
  bool place() {
    const auto rank = static_cast<uint32_t>(numbers_.size());
    if (rank == used_.size()) return true;
    for (uint32_t number = 0; number < used_.size(); ++number) {
      if (++steps_ > kMaxSteps) return false;
      if (used_[number] || !may_have(rank, number)) continue;
      used_[number] = true;
      numbers_.push_back(number);
      if (place()) return true;
      numbers_.pop_back();
      used_[number] = false;
    }
    return false;
  }

  bool may_have(uint32_t rank, uint32_t number) const {
    if (root_ && (rank == *root_) != (number == *root_)) return false;
    for (uint32_t other = 0; other < rank; ++other) {
      if (joined_[rank][other] && banned_[number][numbers_[other]]) return false;
    }
    return true;
  }

  const std::vector<std::vector<bool>> joined_;
  std::vector<std::vector<bool>> banned_;
  std::vector<bool> used_;
  std::vector<uint32_t> numbers_;
  std::optional<uint32_t> root_;
  uint64_t steps_ = 0;
};

}  // namespace

Result<std::vector<Ban>> parse_bans(std::string_view text, uint32_t ranks) {
  std::vector<Ban> bans;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const size_t dash = word.find('-');
    const auto a = rank_of(word.substr(0, dash));
    const auto b = dash == word.npos ? std::nullopt : rank_of(word.substr(dash + 1));
    if (!a || !b || *a == *b) {
      return Error{fmt::format("'{}' is no link; 0-3 is the one between ranks 0 and 3", word)};
    }
    if (std::max(*a, *b) >= ranks) {
      return Error{fmt::format("'{}': there are {} ranks, from 0 on", word, ranks)};
    }
    const Ban ban{std::min(*a, *b), std::max(*a, *b)};
    if (std::ranges::count(bans, ban) == 0) bans.push_back(ban);
    if (comma == text.npos) return bans;
    text.remove_prefix(comma + 1);
  }
}

std::string bans_text(const std::vector<Ban>& bans) {
  std::string text;
  for (const Ban& ban : bans) text += fmt::format("{}{}-{}", text.empty() ? "" : ",", ban.a, ban.b);
  return text;
}

std::optional<Ban> broken_ban(const Program& program, const std::vector<Ban>& bans) {
  const auto joined = joined_ranks(program);
  const auto at = std::ranges::find_if(bans, [&](const Ban& ban) { return joined[ban.a][ban.b]; });
  return at == bans.end() ? std::nullopt : std::optional(*at);
}

bool can_be_renumbered(const Contract& contract) {
  switch (contract.kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::barrier:
      return true;
    default:  // chunks belong to ranks
      return false;
  }
}

std::optional<std::vector<uint32_t>> numbers_without(const Program& program,
                                                     const std::vector<Ban>& bans) {
  return Numbering(program, bans).find();
}

Program renumbered(const Program& program, const std::vector<uint32_t>& numbers) {
  Program out = program;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    Rank& rank = out.ranks[numbers[r]];
    rank = program.ranks[r];
    for (Channel& channel : rank.channels) {
      if (channel.kind == ChannelKind::switch_) {
        for (uint32_t i = 0; i < channel.group.count; ++i) {
          auto& member = *out.integers.at(channel.group.first + i);
          member = numbers[static_cast<size_t>(*program.integers.at(channel.group.first + i))];
        }
      } else if (channel.peer != kNone) {
        channel.peer = numbers[channel.peer];
      }
    }
  }
  return out;
}

}  // namespace mscclc::topology
