// Plans whose compiled kernels are compiled for the host: every op in every packet format, the
// steps that come out of whole plans, and programs of the library.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

struct KernelPlan {
  std::string name;
  std::shared_ptr<const Program> program;
  std::vector<Dtype> dtypes;  ///< of its kernels
};

/// REQUIRES: runs in the repository root.
std::vector<KernelPlan> kernel_plans();

/// What stands for a plan's digest in its kernels' names: its place in the list.
std::string kernel_digest(size_t plan);

}  // namespace mscclc
