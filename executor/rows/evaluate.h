// Row functions on the host: what every bit of their results is, by definition.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// One row: bytes of each argument in, bytes of each result out, in the order of their
/// declarations. Of `columns` and `scalar` arguments all rows are given the same. REQUIRES:
/// can_be_t(t); 1 <= columns <= kMaxColumns; each argument has values_of(kind, group, columns)
/// values of bytes_of(type, t) bytes. Several threads may call it at a time.
std::vector<std::vector<uint8_t>> evaluate(const Function& function, Dtype t, uint32_t columns,
                                           std::span<const std::vector<uint8_t>> arguments);

/// Values as they are stored. REQUIRES: can_be_t(t).
std::vector<uint8_t> stored_as(Type type, Dtype t, std::span<const float> values);

}  // namespace mscclc::rows
