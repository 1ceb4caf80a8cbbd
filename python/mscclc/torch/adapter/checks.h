// Checks of what callers give: those that fail throw c10::Error, with the name of the collective.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace mscclc::torch_adapter {

/// Tensors that the backend takes, all of the first one's device and type.
void check_alike(const std::vector<at::Tensor>& tensors, const char* name);
/// The only one of a list.
const at::Tensor& single(const std::vector<at::Tensor>& tensors, const char* name);
/// A list of a tensor for each rank, if it is `here`; or else none.
void check_lists(const std::vector<std::vector<at::Tensor>>& lists, int size, bool here,
                 const char* name);
void check_rank(int64_t rank, int size, const char* name);
/// `which`: "input" or "output".
void check_count(const at::Tensor& tensor, int64_t count, const char* name, const char* which);
/// Of n parts, `part` may lie in `whole` at the place of this rank; no other overlap is right.
void check_overlap(const at::Tensor& whole, const at::Tensor& part, int rank, const char* name);

/// Elements of each part of a tensor, whose rows are split.
std::vector<int64_t> parts_of(const at::Tensor& tensor, const std::vector<int64_t>& splits,
                              int size, const char* which);
/// Elements of each tensor.
std::vector<int64_t> sizes_of(const std::vector<at::Tensor>& tensors);
/// Two lists as one.
std::vector<at::Tensor> joined(std::vector<at::Tensor> first, const std::vector<at::Tensor>& more);

}  // namespace mscclc::torch_adapter
