// The contract: its numbers, its promises.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

/// The checks of a contract's numbers; each reports at the option's place.
class ContractCheck {
 public:
  ContractCheck(BuilderState& state, const CollectiveSpec& spec) : s_(state), spec_(spec) {}

  bool run() {
    if (spec_.ranks < 1 || spec_.ranks > kMaxRanks) {
      return fault(spec_.marks.ranks,
                   fmt::format("'ranks' is {}; a collective has 1 to {}", spec_.ranks, kMaxRanks));
    }
    bool good = dims(spec_.chunks, "chunks", 1, spec_.marks.chunks);
    if (spec_.root < 0 || spec_.root >= spec_.ranks) {
      good = fault(spec_.marks.root, fmt::format("root {} is not a rank", spec_.root));
      s_.note(*last_, spec_.marks.ranks, fmt::format("there are {}", counted(spec_.ranks, "rank")));
    }
    if (spec_.kind == CollectiveKind::alltoallv) good = counts() && good;
    if (spec_.kind == CollectiveKind::custom) {
      good = dims(spec_.input, "input", 0, spec_.marks.input) && good;
      good = dims(spec_.output, "output", 0, spec_.marks.output) && good;
    }
    return good;
  }

 private:
  bool fault(Mark mark, std::string message) {
    last_ = &s_.fail("contract", mark, std::move(message));
    return false;
  }

  bool dims(const std::vector<int64_t>& dims, std::string_view what, int64_t least, Mark mark) {
    if (dims.empty() || dims.size() > 2) {
      return fault(mark, fmt::format("'{}' is a number or a list of two", what));
    }
    int64_t product = spec_.kind == CollectiveKind::custom ? 1 : spec_.ranks;
    for (const int64_t n : dims) {
      if (n < least || n > kMaxChunks) {
        return fault(mark,
                     fmt::format("'{}' is {}; expected {} to {}", what, n, least, kMaxChunks));
      }
      product *= std::max<int64_t>(n, 1);
      if (product > kMaxChunks) {
        return fault(mark, fmt::format("a buffer of more than {} chunks", kMaxChunks));
      }
    }
    return true;
  }

  bool counts() {
    const int64_t expected = spec_.ranks * spec_.ranks;
    if (spec_.counts.count != expected) {
      return fault(spec_.marks.counts, fmt::format("'counts' has {}; {} ranks need {} * {}",
                                                   counted(spec_.counts.count, "number"),
                                                   spec_.ranks, spec_.ranks, spec_.ranks));
    }
    const int64_t unit =
        std::accumulate(spec_.chunks.begin(), spec_.chunks.end(), int64_t{1}, std::multiplies<>());
    int64_t total = 0;
    for (int64_t i = 0; i < expected; ++i) {
      const int64_t n = spec_.counts[i];
      if (n < 0) return fault(spec_.marks.counts, fmt::format("'counts' holds {}", n));
      if (n > kMaxChunks / unit || (total += n * unit) > kMaxChunks) {
        return fault(spec_.marks.counts, fmt::format("more than {} chunks in all", kMaxChunks));
      }
    }
    return true;
  }

  BuilderState& s_;
  const CollectiveSpec& spec_;
  Diagnostic* last_ = nullptr;
};

std::vector<uint32_t> narrowed(const std::vector<int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

}  // namespace

bool Builder::collective(const CollectiveSpec& spec) {
  BuilderState& s = *state_;
  if (!ContractCheck(s, spec).run()) return false;
  Contract& c = s.program.contract;
  c.kind = spec.kind;
  c.ranks = static_cast<uint32_t>(spec.ranks);
  c.chunks = narrowed(spec.chunks);
  c.root = static_cast<uint32_t>(spec.root);
  c.shift = spec.shift;
  c.in_place = spec.in_place;
  c.even_only = spec.even_only;
  c.order = spec.order;
  if (spec.kind == CollectiveKind::alltoallv) {
    c.counts.resize(static_cast<size_t>(spec.counts.count));
    for (size_t i = 0; i < c.counts.size(); ++i) c.counts[i] = spec.counts[static_cast<int64_t>(i)];
  }
  if (spec.kind == CollectiveKind::custom) {
    c.input = narrowed(spec.input);
    c.output = narrowed(spec.output);
  }
  if (c.in_place == InPlace::yes && !c.can_alias()) {
    s.fail("contract", spec.marks.kind,
           fmt::format("'{}' never runs in place", mscclc::name(c.kind)));
    return false;
  }
  s.has_contract = true;
  s.flat = spec.flat;
  s.kind_mark = spec.marks.kind;
  s.prepare_classes();
  s.program.ranks.resize(c.ranks);
  s.ranks.resize(c.ranks);
  return true;
}

bool Builder::ensure(Promise promise, Mark mark) {
  BuilderState& s = *state_;
  const Contract& c = s.program.contract;
  const auto check = [&](const Place& p, Side side) {
    const std::string_view what = side == Side::input ? "input" : "output";
    if (p.rank >= c.ranks) {
      s.fail("contract", mark, fmt::format("rank {} is not a rank", p.rank));
      return false;
    }
    if (p.chunk >= c.shape(side, p.rank).chunks()) {
      s.fail("contract", mark, fmt::format("'{}' has no chunk {}", what, p.chunk));
      return false;
    }
    return true;
  };
  if (!check(promise.output, Side::output)) return false;
  for (const Place& p : promise.inputs) {
    if (!check(p, Side::input)) return false;
    if (p.chunk != promise.output.chunk && !c.even_only) {
      s.note_even(
          s.fail("size-class", mark,
                 fmt::format("input[{}] and output[{}] differ in size when the message does "
                             "not divide",
                             p.chunk, promise.output.chunk)));
      return false;
    }
  }
  s.program.contract.promises.push_back(std::move(promise));
  s.promise_marks.push_back(mark);
  return true;
}

}  // namespace mscclc
