// mscclc_order_t as the runtime's enum.
#pragma once

#include <optional>

#include "ir/contract/order.h"
#include "ir/support/precondition.h"
#include "runtime/doors/c/mscclc.h"

namespace mscclc::capi {

static_assert(MSCCLC_ORDER_ANY - 1 == static_cast<int>(SumOrder::any) &&
              MSCCLC_ORDER_REPLICATED - 1 == static_cast<int>(SumOrder::replicated) &&
              MSCCLC_ORDER_RANKS - 1 == static_cast<int>(SumOrder::ranks) &&
              MSCCLC_ORDER_TREE - 1 == static_cast<int>(SumOrder::tree) &&
              MSCCLC_ORDER_EXACT - 1 == static_cast<int>(SumOrder::exact));

inline bool is_order(mscclc_order_t order) {
  return order >= MSCCLC_ORDER_DEFAULT && order <= MSCCLC_ORDER_EXACT;
}

/// nullopt: whatever holds where nothing is said. REQUIRES: is_order().
inline std::optional<SumOrder> order_of(mscclc_order_t order) {
  precondition(is_order(order));
  if (order == MSCCLC_ORDER_DEFAULT) return std::nullopt;
  return static_cast<SumOrder>(order - 1);
}

inline mscclc_order_t order_of(SumOrder order) { return static_cast<mscclc_order_t>(order) + 1; }

}  // namespace mscclc::capi
