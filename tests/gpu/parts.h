// The parts of gpu_check, which tries the runtime on a machine's GPUs. Each says what it has
// counted. True: all was right.
#pragma once

#include "tests/gpu/stage/stage.h"

namespace mscclc::testing {

/// Every plan of the library and of the peer for this number of ranks, against the collective's
/// definition: data types, reductions, sizes, in place or not, zero copy or staged, odd offsets.
bool check_plans(const StageOptions& options);
/// Every plan of the library that adds up floats, on data whose sums are rounded: bit for bit what
/// the simulator gives.
bool check_bits(const StageOptions& options);
/// A row inside batches of every number of rows, under each contract: the bits that it has alone.
bool check_row_batches(const StageOptions& options);
/// Plans with row functions by compiled kernels, against the definition of what they compute.
bool check_row_functions(const StageOptions& options);
/// Every plan of a folder by its compiled kernels, bit for bit what the interpreter gives.
bool check_kernels(const StageOptions& options);
/// Plans with flags, beside copies that write the input and raise flags while calls run: bit for
/// bit what the simulator gives.
bool check_flags(const StageOptions& options);
/// Calls in graphs: patterns of capture and replay, for a plan of each family.
bool check_graphs(const StageOptions& options);
/// Plans that hang, and ranks that die: reports, and how soon they come.
bool check_hangs(const StageOptions& options);
/// Very many small calls of random plans, sizes and types, eager and in graphs.
bool check_soak(const StageOptions& options);
/// Calls on several streams, beside kernels of others, that begin in another order on each GPU.
bool check_overlap(const StageOptions& options);
/// Network devices add to the memory of each GPU. Where there are none that reach it nothing is
/// tried, which it says.
bool check_remote_adds(const StageOptions& options);
/// What is made and destroyed over and over leaves nothing behind.
bool check_cycles(const StageOptions& options);

}  // namespace mscclc::testing
