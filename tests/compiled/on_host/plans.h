// Plans whose compiled kernels are compiled for the host: every op in every packet format, the
// steps that come out of whole plans, and programs of the library.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

struct KernelPlan {
  std::string name;
  std::shared_ptr<const Program> program;
  std::vector<Dtype> dtypes;        ///< of its kernels
  std::vector<uint64_t> rows = {};  ///< of its calls, if it has any
  bool is_fused = true;             ///< sums and row functions are one step each
  bool in_place = false;            ///< how it is called
  bool of_op = false;               ///< a tiny one for an op, in every type
  bool on_engines = false;          ///< the interpreters run it, too (tests/engines)
};

/// REQUIRES: runs in the repository root.
std::vector<KernelPlan> kernel_plans();
/// How the names of testing::sums_apart() in some formats begin there.
inline constexpr const char* kSumsApart = "sums apart in ";
inline constexpr PacketFormat kFormatsOfSumsApart[] = {PacketFormat::none, PacketFormat::LL128,
                                                       PacketFormat::sentinel};

/// The programs of plans/rows: each with every number of ranks from 2 to 8, every type and the
/// columns of models and others, any two of these together; and in other packets. The same.
std::vector<KernelPlan> fused_row_plans();

/// Programs of random row functions (tests/rows/random_row.h), of all types. The same.
std::vector<KernelPlan> random_row_plans();

/// Programs in whose calls of few rows some steps have nothing to do. The same.
std::vector<KernelPlan> uneven_row_plans();

/// The small plans that judges of plans are compared on (tests/explore/mutants.h), and random ones:
/// those that are proved, each once.
const std::vector<KernelPlan>& proved_plans();

/// What stands for a plan's digest in its kernels' names: its place in its list.
std::string kernel_digest(size_t plan);

/// The types in which it has kernels.
std::vector<Dtype> kernel_dtypes(const KernelPlan& plan);
/// The names under which its kernels stand in the table (kernels.h).
std::set<std::string> kernel_names(const KernelPlan& plan, const std::string& digest);
/// Why it has none; "": it has some.
std::string why_no_kernels(const KernelPlan& plan);

}  // namespace mscclc
