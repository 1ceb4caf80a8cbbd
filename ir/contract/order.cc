#include "ir/contract/order.h"

#include <array>

namespace mscclc {
namespace {

struct OrderRow {
  std::string_view name, summary;
};
constexpr std::array kOrders = {
#define ORDER(name, summary) OrderRow{#name, summary},
#include "ir/contract/orders.def"
#undef ORDER
};

}  // namespace

std::string_view name(SumOrder order) { return kOrders[static_cast<size_t>(order)].name; }

std::string_view summary(SumOrder order) { return kOrders[static_cast<size_t>(order)].summary; }

std::optional<SumOrder> find_sum_order(std::string_view name) {
  for (size_t i = 0; i < kOrders.size(); ++i) {
    if (kOrders[i].name == name) return static_cast<SumOrder>(i);
  }
  return std::nullopt;
}

std::string sum_order_names() {
  std::string text;
  for (size_t i = 0; i < kOrders.size(); ++i) {
    text += i == 0 ? "" : i + 1 == kOrders.size() ? " or " : ", ";
    text += kOrders[i].name;
  }
  return text;
}

bool serves(SumOrder kept, SumOrder wanted) {
  return wanted == SumOrder::any || kept == wanted ||
         (wanted == SumOrder::replicated && kept != SumOrder::any);
}

bool SumOrders::keep(SumOrder order) const {
  if (order == SumOrder::any) return true;
  for (const ProvedOrder& row : kProvedOrders) {
    if (row.order == order) return replicated && this->*row.kept;
  }
  return false;
}

}  // namespace mscclc
