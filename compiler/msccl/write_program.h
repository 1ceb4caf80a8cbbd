// A schedule of MSCCL as a program of the language.
#pragma once

#include <string>

#include "compiler/msccl/order.h"
#include "compiler/msccl/schedule.h"

namespace mscclc::msccl {

struct WriteOptions {
  uint32_t gpus_per_node = 0;  ///< what is further goes through ports; 0: all are in one node
  /// A rank sends nothing before the receiver has said that it is in the call. False: packets have
  /// two copies instead, which is faster, and right if something else keeps ranks together.
  bool opening = true;
};

/// The program's text, not yet in canonical form. Each message has room of its own at its receiver.
std::string write_program(const Schedule& schedule, const Order& order,
                          const WriteOptions& options);

}  // namespace mscclc::msccl
