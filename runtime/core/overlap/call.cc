#include "runtime/core/overlap/call.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace mscclc::overlap {
namespace {

constexpr uintptr_t kAlignment = 16;

/// One run's arguments.
class RunCheck {
 public:
  RunCheck(const OverlapConfig& config, Diagnostics& diagnostics)
      : config_(config), diagnostics_(diagnostics) {}

  bool run(const OverlapCall& call, const RunNeeds& needs) {
    return pointer({"a"}, call.a) && counts(call) && pointers(call) && scales(call) &&
           gathered(call, needs.gives_gathered) && workspace(call, needs.workspace_bytes);
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
  bool aligned(const Named& what, const void* at) {
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (address % kAlignment == 0) return true;
    return refuse(fmt::format("'{}' must lie at a multiple of {} bytes; it is at {}", what.text(),
                              kAlignment, at));
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
    if (!given || mscclc::info(config_.a_dtype).bytes == 1) return true;
    return refuse(
        fmt::format("scales are for types of 8 bits; A is {}", mscclc::info(config_.a_dtype).name));
  }
  bool gathered(const OverlapCall& call, bool given) {
    if (call.gathered == nullptr) return true;
    if (info(config_.kind).sums) return refuse("'gathered' must be NULL: nothing is gathered");
    if (!given) return refuse("'gathered' must be NULL: the backend keeps what it gathers");
    return aligned({"gathered"}, call.gathered);
  }
  bool workspace(const OverlapCall& call, uint64_t bytes) {
    if (bytes == 0) return true;
    if (call.workspace_bytes < bytes || call.workspace == nullptr) {
      return refuse(fmt::format("the workspace must have {} bytes; {}", bytes,
                                call.workspace == nullptr
                                    ? "there is none"
                                    : fmt::format("it has {}", call.workspace_bytes)));
    }
    return aligned({"workspace"}, call.workspace);
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
