// What is wrong with a result: which contributions are missing, are there too often, or belong
// elsewhere. Of runs that are traced.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_trace.h"
#include "passes/prove/processes/call_order.h"

namespace mscclc::proof {

/// In words, and as bits by which results that are wrong alike are found.
struct Difference {
  enum Kind : uint32_t {
    kMissing = 1,
    kOften = 2,
    kOtherCall = 4,
    kOther = 8,
    kUnwritten = 16,
    kUnknown = 32,
    kNotDivided = 64,
    kDivided = 128,
    kApplied = 256,
  };
  uint32_t kinds = 0;
  std::vector<std::string> texts = {};
  std::optional<ValueTrace::FirstRead> read = {};  ///< of what has not been written
  void add(Kind kind, std::string text) {
    kinds |= kind;
    texts.push_back(std::move(text));
  }
};

/// Result `k` of a row function, of these.
struct Applying {
  uint32_t function = 0, k = 0;
  std::vector<Symbol> arguments = {};
};

/// Of a result that holds `symbol` and should hold `wanted`, whose first argument is the sum that
/// is promised of chunk `name` of the output.
Difference applied_difference(const System& system, const CallOrder& calls, const ChunkName& name,
                              uint32_t call, const ValueTrace& trace, const Symbol& symbol,
                              const Applying& wanted);

/// Of a result `name` of a call that holds `content`. `written`: by some op.
Difference difference(const System& system, const CallOrder& calls, const ChunkName& name,
                      uint32_t call, const ValueTrace::Content& content, bool written);

}  // namespace mscclc::proof
