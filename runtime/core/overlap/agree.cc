#include "runtime/core/overlap/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mscclc::overlap {
namespace {

/// What a rank says. (What this one lacks, its own diagnostics say.)
struct Wish {
  std::string why_not;
  NamedValues values;
};

std::vector<uint8_t> encode(const NamedValues& values, const std::string& why_not) {
  std::vector<uint8_t> bytes;
  const auto add = [&](const std::string& text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.push_back(0);
  };
  add(why_not);
  for (const auto& [name, value] : values) add(name), add(value);
  return bytes;
}

/// nullopt: it is no such message.
std::optional<Wish> decode(const std::vector<uint8_t>& bytes) {
  std::vector<std::string> texts;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto end = std::find(at, bytes.end(), 0);
    if (end == bytes.end()) return std::nullopt;
    texts.emplace_back(at, end);
    at = end + 1;
  }
  if (texts.size() % 2 == 0) return std::nullopt;
  Wish wish{.why_not = texts[0], .values = {}};
  for (size_t i = 1; i < texts.size(); i += 2) wish.values.emplace_back(texts[i], texts[i + 1]);
  return wish;
}

constexpr const char* kRemedy =
    "ranks must have the same overlap.json in the folders of MSCCLC_PLAN_PATH, the same libraries, "
    "and the same CUDA_DEVICE_MAX_CONNECTIONS";

/// "'m' is 128 at rank 0 and 256 at rank 1"; "": the same. A rank that has not found a value says
/// "", and why not.
std::string difference(const NamedValues& first, const NamedValues& other, size_t rank) {
  if (first.size() != other.size()) return fmt::format("rank {} is of another version", rank);
  for (size_t i = 0; i < first.size(); ++i) {
    const bool known = !first[i].second.empty() && !other[i].second.empty();
    if (first[i] == other[i] || (first[i].first == other[i].first && !known)) continue;
    return fmt::format("'{}' is {} at rank 0 and {} at rank {}", first[i].first, first[i].second,
                       other[i].second, rank);
  }
  return "";
}

}  // namespace

bool agree(Bootstrap& bootstrap, const NamedValues& own, const Diagnostics& problems,
           Diagnostics& diagnostics) {
  std::string why_not;
  for (const Diagnostic& d : problems.all()) {
    diagnostics.add(d);
    if (d.severity == Severity::error && why_not.empty()) why_not = d.message;
  }
  std::vector<std::vector<uint8_t>> messages;
  if (!bootstrap.all_gather(encode(own, why_not), "make a GEMM that overlaps", messages,
                            diagnostics)) {
    return false;
  }
  std::vector<Wish> wishes;
  for (const auto& message : messages) {
    auto wish = decode(message);
    if (!wish) {
      diagnostics.error("bad-message", {}, "a rank does not say which GEMM it wants");
      return false;
    }
    wishes.push_back(*std::move(wish));
  }
  for (size_t r = 1; r < wishes.size(); ++r) {
    const std::string text = difference(wishes[0].values, wishes[r].values, r);
    if (text.empty()) continue;
    auto& error = diagnostics.error("options-differ", {}, "ranks make different GEMMs: " + text);
    if (text.find(kTaken) != text.npos) error.notes.push_back({kRemedy});
    return false;
  }
  if (!why_not.empty()) return false;
  for (size_t r = 0; r < wishes.size(); ++r) {
    if (wishes[r].why_not.empty()) continue;
    diagnostics.error("peer-failed", {},
                      fmt::format("rank {} cannot do its part: {}", r, wishes[r].why_not));
    return false;
  }
  return true;
}

}  // namespace mscclc::overlap
