#include "runtime/core/collectives/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/printable.h"
#include "runtime/core/collectives/overlap.h"

namespace mscclc {
namespace {

/// Whole buffers stay below it, so that offsets into them may be added up.
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

/// Whether no other rank has part in it.
bool stays_here(const CollectiveCall& call, uint32_t ranks) {
  return ranks == 1 || (call.kind == CollectiveKind::sendrecv && call.shift % ranks == 0);
}

class Checker {
 public:
  Checker(const CollectiveCall& call, uint32_t rank, uint32_t ranks, BuffersOf buffers,
          Diagnostics& diagnostics)
      : call_(call), rank_(rank), ranks_(ranks), buffers_(buffers), diagnostics_(diagnostics) {}

  bool run() {
    return check_words() && check_ranks() &&
           (call_.kind == CollectiveKind::alltoallv ? check_rows() : check_count()) &&
           check_overlap();
  }

 private:
  bool refuse(const std::string& text) {
    diagnostics_.error("bad-call", {}, text);
    return false;
  }

  // Enums may come from other languages, as numbers.
  bool check_words() {
    if (call_.kind == CollectiveKind::none || call_.kind == CollectiveKind::custom ||
        call_.kind > CollectiveKind::custom) {
      return refuse("the collective cannot be called by name");
    }
    if (static_cast<size_t>(call_.dtype) >= dtype_table().size() ||
        (call_.accumulate && static_cast<size_t>(*call_.accumulate) >= dtype_table().size())) {
      return refuse(fmt::format("{}: there is no such data type", name(call_.kind)));
    }
    if (call_.order && *call_.order > SumOrder::exact) {
      return refuse(fmt::format("{}: there is no such order", name(call_.kind)));
    }
    if (call_.bytes != 0 || call_.row_pitch != 0 || call_.previous_allows_early ||
        call_.any_order) {
      return refuse(
          fmt::format("{}: bytes, row_pitch, previous_allows_early and any_order are for "
                      "calls of a plan; a call by name has a count",
                      name(call_.kind)));
    }
    if (!call_.externals.empty() || !call_.flags.empty() || call_.budget != 0 ||
        call_.launch_order != LaunchOrder::other_first) {
      return refuse(
          fmt::format("{}: externals and flags are for calls of a plan that declares them; so are "
                      "budget and launch_order",
                      name(call_.kind)));
    }
    const bool reduces = info(call_.kind).adds_up();
    if (reduces && (call_.op == ReduceOp::call || call_.op > ReduceOp::avg)) {
      return refuse(fmt::format("{}: there is no such reduction", name(call_.kind)));
    }
    return true;
  }

  bool check_ranks() {
    if (!has_root(call_.kind) || call_.root < ranks_) return true;
    return refuse(
        fmt::format("{}: the root is rank {} of {}", name(call_.kind), call_.root, ranks_));
  }

  bool check_size(uint64_t elements, uint64_t times) {
    if (elements <= kMaxBytes / info(call_.dtype).bytes / times) return true;
    return refuse(fmt::format("{}: {} elements of '{}' a rank are too many", name(call_.kind),
                              elements, info(call_.dtype).name));
  }

  bool check_count() {
    if (call_.kind == CollectiveKind::barrier || call_.count == 0) return true;
    return check_size(call_.count, ranks_) && check_buffer(Side::input, call_.input) &&
           check_buffer(Side::output, call_.output);
  }

  bool check_buffer(Side side, const void* at) {
    const bool here = !info(call_.kind).side(side).only_at_root || rank_ == call_.root;
    if (at != nullptr || !here || buffers_ == BuffersOf::question) return true;
    return refuse(fmt::format("{}: rank {} needs an {}, but gives nullptr", name(call_.kind), rank_,
                              side == Side::input ? "input" : "output"));
  }

  bool check_rows() {
    if (call_.counts.size() != uint64_t{ranks_} * ranks_) {
      return refuse(fmt::format("alltoallv: {} counts are given; {} ranks need {}",
                                call_.counts.size(), ranks_, uint64_t{ranks_} * ranks_));
    }
    for (const auto& offsets : {call_.input_offsets, call_.output_offsets}) {
      if (!offsets.empty() && offsets.size() != ranks_) {
        return refuse(fmt::format("alltoallv: {} offsets are given; {} ranks need {}",
                                  offsets.size(), ranks_, ranks_));
      }
      for (const uint64_t offset : offsets) {
        if (!check_size(offset, 2)) return false;
      }
    }
    bool sends = false, receives = false;
    for (uint32_t s = 0; s < ranks_; ++s) {
      for (uint32_t d = 0; d < ranks_; ++d) {
        const uint64_t count = call_.counts[s * ranks_ + d];
        if (!check_size(count, ranks_)) return false;
        sends |= count > 0 && s == rank_;
        receives |= count > 0 && d == rank_;
      }
    }
    return (!sends || check_buffer(Side::input, call_.input)) &&
           (!receives || check_buffer(Side::output, call_.output));
  }

  bool check_overlap() {
    const bool known = call_.input != nullptr && call_.output != nullptr;
    if (!known || !overlap(call_, rank_, ranks_)) return true;
    diagnostics_.error("overlap", {},
                       "input and output overlap, but not as they do in place for this collective");
    return false;
  }

  const CollectiveCall& call_;
  const uint32_t rank_, ranks_;
  const BuffersOf buffers_;
  Diagnostics& diagnostics_;
};

/// "allreduce" with its article.
std::string with_article(std::string_view kind) {
  return fmt::format("{} {}", kind.starts_with('a') ? "an" : "a", kind);
}

uint64_t longest_row(const CollectiveCall& call) {
  return *std::max_element(call.counts.begin(), call.counts.end());
}

// What a call's own memory stands in for is apart, as are buffers that a question does not give,
// and a barrier's word is both.
CallPlace place_of(const CollectiveCall& call, uint32_t rank) {
  if (call.kind == CollectiveKind::barrier) return CallPlace::in_place;
  const CollectiveInfo& kind = info(call.kind);
  if (!kind.can_alias) return CallPlace::apart;
  if (kind.has_root()) return CallPlace::either;
  if (call.input == nullptr || call.output == nullptr) return CallPlace::apart;
  return coincide(call, rank) ? CallPlace::in_place : CallPlace::apart;
}

}  // namespace

LocalCopy local_copy(const CollectiveCall& call) {
  const uint64_t width = info(call.dtype).bytes;
  LocalCopy copy{static_cast<const uint8_t*>(call.input), static_cast<uint8_t*>(call.output),
                 call.count * width};
  if (call.kind == CollectiveKind::barrier) return {};
  if (call.kind != CollectiveKind::alltoallv) return copy;
  copy.bytes = call.counts[0] * width;
  if (!call.input_offsets.empty()) copy.from += call.input_offsets[0] * width;
  if (!call.output_offsets.empty()) copy.to += call.output_offsets[0] * width;
  return copy;
}

bool check_arguments(const CollectiveCall& call, uint32_t rank, uint32_t ranks, BuffersOf buffers,
                     Diagnostics& diagnostics) {
  return Checker(call, rank, ranks, buffers, diagnostics).run();
}

std::optional<PlannedCall> planned_call(const CollectiveCall& call, uint32_t rank, uint32_t ranks) {
  if (stays_here(call, ranks)) return std::nullopt;
  PlannedCall planned{call, place_of(call, rank)};
  if (call.kind != CollectiveKind::alltoallv) planned.counts = {};  // ignored, so never compared
  if (call.kind == CollectiveKind::alltoallv) {
    planned.kind = CollectiveKind::alltoall;
    planned.count = longest_row(call);
    planned.registered = false;
  } else if (call.kind == CollectiveKind::barrier) {
    planned = {{.kind = CollectiveKind::allreduce,
                .count = 1,
                .dtype = Dtype::i32,
                .op = ReduceOp::max,
                .tag = call.tag},
               planned.place};
  }
  if (planned.count == 0) return std::nullopt;
  return planned;
}

std::string text_of(const CollectiveCall& call, uint32_t rank, bool capturing) {
  std::string text = with_article(name(call.kind));
  if (call.kind != CollectiveKind::barrier) {
    const bool rows = call.kind == CollectiveKind::alltoallv;
    const uint64_t count = rows ? longest_row(call) : call.count;
    text += fmt::format(" of {}{} element{} of '{}'", rows ? "at most " : "", count,
                        count == 1 ? "" : "s", info(call.dtype).name);
  }
  if (info(call.kind).adds_up()) {
    text += fmt::format(", {}", name(call.op));
    if (call.accumulate) text += fmt::format(" in '{}'", info(*call.accumulate).name);
    if (call.order) text += fmt::format(", order {}", name(*call.order));
  }
  if (has_root(call.kind)) text += fmt::format(", root {}", call.root);
  if (call.kind == CollectiveKind::sendrecv) text += fmt::format(", shift {}", call.shift);
  if (call.registered) text += ", registered";
  const bool placed = call.kind != CollectiveKind::barrier;
  if (placed && place_of(call, rank) == CallPlace::in_place) text += ", in place";
  if (call.most_blocks != 0) text += fmt::format(", at most {} blocks", call.most_blocks);
  if (!call.tag.empty()) text += fmt::format(", tag {}", quoted(call.tag));
  if (capturing) text += ", captured";
  return text;
}

uint64_t message_bytes(const CollectiveCall& call, uint32_t ranks) {
  return call.count * info(call.dtype).bytes * (has_rows(call.kind) ? ranks : 1);
}

}  // namespace mscclc
