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
  };
  uint32_t kinds = 0;
  std::vector<std::string> texts = {};
  std::optional<ValueTrace::FirstRead> read = {};  ///< of what has not been written
  void add(Kind kind, std::string text) {
    kinds |= kind;
    texts.push_back(std::move(text));
  }
};

/// Of a result `name` of a call that holds `content`. `written`: by some op.
Difference difference(const System& system, const CallOrder& calls, const ChunkName& name,
                      uint32_t call, const ValueTrace::Content& content, bool written);

}  // namespace mscclc::proof
