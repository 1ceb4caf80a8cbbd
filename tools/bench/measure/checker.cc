#include "tools/bench/measure/checker.h"

#include <algorithm>

#include "tools/bench/kernels/kernels.h"
#include "tools/bench/measure/timing.h"

namespace mscclc::bench {
namespace {

constexpr int kPoison = 0xcb;
constexpr uint32_t kAlign = 16;
constexpr uint64_t kLarge = 64 << 20;  // bytes above which one call must do

}  // namespace

bool DeviceBytes::reserve(uint64_t bytes, Diagnostics& diagnostics) {
  if (bytes <= bytes_) return true;
  cudaFree(data_);
  data_ = nullptr;
  bytes_ = 0;
  if (!succeeded(cudaMalloc(&data_, bytes), "allocate memory to check results", diagnostics)) {
    return false;
  }
  bytes_ = bytes;
  return true;
}

void Checker::begin_check(const Workload& w) {
  check_.emplace(*contract_, w.part, kAlign, *values_, communicator_.rank());
  check_->take_any_zero();  // contenders that are not ours keep -0.0
}

bool Checker::prepare(const Workload& w, Diagnostics& diagnostics) {
  contract_ = *w.contract;
  const uint32_t rank = communicator_.rank();
  const Chunking chunking(*contract_, w.part, kAlign);
  input_bytes_ = chunking.buffer_bytes(Side::input, rank);
  output_bytes_ = chunking.buffer_bytes(Side::output, rank);
  values_.emplace(w.dtype, info(w.dtype).accumulate, contract_->reduces() ? w.op : ReduceOp::call,
                  contract_->ranks);
  begin_check(w);
  mirror_[0].resize(input_bytes_ + 1);
  mirror_[1].resize(output_bytes_ + 1);
  list_.resize(w.bytes > kLarge ? std::min(calls_, 1u) : calls_);
  for (uint32_t i = 0; i < list_.size(); ++i) {
    if (list_[i] == nullptr) list_[i] = std::make_unique<CheckedCall>();
    CheckedCall& call = *list_[i];
    call.known = false;
    check_->fill(rank, i, mirror_[0].data(), mirror_[1].data());
    if (!call.input.reserve(input_bytes_, diagnostics) ||
        !call.output.reserve(output_bytes_, diagnostics) ||
        !succeeded(
            cudaMemcpy(call.input.data(), mirror_[0].data(), input_bytes_, cudaMemcpyHostToDevice),
            "write an input", diagnostics)) {
      return false;
    }
  }
  return count_.reserve(sizeof(uint64_t), diagnostics);
}

bool Checker::check(const Launch& launch, const Workload& w, uint64_t& wrong,
                    Diagnostics& diagnostics) {
  wrong = 0;
  for (uint32_t i = 0; i < list_.size(); ++i) {
    CheckedCall& call = *list_[i];
    bool same = false;
    if (!run(launch, w, call, diagnostics)) return false;
    if (call.known && !same_as_known(w, call, same, diagnostics)) return false;
    if (!same && !compare(w, i, wrong, diagnostics)) return false;
  }
  return true;
}

// In place the input is a part of the output, or the other way round: poison comes first.
bool Checker::run(const Launch& launch, const Workload& w, CheckedCall& call,
                  Diagnostics& diagnostics) {
  return succeeded(cudaMemsetAsync(w.output, kPoison, output_bytes_, stream_), "poison an output",
                   diagnostics) &&
         succeeded(cudaMemcpyAsync(w.input, call.input.data(), input_bytes_,
                                   cudaMemcpyDeviceToDevice, stream_),
                   "write an input", diagnostics) &&
         succeeded(cudaStreamSynchronize(stream_), "write an input", diagnostics) &&
         communicator_.bootstrap().barrier("inputs are filled", diagnostics) &&
         launch(diagnostics) && communicator_.synchronize(stream_, diagnostics) &&
         communicator_.bootstrap().barrier("outputs have come", diagnostics);
}

bool Checker::same_as_known(const Workload& w, const CheckedCall& call, bool& same,
                            Diagnostics& diagnostics) {
  uint64_t different = 0;
  const uint32_t element = info(w.dtype).bytes;
  auto* count = reinterpret_cast<uint64_t*>(count_.data());
  const bool counted =
      succeeded(cudaMemsetAsync(count, 0, sizeof *count, stream_), "compare", diagnostics) &&
      succeeded(launch_count_different(w.output, call.output.data(), output_bytes_ / element,
                                       element, count, stream_),
                "compare", diagnostics) &&
      succeeded(
          cudaMemcpyAsync(&different, count, sizeof different, cudaMemcpyDeviceToHost, stream_),
          "compare", diagnostics) &&
      succeeded(cudaStreamSynchronize(stream_), "compare", diagnostics);
  same = different == 0;
  return counted;
}

// By the collective's definition: zeros of either sign are equal, and nothing is promised of some
// bytes.
bool Checker::compare(const Workload& w, uint32_t index, uint64_t& wrong,
                      Diagnostics& diagnostics) {
  CheckedCall& call = *list_[index];
  if (!succeeded(cudaMemcpy(mirror_[1].data(), w.output, output_bytes_, cudaMemcpyDeviceToHost),
                 "read an output", diagnostics)) {
    return false;
  }
  check_->compare(communicator_.rank(), index, mirror_[1].data());
  const uint64_t found = check_->wrong();
  wrong += found;
  if (found > 0) {
    check_->report(diagnostics);
    begin_check(w);
    return true;
  }
  if (call.known) return true;
  call.known = true;
  return succeeded(
      cudaMemcpy(call.output.data(), w.output, output_bytes_, cudaMemcpyDeviceToDevice),
      "keep an output", diagnostics);
}

}  // namespace mscclc::bench
