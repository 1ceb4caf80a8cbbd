// Row functions as C++ that the threads of a block execute together, on a GPU or compiled for the
// host.
#pragma once

#include <string>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// The definition of
///
///   template <uint32_t kChunk, class Block, class Row>
///   void NAME(Block& block, const Row& row, uint32_t columns);
///
/// which works on one row, for calls of type `t`. It stands in mscclc::rows after
/// executor/rows/row_tree.h and row_values.h, and is compiled without contraction (row_math.h).
/// kChunk, a power of two, is how many neighbouring columns a thread has; all threads of the block
/// call it, and kChunk * block.threads() >= columns. Block: as row_tree.h says. Row:
///
///   float load<k, Element>(uint32_t i) const        the i-th value of the k-th parameter
///   void store<k, Element>(uint32_t i, Bits) const  the i-th value of the k-th result
///
/// where Element is how the value is stored (row_values.h). i counts columns, groups, or is 0
/// (token, scalar). A result may lie where a parameter of its form lies (kind, type, group): a
/// thread loads all its values of `row` parameters before it stores any result of the same column,
/// and other threads have other columns; of other kinds meets_before_results() sees to it.
/// REQUIRES: can_be_t(t).
std::string emit(const Function& function, Dtype t, const std::string& name);

/// Do all threads of the block meet between the loads of values that they have in common and the
/// first results of that kind? Where results wait for a reduction they meet in it; a result that is
/// a parameter as it is changes no bit if it lies there.
bool meets_before_results(const Function& function);

}  // namespace mscclc::rows
