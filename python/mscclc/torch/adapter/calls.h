// The collectives of torch as calls of libmscclc: bodies of requests. A body that throws NoPlan has
// changed nothing.
//
// Tensors may have any strides: what is not contiguous is packed before the calls, and unpacked
// after them. Sizes were checked by the caller.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "python/mscclc/torch/adapter/queues/call_queue.h"

namespace mscclc::torch_adapter {

using Tensors = std::vector<at::Tensor>;

void all_reduce(const Runner& run, const at::Tensor& tensor, const c10d::ReduceOp& op);
void reduce(const Runner& run, const at::Tensor& tensor, int root, const c10d::ReduceOp& op);
void broadcast(const Runner& run, const at::Tensor& tensor, int root);
/// Whether that would wait for other ranks on the host.
bool broadcast_waits(const Runner& run, const at::Tensor& tensor, int root);

void all_gather(const Runner& run, const at::Tensor& output, const at::Tensor& input);
/// An output for each rank; their sizes may differ.
/// `rows`: rows_for() the outputs.
void all_gather_list(const Runner& run, const Tensors& outputs, const at::Tensor& input,
                     const at::Tensor& rows);
/// One tensor for all outputs of an all-gather, a row each; undefined where their sizes differ.
at::Tensor rows_for(const Tensors& outputs);
void reduce_scatter(const Runner& run, const at::Tensor& output, const at::Tensor& input,
                    const c10d::ReduceOp& op);
/// An input for each rank; their sizes may differ.
void reduce_scatter_list(const Runner& run, const at::Tensor& output, const Tensors& inputs,
                         const c10d::ReduceOp& op);

/// Lists are empty on ranks that are not the root.
void gather(const Runner& run, const Tensors& outputs, const at::Tensor& input, int root);
void scatter(const Runner& run, const at::Tensor& output, const Tensors& inputs, int root);

/// Equal parts.
void all_to_all(const Runner& run, const at::Tensor& output, const at::Tensor& input);

/// How many elements each rank sends to each: [s * ranks + d].
using Counts = std::vector<uint64_t>;
/// Exchanges with all ranks what each sends and expects, by a communicator of the host. Throws on
/// all ranks where the two differ.
Counts exchange_counts(const Runner& host, const std::vector<int64_t>& sent,
                       const std::vector<int64_t>& expected);
/// Parts follow one another in both tensors.
void all_to_all_uneven(const Runner& run, const at::Tensor& output, const at::Tensor& input,
                       const Counts& counts);
void all_to_all_list(const Runner& run, const Tensors& outputs, const Tensors& inputs,
                     const Counts& counts);

void barrier(const Runner& run);

}  // namespace mscclc::torch_adapter
