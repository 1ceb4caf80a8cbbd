// What emitted row functions are given on the host: a block whose threads are fibers, and a row
// whose values are bytes in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/cpu/fiber.h"

namespace mscclc::rows {

class HostBlock {
 public:
  /// `shared`, `lanes`: a float for each thread.
  HostBlock(uint32_t thread, uint32_t threads, float* shared, float* lanes, Fiber* fiber)
      : thread_(thread), threads_(threads), shared_(shared), lanes_(lanes), fiber_(fiber) {}
  uint32_t thread() const { return thread_; }
  uint32_t threads() const { return threads_; }
  float* shared() const { return shared_; }
  void sync() { fiber_->suspend(); }

 protected:
  /// What thread `other` calls this with at the same time.
  float exchanged(float x, uint32_t other) {
    lanes_[thread_] = x;
    sync();
    const float result = lanes_[other];
    sync();
    return result;
  }

 private:
  uint32_t thread_, threads_;
  float *shared_, *lanes_;
  Fiber* fiber_;
};

/// The same with warps of 32 threads that shuffle, as CUDA's do.
class HostWarps : public HostBlock {
 public:
  explicit HostWarps(const HostBlock& block) : HostBlock(block) {}
  void converge() {}
  float across(float x, uint32_t bit) { return exchanged(x, thread() ^ bit); }
  /// Warps meet there: half as many floats are more than enough.
  float* shared() const { return HostBlock::shared() + turn_ * (threads() / 2); }
  void share(uint32_t warp, float x) {
    if (thread() % 32 == 0) shared()[warp] = x;
  }
  void take_turn() { turn_ ^= 1; }

 private:
  uint32_t turn_ = 0;
};

/// Runs `body` as each thread of a block. Between meetings of all, threads run one after the other
/// from any of them on, forwards or backwards.
void run_block(FiberPool& pool, uint32_t threads, Dice& dice,
               const std::function<void(HostBlock&)>& body);

/// Where the values of parameters and results lie, and how often each result was stored.
struct HostRow {
  struct Values {
    uint8_t* data = nullptr;
    uint32_t count = 0;
  };
  std::vector<Values> params, results;
  mutable std::vector<std::vector<uint32_t>> stores;
  mutable bool outside = false;  ///< a value that is not there was asked for

  template <uint32_t k, class Element>
  float load(uint32_t i) const {
    typename Element::Bits bits{};
    if (i >= params[k].count) {
      outside = true;
    } else {
      std::memcpy(&bits, params[k].data + i * sizeof bits, sizeof bits);
    }
    return Element::read(bits);
  }
  template <uint32_t k, class Element>
  void store(uint32_t i, float value) const {
    if (i >= results[k].count) {
      outside = true;
      return;
    }
    ++stores[k][i];
    const typename Element::Bits bits = store_as<Element>(value);
    std::memcpy(results[k].data + i * sizeof bits, &bits, sizeof bits);
  }
};

/// A compiled row function with a number of columns a thread.
using RowKernel = void (*)(HostBlock&, const HostRow&, uint32_t columns);
struct KernelEntry {
  uint32_t row_case, chunk;
  bool warps;  ///< takes whole warps, and shuffles
  RowKernel kernel;
};
/// All that were written (write.cc), by case.
const std::vector<KernelEntry>& row_kernels();

}  // namespace mscclc::rows
