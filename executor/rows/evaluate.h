// Row functions on the host: what every bit of their results is, by definition.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// A function for rows of so many columns, with memory for its values, so that many rows cost no
/// allocations. Thread safety: one thread at a time.
class RowEvaluator {
 public:
  /// `function` must outlive it. REQUIRES: can_be_t(t); 1 <= columns <= kMaxColumns.
  RowEvaluator(const Function& function, Dtype t, uint32_t columns);
  ~RowEvaluator();
  RowEvaluator(const RowEvaluator&) = delete;
  RowEvaluator& operator=(const RowEvaluator&) = delete;

  /// One row: where its arguments and results lie, in the order of their declarations, each of
  /// values_of(kind, group, columns) values of bytes_of(type, t) bytes, at any address. All
  /// arguments are read before a result is stored.
  void run(const uint8_t* const* arguments, uint8_t* const* results);

 private:
  class Values;
  std::unique_ptr<Values> values_;
};

/// One row: bytes of each argument in, bytes of each result out, in the order of their
/// declarations. Of `columns` and `scalar` arguments all rows are given the same. REQUIRES:
/// can_be_t(t); 1 <= columns <= kMaxColumns; each argument has values_of(kind, group, columns)
/// values of bytes_of(type, t) bytes. Several threads may call it at a time.
std::vector<std::vector<uint8_t>> evaluate(const Function& function, Dtype t, uint32_t columns,
                                           std::span<const std::vector<uint8_t>> arguments);

/// Values as they are stored. REQUIRES: can_be_t(t).
std::vector<uint8_t> stored_as(Type type, Dtype t, std::span<const float> values);

}  // namespace mscclc::rows
