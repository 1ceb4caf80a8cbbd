#include "passes/prove/run/sum_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "ir/ops/trees.h"
#include "ir/support/fnv.h"

namespace mscclc {
namespace {

constexpr size_t kMaxText = 160, kMaxLines = 3;
constexpr const char* kUnknown = "...";  ///< in expressions: what was not made by one
constexpr const char* kWhyUnknown =
    "a switch adds in an order of its own, or parts of a chunk differ";

std::string hash_of(std::string_view text) {
  Fnv hash;
  hash.add(text);
  return hash.hex();
}

std::string tree_text(uint32_t first, uint32_t ranks) {
  if (ranks == 1) return fmt::format("x{}", first);
  const uint32_t cut = first_of_tree(ranks);
  const std::string right = tree_text(first + cut, ranks - cut);
  return tree_text(first, cut) + " + " + (ranks - cut == 1 ? right : "(" + right + ")");
}

std::string joined(uint32_t ranks, const char* separator) {
  std::string text = "x0";
  for (uint32_t r = 1; r < ranks; ++r) text += fmt::format("{}x{}", separator, r);
  return text;
}

}  // namespace

std::string SumExpressions::name() const {
  if (digest.empty()) return "";
  return all.size() == 1 ? all[0].text + owner
                         : fmt::format("{} expressions #{}", all.size(), digest);
}

std::string SumExpressions::text(const std::string& indent) const {
  if (all.empty()) return "";
  std::string text = all.size() > 1 ? shares(indent) : indent + all[0].text + owner + "\n";
  if (digest.empty()) return text + indent + "not comparable: " + kWhyUnknown + "\n";
  if (all.size() > 1) text += indent + "which where: #" + digest.substr(0, 8) + "\n";
  return text;
}

/// Which expression makes how much of the output.
std::string SumExpressions::shares(const std::string& indent) const {
  uint64_t chunks = 0;
  for (const SumExpression& e : all) chunks += e.chunks;
  std::string text;
  for (size_t i = 0; i < std::min(all.size(), kMaxLines); ++i) {
    const uint64_t common = std::gcd(all[i].chunks, chunks);
    text += fmt::format("{}{}, for {}/{} of the output\n", indent, all[i].text,
                        all[i].chunks / common, chunks / common);
  }
  if (all.size() > kMaxLines) {
    text += fmt::format("{}and {} more\n", indent, all.size() - kMaxLines);
  }
  return text;
}

namespace proof {

std::string cut_off(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  return text.substr(0, text.rfind(' ', kMaxText)) + " ... #" + hash_of(text);
}

std::string known_sum(const Contract& contract, const Proof& proof) {
  const bool of_all =
      contract.info().source == Source::everyone && contract.then == Contract::kNoFunction;
  if (!of_all || proof.rounding != Rounding::once) return "";
  if (proof.orders.ranks) return joined(contract.ranks, " + ");
  if (proof.orders.tree) return tree_text(0, contract.ranks);
  return proof.orders.exact ? "exact(" + joined(contract.ranks, ", ") + ")" : "";
}

/// The rank that an expression may be seen from: the one that gets the chunk, or of an AllReduce
/// the one whose share of the message it is, as plans in two steps have it.
uint32_t SumForms::owner(const ChunkName& name) const {
  if (contract_.kind == CollectiveKind::reducescatter) return name.rank;
  const uint32_t chunks = contract_.chunk_count(Side::output, name.rank);
  const bool shares = contract_.kind == CollectiveKind::allreduce && chunks % contract_.ranks == 0;
  return shares ? name.chunk / (chunks / contract_.ranks) : kNone;
}

uint32_t SumForms::number(const std::string& text) {
  const auto [entry, added] = numbers_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
  if (added) texts_.push_back(text);
  return entry->second;
}

uint32_t SumForms::form(const ValueTrace& trace, const Symbol& found, uint32_t owner) {
  const auto known = known_.find({found.order, owner});
  if (known != known_.end()) return known->second;
  const uint32_t form = number(trace.canonical(found, owner, contract_.ranks));
  return known_.emplace(std::pair(found.order, owner), form).first->second;
}

void SumForms::add(const System& system, const ChunkContents& contents, const ChunkName& name,
                   const Symbol& found) {
  const Symmetry& symmetry = system.symmetry();
  for (uint32_t k = 0; k < symmetry.turns(); ++k) {
    const ChunkName at{system.turned_rank(name.rank, k), name.buffer,
                       symmetry.chunk(name.buffer, name.chunk, k)};
    const Symbol sum = contents.symbols().turned(found.plain(), k);
    const uint32_t first = owner(at);
    const FormPair found_here{form(*contents.trace(), sum, kNone),
                              first == kNone ? kNone : form(*contents.trace(), sum, first)};
    const auto [place, added] = sums_.try_emplace({at.rank, at.chunk}, found_here);
    if (!added && place->second.form != found_here.form) place->second.form = number(kUnknown);
  }
}

void SumForms::add_all(const std::string& text) {
  const FormPair place{number(text), number(text)};
  for (uint32_t rank = 0; rank < contract_.ranks; ++rank) {
    const uint32_t chunks = contract_.chunk_count(Side::output, rank);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) sums_.try_emplace({rank, chunk}, place);
  }
}

/// Where which expression is: runs of equal ones, by the parts of the output that they begin at.
std::string SumForms::places() const {
  std::string text;
  for (auto at = sums_.begin(), last = sums_.end(); at != sums_.end(); last = at++) {
    const auto& [place, sum] = *at;
    if (last != sums_.end() && last->first.first == place.first &&
        last->first.second + 1 == place.second && last->second.form == sum.form)
      continue;
    const double begin =
        static_cast<double>(place.second) / contract_.chunk_count(Side::output, place.first);
    text += fmt::format("{} {}: {}\n", place.first, begin, texts_[sum.form]);
  }
  return text;
}

SumExpressions SumForms::expressions() const {
  SumExpressions found;
  if (sums_.empty()) return found;
  const bool in_pieces = std::ranges::any_of(
      texts_, [](const std::string& text) { return text.find(kUnknown) != std::string::npos; });
  const FormPair& first = sums_.begin()->second;
  const auto alike = [&](auto part) {
    return std::ranges::all_of(sums_, [&](const auto& s) { return s.second.*part == first.*part; });
  };
  const bool by_owner =
      !alike(&FormPair::form) && first.own != kNone && alike(&FormPair::own) && !in_pieces;
  std::map<uint32_t, size_t> positions;
  for (const auto& [place, sum] : sums_) {
    const uint32_t form = by_owner ? sum.own : sum.form;
    const auto [entry, added] = positions.try_emplace(form, found.all.size());
    if (added) found.all.push_back({cut_off(texts_[form])});
    ++found.all[entry->second].chunks;
  }
  if (by_owner) {
    found.owner = contract_.kind == CollectiveKind::reducescatter
                      ? ", o: the rank that gets it"
                      : fmt::format(", o: which of {} shares of the message", contract_.ranks);
  }
  if (!in_pieces) found.digest = hash_of(places());
  return found;
}

}  // namespace proof
}  // namespace mscclc
