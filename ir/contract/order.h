// Contracts about the bits of sums: in which order the ranks' contributions are added, and where
// the sum is rounded. docs/bits.md says what each is for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mscclc {

enum class SumOrder : uint8_t {
#define ORDER(name, summary) name,
#include "ir/contract/orders.def"
#undef ORDER
};

/// What a call by name asks for, unless it says otherwise.
inline constexpr SumOrder kDefaultOrder = SumOrder::replicated;

std::string_view name(SumOrder order);
std::string_view summary(SumOrder order);
std::optional<SumOrder> find_sum_order(std::string_view name);
/// "any, replicated, ranks, tree or exact"
std::string sum_order_names();

/// Which contracts the sums of a plan keep; `any` always. That all ranks get the same bits does not
/// follow from the others: a plan may give each rank another sum.
struct SumOrders {
  bool replicated = false, ranks = false, tree = false, exact = false;
  bool operator==(const SumOrders&) const = default;
  SumOrders& operator&=(const SumOrders& o) {
    replicated &= o.replicated;
    ranks &= o.ranks;
    tree &= o.tree;
    exact &= o.exact;
    return *this;
  }
  bool keep(SumOrder order) const;
};

/// A contract that is proved of a plan's sums, and where SumOrders says so.
struct ProvedOrder {
  SumOrder order;
  bool SumOrders::*kept;
};
inline constexpr std::array kProvedOrders = {
    ProvedOrder{SumOrder::replicated, &SumOrders::replicated},
    ProvedOrder{SumOrder::ranks, &SumOrders::ranks},
    ProvedOrder{SumOrder::tree, &SumOrders::tree},
    ProvedOrder{SumOrder::exact, &SumOrders::exact},
};

/// Does what keeps one contract keep another? A plan that adds in the order of the ranks also gives
/// all ranks the same bits.
bool serves(SumOrder kept, SumOrder wanted);

}  // namespace mscclc
