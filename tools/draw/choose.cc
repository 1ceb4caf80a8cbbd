#include "tools/draw/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/program/access.h"

namespace mscclc::draw {
namespace {

constexpr size_t kMaxClasses = 3;  // ranks that do different things, beside each other

class Chooser {
 public:
  Chooser(const Program& program, const Steps& steps, const DrawOptions& options)
      : program_(program), steps_(steps), options_(options) {}

  Result<Choice> run() {
    if (auto missing = what_is_missing()) return *std::move(missing);
    Choice choice;
    choice.names.ranks = static_cast<uint32_t>(program_.ranks.size());
    if (!options_.ranks.empty()) {
      choice.bands = bands(sorted(options_.ranks), kMaxFoldedColumns);
    } else if (program_.ranks.size() <= kMaxBands) {
      choice.bands = bands(every_rank(), kMaxColumns);
    }
    if (choice.bands.empty() || (options_.ranks.empty() && columns(choice.bands) > kMaxColumns)) {
      fold_ranks(choice);
    }
    return choice;
  }

 private:
  std::optional<Error> what_is_missing() const {
    for (const uint32_t rank : options_.ranks) {
      if (rank < program_.ranks.size()) continue;
      return Error{fmt::format("--rank {}: the program's ranks are 0 to {}", rank,
                               program_.ranks.size() - 1)};
    }
    for (const uint32_t tb : options_.blocks) {
      const bool known =
          std::ranges::any_of(steps_.blocks, [&](const Block& block) { return block.place == tb; });
      if (!known) return Error{fmt::format("--tb {}: no rank has ops in this thread block", tb)};
    }
    return std::nullopt;
  }

  static std::vector<uint32_t> sorted(std::vector<uint32_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
  }

  std::vector<uint32_t> every_rank() const {
    std::vector<uint32_t> ranks(program_.ranks.size());
    for (uint32_t r = 0; r < ranks.size(); ++r) ranks[r] = r;
    return ranks;
  }

  void fold_ranks(Choice& choice) const {
    const Symmetry symmetry = find_symmetry(program_, steps_);
    choice.bands.clear();
    std::vector<uint32_t> firsts;
    for (const auto& ranks : symmetry.classes) firsts.push_back(ranks.front());
    firsts.resize(std::min(firsts.size(), kMaxClasses));
    choice.bands = bands(firsts, kMaxFoldedColumns);
    while (choice.bands.size() > 1 && columns(choice.bands) > kMaxFoldedColumns) {
      choice.bands.pop_back();
    }
    for (size_t i = 0; i < choice.bands.size(); ++i) {
      choice.bands[i].stands_for = symmetry.classes[i];
    }
    if (symmetry.classes.size() == 1) choice.names = symmetry.names;
  }

  std::vector<ChosenRank> bands(const std::vector<uint32_t>& ranks, size_t most) const {
    for (const bool same_peers : {true, false}) {
      std::vector<ChosenRank> chosen;
      for (const uint32_t rank : ranks) chosen.push_back({rank, fold(rank, same_peers), {}});
      if (!same_peers || columns(chosen) <= most) return chosen;
    }
    return {};
  }

  static size_t columns(const std::vector<ChosenRank>& bands) {
    size_t count = 0;
    for (const ChosenRank& band : bands) count += std::max<size_t>(band.columns.size(), 1);
    return count;
  }

  std::vector<Folded> fold(uint32_t rank, bool same_peers) const {
    PeerNames absolute;
    std::map<uint64_t, size_t> known;
    std::vector<Folded> out;
    for (uint32_t b = steps_.first_block[rank]; b < steps_.first_block[rank + 1]; ++b) {
      const Block& block = steps_.blocks[b];
      if (!is_picked(block)) continue;
      const uint64_t shape = shape_of(program_, steps_, block, same_peers ? &absolute : nullptr);
      const auto [at, is_new] = known.try_emplace(shape, out.size());
      if (is_new) out.emplace_back();
      Folded& column = out[at->second];
      column.blocks.push_back(b);
      column.other_peers = !same_peers && column.blocks.size() > 1 &&
                           (column.other_peers || peers_differ(column.blocks[0], b));
    }
    return out;
  }

  bool peers_differ(uint32_t a, uint32_t b) const {
    PeerNames absolute;
    return shape_of(program_, steps_, steps_.blocks[a], &absolute) !=
           shape_of(program_, steps_, steps_.blocks[b], &absolute);
  }

  bool is_picked(const Block& block) const {
    if (options_.blocks.empty()) return true;
    return block.place < kGroupPlace &&
           std::ranges::count(options_.blocks, static_cast<uint32_t>(block.place)) > 0;
  }

  const Program& program_;
  const Steps& steps_;
  const DrawOptions& options_;
};

}  // namespace

Result<Choice> choose(const Program& program, const Steps& steps, const DrawOptions& options) {
  return Chooser(program, steps, options).run();
}

std::string traffic(const Program& program, const PeerNames& names, uint32_t rank) {
  std::vector<uint32_t> written, read;
  std::vector<Access> accesses;
  for (const Op& op : program.ranks[rank].ops) {
    accesses.clear();
    append_accesses(program, rank, op, accesses);
    for (const Access& a : accesses) {
      if (a.rank != rank) (a.write ? written : read).push_back(a.rank);
    }
  }
  std::string text;
  if (!written.empty()) text += "writes to " + names.several(rank, written);
  if (!read.empty()) {
    text += (text.empty() ? "" : " and ") + ("reads from " + names.several(rank, read));
  }
  return text.empty() ? "" : "rank r " + text;
}

}  // namespace mscclc::draw
