#include "python/mscclc/torch/adapter/checks.h"

namespace mscclc::torch_adapter {

static void check_tensor(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.defined(), "mscclc ", name, ": the tensor is undefined");
  TORCH_CHECK(tensor.layout() == at::kStrided && !tensor.is_nested(), "mscclc ", name,
              ": tensors must be dense, not of layout ", tensor.layout(),
              "; convert them with to_dense()");
  TORCH_CHECK(!tensor.is_quantized(), "mscclc ", name, ": tensors must not be quantized");
  TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), "mscclc ", name,
              ": tensors are of cpu or cuda, not of ", tensor.device());
}

void check_alike(const std::vector<at::Tensor>& tensors, const char* name) {
  for (const at::Tensor& tensor : tensors) {
    check_tensor(tensor, name);
    const at::Tensor& first = tensors.front();
    TORCH_CHECK(tensor.device() == first.device(), "mscclc ", name,
                ": tensors are of one device, not of ", first.device(), " and ", tensor.device());
    TORCH_CHECK(tensor.scalar_type() == first.scalar_type(), "mscclc ", name,
                ": tensors are of one type, not of ", first.scalar_type(), " and ",
                tensor.scalar_type());
  }
}

const at::Tensor& single(const std::vector<at::Tensor>& tensors, const char* name) {
  TORCH_CHECK(tensors.size() == 1, "mscclc ", name, ": one tensor, not ", tensors.size());
  return tensors[0];
}

void check_lists(const std::vector<std::vector<at::Tensor>>& lists, int size, bool here,
                 const char* name) {
  if (!here) {
    TORCH_CHECK(lists.empty(), "mscclc ", name, ": only the root has a list of tensors");
    return;
  }
  TORCH_CHECK(lists.size() == 1 && lists[0].size() == static_cast<size_t>(size), "mscclc ", name,
              ": one list of ", size, " tensors");
}

void check_rank(int64_t rank, int size, const char* name) {
  TORCH_CHECK(rank >= 0 && rank < size, "mscclc ", name, ": there is no rank ", rank, " among ",
              size);
}

void check_count(const at::Tensor& tensor, int64_t count, const char* name, const char* which) {
  TORCH_CHECK(tensor.numel() == count, "mscclc ", name, ": the ", which, " has ", tensor.numel(),
              " elements instead of ", count);
}

void check_overlap(const at::Tensor& whole, const at::Tensor& part, int rank, const char* name) {
  if (part.numel() == 0 || !whole.is_contiguous() || !part.is_contiguous()) return;
  const auto begin = reinterpret_cast<uintptr_t>(whole.const_data_ptr());
  const auto at = reinterpret_cast<uintptr_t>(part.const_data_ptr());
  const size_t bytes = part.nbytes();
  if (at >= begin + whole.nbytes() || at + bytes <= begin) return;
  TORCH_CHECK(at == begin + static_cast<size_t>(rank) * bytes, "mscclc ", name,
              ": input and output overlap; only this rank's own part of the larger may be the "
              "other");
}

std::vector<int64_t> parts_of(const at::Tensor& tensor, const std::vector<int64_t>& splits,
                              int size, const char* which) {
  TORCH_CHECK(tensor.dim() > 0, "mscclc all_to_all: the ", which, " has no dimension to be split");
  const int64_t rows = tensor.size(0);
  std::vector<int64_t> parts = splits;
  if (parts.empty()) {
    TORCH_CHECK(rows % size == 0, "mscclc all_to_all: the ", which, " has ", rows,
                " rows, which are not ", size, " equal parts");
    parts.assign(static_cast<size_t>(size), rows / size);
  }
  TORCH_CHECK(parts.size() == static_cast<size_t>(size), "mscclc all_to_all: the ", which, " has ",
              parts.size(), " splits for ", size, " ranks");
  int64_t sum = 0;
  for (const int64_t part : parts) {
    TORCH_CHECK(part >= 0 && part <= rows - sum, "mscclc all_to_all: splits of the ", which,
                " do not add up to its ", rows, " rows");
    sum += part;
  }
  TORCH_CHECK(sum == rows, "mscclc all_to_all: splits of the ", which, " add up to ", sum,
              " instead of its ", rows, " rows");
  const int64_t width = rows == 0 ? 0 : tensor.numel() / rows;
  for (int64_t& part : parts) part *= width;
  return parts;
}

std::vector<int64_t> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  return sizes;
}

std::vector<at::Tensor> joined(std::vector<at::Tensor> first, const std::vector<at::Tensor>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace mscclc::torch_adapter
