#include "tools/bench/measure/clock_rows.h"

#include <vector>

#include "tools/bench/measure/clocks.h"

namespace mscclc::bench {

void ClockRows::take_from(Executable& executable, uint32_t blocks) const {
  if (blocks > kMaxClockBlocks) return;
  executable.stamp_launches(reinterpret_cast<uint64_t*>(rows_->data()), kClockWords);
}

std::unique_ptr<ClockRows> ClockRows::open(Device& device, Diagnostics& diagnostics) {
  const uint64_t bytes = sizeof(uint64_t) * kClockWords * kMaxClockBlocks;
  auto rows = device.allocate(bytes, "stamps", diagnostics);
  if (rows == nullptr) return nullptr;
  return std::unique_ptr<ClockRows>(new ClockRows(std::move(rows)));
}

bool ClockRows::read(const std::function<bool(Diagnostics&)>& run, cudaStream_t stream,
                     std::string& text, Diagnostics& diagnostics) {
  std::vector<uint64_t> words(rows_->bytes() / sizeof(uint64_t));
  const bool good =
      succeeded(cudaMemset(rows_->data(), 0, rows_->bytes()), "clear stamps", diagnostics) &&
      run(diagnostics) &&
      succeeded(cudaStreamSynchronize(stream), "wait for a unit", diagnostics) &&
      succeeded(cudaMemcpy(words.data(), rows_->data(), words.size() * sizeof(uint64_t),
                           cudaMemcpyDeviceToHost),
                "read stamps", diagnostics);
  if (good) text = clocks_text(words);
  return good;
}

}  // namespace mscclc::bench
