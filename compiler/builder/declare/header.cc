#include "compiler/builder/declare/header.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/builder/draft/texts.h"
#include "ir/program/applied.h"
#include "ir/program/flag_regions.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

/// The checks of a contract's numbers; each reports at the option's place.
class ContractCheck {
 public:
  ContractCheck(BuildReports& reports, const CollectiveSpec& spec)
      : reports_(reports), spec_(spec) {}

  bool run() {
    if (spec_.ranks < 1 || spec_.ranks > kMaxRanks) {
      return fault(spec_.marks.ranks,
                   fmt::format("'ranks' is {}; a collective has 1 to {}", spec_.ranks, kMaxRanks));
    }
    bool good = dims(spec_.chunks, "chunks", 1, spec_.marks.chunks);
    if (spec_.root < 0 || spec_.root >= spec_.ranks) {
      good = fault(spec_.marks.root, fmt::format("root {} is not a rank", spec_.root));
      reports_.note(*last_, spec_.marks.ranks,
                    fmt::format("there are {}", counted(spec_.ranks, "rank")));
    }
    if (spec_.kind == CollectiveKind::alltoallv) good = counts() && good;
    const bool rows = spec_.columns != 0 || spec_.then != Contract::kNoFunction;
    if (rows && (spec_.columns < 1 || spec_.columns > rows::kMaxColumns)) {
      return fault(spec_.marks.columns, fmt::format("'columns' is {}; a row has 1 to {}",
                                                    spec_.columns, rows::kMaxColumns));
    }
    if (rows && !spec_.any_columns) {
      const auto why = width_fault(static_cast<uint32_t>(spec_.columns));
      if (why) return fault(spec_.marks.columns, *why);
    }
    if (spec_.kind == CollectiveKind::custom) {
      good = dims(spec_.input, "input", 0, spec_.marks.input) && good;
      good = dims(spec_.output, "output", 0, spec_.marks.output) && good;
    }
    return good;
  }

 private:
  bool fault(Mark mark, std::string message) {
    last_ = &reports_.fail("contract", mark, std::move(message));
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

  BuildReports& reports_;
  const CollectiveSpec& spec_;
  Diagnostic* last_ = nullptr;
};

std::vector<uint32_t> narrowed(const std::vector<int64_t>& dims) {
  return {dims.begin(), dims.end()};
}

}  // namespace

bool Header::collective(const CollectiveSpec& spec) {
  if (!ContractCheck(reports_, spec).run()) return false;
  Contract& c = draft_.program.contract;
  c.kind = spec.kind;
  c.ranks = static_cast<uint32_t>(spec.ranks);
  c.chunks = narrowed(spec.chunks);
  c.root = static_cast<uint32_t>(spec.root);
  c.shift = spec.shift;
  c.in_place = spec.in_place;
  c.even_only = spec.even_only;
  c.order = spec.order;
  c.columns = static_cast<uint32_t>(spec.columns);
  c.any_columns = spec.any_columns;
  c.then = spec.then;
  if (spec.kind == CollectiveKind::alltoallv) {
    c.counts.resize(static_cast<size_t>(spec.counts.count));
    for (size_t i = 0; i < c.counts.size(); ++i) c.counts[i] = spec.counts[static_cast<int64_t>(i)];
  }
  if (spec.kind == CollectiveKind::custom) {
    c.input = narrowed(spec.input);
    c.output = narrowed(spec.output);
  }
  if (c.in_place == InPlace::yes && !c.can_alias()) {
    reports_.fail("contract", spec.marks.kind,
                  fmt::format("'{}' never runs in place", mscclc::name(c.kind)));
    return false;
  }
  has_contract_ = true;
  draft_.flat = spec.flat;
  draft_.kind_mark = spec.marks.kind;
  draft_.program.ranks.resize(c.ranks);
  return true;
}

bool Header::ensure(Promise promise, Mark mark) {
  const Contract& c = draft_.program.contract;
  const auto check = [&](const CallerChunk& p, Side side) {
    const std::string_view what = side == Side::input ? "input" : "output";
    if (p.rank >= c.ranks) {
      reports_.fail("contract", mark, fmt::format("rank {} is not a rank", p.rank));
      return false;
    }
    if (p.chunk >= c.shape(side, p.rank).chunks()) {
      reports_.fail("contract", mark, fmt::format("'{}' has no chunk {}", what, p.chunk));
      return false;
    }
    return true;
  };
  if (!check(promise.output, Side::output)) return false;
  for (const CallerChunk& p : promise.inputs) {
    if (!check(p, Side::input)) return false;
    if (p.chunk != promise.output.chunk && !c.even_only) {
      note_even(
          reports_.fail("size-class", mark,
                        fmt::format("input[{}] and output[{}] differ in size when the message does "
                                    "not divide",
                                    p.chunk, promise.output.chunk)));
      return false;
    }
  }
  draft_.program.contract.promises.push_back(std::move(promise));
  promise_marks_.push_back(mark);
  return true;
}

bool Header::launch(const Launch& launch, const LaunchMarks& marks) {
  bool good = true;
  if (!is_block_size(launch.threads)) {
    reports_.fail("launch", marks.threads,
                  fmt::format("'threads' is {}; a thread block has {} to {}, in whole warps",
                              launch.threads, kWarpThreads, kMaxBlockThreads));
    good = false;
  }
  if (launch.instances < 1 || launch.instances > 1024) {
    reports_.fail("launch", marks.instances,
                  fmt::format("'instances' is {}; expected 1 to 1024", launch.instances));
    good = false;
  }
  if (!is_alignment(launch.align)) {
    reports_.fail(
        "launch", marks.align,
        fmt::format("'align' is {}; expected a multiple of 16 up to 1 MiB", launch.align));
    good = false;
  }
  if (good) draft_.program.launch = launch;
  return good;
}

bool Header::rows(Mark mark) {
  settle_output(draft_.program);
  const auto fault = rows_fault(draft_.program);
  if (fault) reports_.fail(fault->code, mark, fault->message);
  return !fault;
}

bool Header::flags(std::span<const Mark> marks) {
  const auto fault = flags_fault(draft_.program);
  if (!fault) return true;
  const bool marked = fault->array < marks.size();
  reports_.fail("flags", marked ? marks[fault->array] : Mark{}, fault->text);
  return false;
}

void Header::note_even(Diagnostic& d) {
  reports_.note(
      d, draft_.kind_mark,
      "with 'even: true' in this line the program takes only messages that divide, and chunks need "
      "not be equally long; without it, pair chunks at the same position of their rows");
}

}  // namespace mscclc
