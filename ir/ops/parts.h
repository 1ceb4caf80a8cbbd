// What an op that moves data does to one unit, and in which order: the one definition for the
// prover, the simulator, the explorer, and the machines of hosts and GPUs.
//
// A unit is a unit of packets, or a piece of plain data; one thread moves it (a line of LL128: some
// threads of a warp together). What the table does not order, a machine does in any order: a GPU
// loads plain data before it polls packets, and empties a slot after it has stored, as both is
// faster. Nor is there an order between units, between moves of one op, or between stores.
//
// A sum that is handed to a row function before it is stored is one op of these parts, or several,
// as a machine likes (RowSteps in executor/lower.h): the sum is stored at the op's first
// destination, the function loads it there and stores its result in its place, and the other
// destinations get what is loaded there in the end. So that place may hold the sum for a while.
//
// So an op must not depend on such an order: the structure check (ir/verify) refuses one that takes
// packets from a slot of sentinels and stores into it, or takes them twice, one whose moves touch
// what another of them stores, and one that stores two results in one place; passes make no such
// ops. An executor that makes one step of
// neighbouring ops (executor/block_programs.cc) makes moves of one op of them, so what one of them
// stores no other may touch. A copy onto itself is no access at all; any other op loads and stores
// what lies where it stores.
#pragma once

#include <cstdint>

namespace mscclc {

enum class Part : uint8_t {
  load,   ///< a plain source
  poll,   ///< a source of packets: until the unit has come
  empty,  ///< the sentinel back into a slot from which packets were taken
  store,  ///< a destination, plain or packets; handed to the proxy, if it is reached by a port
};

struct PartOrder {
  Part first, then;
  bool one_operand;  ///< of one operand; else of whichever two operands of the unit
};

inline constexpr PartOrder kPartOrders[] = {
    {Part::load, Part::store, false},
    {Part::poll, Part::store, false},
    {Part::poll, Part::empty, true},
};

/// Do all machines do `first` before `then`, for each unit of an op, whichever operands it is?
constexpr bool always_before(Part first, Part then) {
  for (const PartOrder& order : kPartOrders) {
    if (order.first == first && order.then == then && !order.one_operand) return true;
  }
  return false;
}

}  // namespace mscclc
