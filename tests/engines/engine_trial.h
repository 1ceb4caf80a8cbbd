// A plan on the engines of GPUs, which run on the host here (executor/cuda/host), against the
// simulator: the same inputs, several calls in a row, and the same bits in every output.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda/testing/ranks.h"
#include "executor/simulator/cluster.h"
#include "ir/program/program.h"

namespace mscclc {

enum class Engine : uint8_t {
  generic,  ///< the interpreter, which runs every plan
  fast,     ///< the kernel of the data type and formats; generic, where there is none
  short_,   ///< the one for short programs; fast, where a plan has none
};
inline constexpr Engine kEngines[] = {Engine::generic, Engine::fast, Engine::short_};

struct EngineSpec {
  uint64_t bytes = 0;  ///< as RunSpec::bytes
  Dtype dtype = Dtype::f32;
  std::optional<Dtype> accumulate = {};  ///< what the type itself says, if not given
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  bool shifted = false;  ///< buffers begin at odd addresses, others at every rank
  bool zeros = false;    ///< inputs of floats are mostly zeros of either sign
  bool wide = false;     ///< inputs of floats are any codes
  Engine engine = Engine::fast;
  uint64_t seed = 0;  ///< of threads' order; 0: none stops where it need not
  uint32_t calls = 3;
  uint32_t threads = 64;    ///< of a block, at most
  uint64_t first_call = 0;  ///< its number
};
std::string text(const EngineSpec& spec);

class EngineTrial {
 public:
  /// The program must outlive it.
  explicit EngineTrial(const Program& program);

  /// What differs from the simulator, or hangs; nothing if all is the same. A call that the
  /// simulator refuses is the same, too. Of zeros, also a sum that is -0.0. REQUIRES then: all
  /// outputs are sums.
  std::optional<std::string> fault(const EngineSpec& spec);
  /// Did the last run have an engine of its kind? Else a more general one took its place.
  bool had_engine() const { return had_engine_; }

 private:
  class Expected;

  const Program& program_;
  Cluster cluster_;
  cuda::CudaRanks ranks_;
  std::string broken_;  ///< why nothing can be run; "": nothing
  bool had_engine_ = false;
};

}  // namespace mscclc
