#include "runtime/core/overlap/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace mscclc::overlap {
namespace {

constexpr size_t kMostRanges = 4 + 5 * kMaxWeights;  // of a call

/// One run's arguments.
class RunCheck {
 public:
  RunCheck(const OverlapConfig& config, Diagnostics& diagnostics)
      : config_(config), diagnostics_(diagnostics) {}

  bool run(const OverlapCall& call, const RunNeeds& needs) {
    return pointer({"a"}, call.a) && counts(call) && pointers(call) && scales(call) &&
           gathered(call, needs.gives_gathered) && workspace(call, needs.workspace_bytes) &&
           apart(call, needs);
  }

 private:
  bool refuse(const std::string& why) { return refuse_overlap(config_, why, diagnostics_); }
  /// An argument, or an entry of one; text of it is made only where something is wrong.
  struct Named {
    const char* argument;
    std::optional<size_t> entry = {};
    std::string text() const {
      return entry ? fmt::format("{}[{}]", argument, *entry) : std::string(argument);
    }
  };
  bool aligned(const Named& what, const void* at, uint64_t alignment = kAlignment) {
    if (reinterpret_cast<uintptr_t>(at) % alignment == 0) return true;
    return refuse(fmt::format("'{}' must lie at a multiple of {} bytes; it is at {}", what.text(),
                              alignment, at));
  }
  bool pointer(const Named& what, const void* at) {
    if (at == nullptr) return refuse(fmt::format("'{}' is missing", what.text()));
    return aligned(what, at);
  }
  bool count(const char* what, size_t required, size_t given) {
    if (required == given) return true;
    return refuse(fmt::format("'{}' must have {} entries; it has {}", what, required, given));
  }
  bool counts(const OverlapCall& call) {
    const size_t weights = config_.n.size();
    return count("b", weights, call.b.size()) && count("out", weights, call.out.size()) &&
           count("bias", config_.bias ? weights : 0, call.bias.size()) &&
           (call.pre_activation.empty() ||
            count("pre_activation", activates() ? weights : 0, call.pre_activation.size())) &&
           (call.b_scale.empty() || count("b_scale", weights, call.b_scale.size()));
  }
  bool pointers(const OverlapCall& call) {
    for (size_t w = 0; w < config_.n.size(); ++w) {
      if (!pointer({"b", w}, call.b[w]) || !pointer({"out", w}, call.out[w]) ||
          (config_.bias && !pointer({"bias", w}, call.bias[w])) ||
          (!call.pre_activation.empty() &&
           !pointer({"pre_activation", w}, call.pre_activation[w]))) {
        return false;
      }
    }
    return true;
  }
  bool activates() const { return config_.activation != Activation::none; }
  bool scales(const OverlapCall& call) {
    const bool given = call.a_scale != nullptr || !call.b_scale.empty();
    if (given && mscclc::info(config_.a_dtype).bytes != 1) {
      return refuse(fmt::format("scales are for types of 8 bits; A is {}",
                                mscclc::info(config_.a_dtype).name));
    }
    if (!aligned({"a_scale"}, call.a_scale, alignof(float))) return false;
    for (size_t w = 0; w < call.b_scale.size(); ++w) {
      if (!aligned({"b_scale", w}, call.b_scale[w], alignof(float))) return false;
    }
    return true;
  }
  bool gathered(const OverlapCall& call, bool given) {
    if (call.gathered == nullptr) return true;
    if (info(config_.kind).sums) return refuse("'gathered' must be NULL: nothing is gathered");
    if (!given) return refuse("'gathered' must be NULL: the backend keeps what it gathers");
    return aligned({"gathered"}, call.gathered);
  }
  bool workspace(const OverlapCall& call, uint64_t bytes) {
    if (config_.own_workspace && call.workspace != nullptr) {
      return refuse(
          "'workspace' must be NULL: the object has its own, as it was made without "
          "'caller_workspace'");
    }
    if (bytes == 0) return true;
    if (call.workspace_bytes < bytes || call.workspace == nullptr) {
      return refuse(fmt::format("the workspace must have {} bytes; {}", bytes,
                                call.workspace == nullptr
                                    ? "there is none"
                                    : fmt::format("it has {}", call.workspace_bytes)));
    }
    return aligned({"workspace"}, call.workspace);
  }

  /// Memory that a run reads, or writes. Most of an array of them is never touched.
  struct Range {
    const char* argument;
    int entry;  ///< -1: it has none
    bool written;
    uintptr_t begin, end;
    std::string text() const {
      if (entry < 0) return argument;
      return Named{argument, static_cast<size_t>(entry)}.text();
    }
  };
  /// What is written overlaps nothing else. By address, so that many weights take no longer than to
  /// sort them.
  bool apart(const OverlapCall& call, const RunNeeds& needs) {
    std::array<Range, kMostRanges> all;
    const size_t count = ranges_of(call, needs, all.data());
    std::sort(all.begin(), all.begin() + count,
              [](const Range& one, const Range& other) { return one.begin < other.begin; });
    const Range *furthest = nullptr, *written = nullptr;  // of those before, by their ends
    for (const Range* at = all.data(); at != all.data() + count; ++at) {
      const Range* const before = at->written ? furthest : written;
      if (before != nullptr && at->begin < before->end) return refuse_both(*at, *before);
      if (furthest == nullptr || furthest->end < at->end) furthest = at;
      if (at->written && (written == nullptr || written->end < at->end)) written = at;
    }
    return true;
  }
  bool refuse_both(const Range& one, const Range& other) {
    const bool first = one.written && (!other.written || one.entry >= 0);
    return refuse(fmt::format("'{}' must overlap nothing else of the call; it overlaps '{}'",
                              (first ? one : other).text(), (first ? other : one).text()));
  }
  size_t ranges_of(const OverlapCall& call, const RunNeeds& needs, Range* to) const {
    const Range* const first = to;
    const auto add = [&](const char* what, int entry, const void* at, uint64_t bytes,
                         bool written) {
      const auto begin = reinterpret_cast<uintptr_t>(at);
      if (at != nullptr) *to++ = {what, entry, written, begin, begin + bytes};
    };
    const uint64_t a_bytes = mscclc::info(config_.a_dtype).bytes;
    const uint64_t b_bytes = mscclc::info(config_.b_dtype).bytes;
    const uint64_t out_bytes = mscclc::info(config_.out_dtype).bytes;
    const bool gathers = config_.kind == OverlapKind::allgather_gemm;
    const bool scatters = config_.kind == OverlapKind::gemm_reducescatter;
    const uint64_t part = config_.m / needs.ranks, rows = scatters ? part : config_.m;
    add("a", -1, call.a, (gathers ? part : config_.m) * config_.k * a_bytes, false);
    add("a_scale", -1, call.a_scale, sizeof(float), false);
    add("gathered", -1, call.gathered, config_.m * config_.k * a_bytes, true);
    if (needs.workspace_bytes != 0) {
      add("workspace", -1, call.workspace, needs.workspace_bytes, true);
    }
    for (size_t w = 0; w < config_.n.size(); ++w) {
      const uint64_t n = config_.n[w];
      const auto entry = static_cast<int>(w);
      add("b", entry, call.b[w], config_.k * n * b_bytes, false);
      add("out", entry, call.out[w], rows * n * out_bytes, true);
      if (config_.bias) add("bias", entry, call.bias[w], n * out_bytes, false);
      if (!call.b_scale.empty()) add("b_scale", entry, call.b_scale[w], sizeof(float), false);
      if (!call.pre_activation.empty()) {
        add("pre_activation", entry, call.pre_activation[w], rows * n * out_bytes, true);
      }
    }
    return static_cast<size_t>(to - first);
  }

  const OverlapConfig& config_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool check_run(const OverlapConfig& config, const OverlapCall& call, const RunNeeds& needs,
               Diagnostics& diagnostics) {
  return RunCheck(config, diagnostics).run(call, needs);
}

}  // namespace mscclc::overlap
