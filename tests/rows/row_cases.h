// The row functions whose emitted source is compiled for the host: the library's, and random ones.
#pragma once

#include <string>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

inline constexpr uint32_t kRandomRows = 1000;

/// A function as it is emitted, and with how many columns a thread.
struct RowCase {
  Function function;
  Dtype t;
  std::vector<uint32_t> chunks;

  /// Of the i-th case, of what it gives `chunk` columns a thread.
  static std::string symbol(size_t i) { return "row_" + std::to_string(i); }
};

/// Always the same.
std::vector<RowCase> row_cases();

}  // namespace mscclc::rows
