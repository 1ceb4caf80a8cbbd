// Products of matrices beside calls of plans: what a GEMM is asked for, who makes it, and what
// streams of a device offer to both (docs/design/overlap.md). A device has these: Device::gemms().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/dtypes.h"
#include "ir/support/result.h"
#include "runtime/api/stream.h"

namespace mscclc {

/// d [m, n] = a_scale * b_scale * a [m, k] * b [k, n], plus d if `accumulate`, plus bias, added up
/// in f32 and rounded once. Rows of each operand, as it lies, are `stride` elements apart.
struct Gemm {
  uint64_t m = 0, n = 0, k = 0;
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  uint64_t a_stride = 0, b_stride = 0, d_stride = 0;
  bool b_transposed = false;  ///< b lies as [n, k]
  bool accumulate = false;
  Dtype a_dtype = Dtype::f32, b_dtype = Dtype::f32, d_dtype = Dtype::f32;
  uint32_t multiprocessors = 0;  ///< to take at most; 0: all
  /// One value each, of the device; nullptr: 1.
  const float *a_scale = nullptr, *b_scale = nullptr;
  bool has_bias = false, has_scales = false;  ///< whether calls have them: prepare() asks
  const void* bias = nullptr;                 ///< n of d's type; nullptr: none
  void* workspace = nullptr;                  ///< of this GEMM until the next one on the stream
  uint64_t workspace_bytes = 0;
};

/// Who makes products. Thread safety: one thread at a time.
class GemmProvider {
 public:
  virtual ~GemmProvider() = default;
  /// What Gemm::workspace should have.
  virtual uint64_t workspace_bytes() const { return 0; }
  /// Makes all that products like this one need, whose pointers are not looked at; launches
  /// nothing. False: reported.
  [[nodiscard]] virtual bool prepare(const Gemm&, Diagnostics&) { return true; }
  /// Makes a product that has been prepared for. Of a GPU: puts it on the stream, and does not
  /// wait. Of processors: called by the stream's thread at its turn, and has ended on return.
  [[nodiscard]] virtual bool run(const Gemm& gemm, StreamHandle stream,
                                 Diagnostics& diagnostics) = 0;
};

/// Until when a stream waits: until the flag has been raised `raises` times in this run, or the run
/// of the plan has ended without, as one that gives up does.
struct FlagWait {
  const uint32_t* word;   ///< raised by the plan
  const uint32_t* ended;  ///< raised once a run, after the plan's kernel
  uint32_t* runs;         ///< how many runs were before this one
  uint32_t raises;
  bool counts = false;  ///< the run's last wait, which adds it to `runs`
};

/// What is computed of each element of a product, when it is complete.
enum class Activation : uint8_t { none, gelu };

/// to [rows, columns] = the sum of parts [rows, columns], which follow one another: added in f32 in
/// their order, and rounded once; plus bias [columns], if there is one, rounded once more; of that
/// the activation.
struct PartSum {
  void* to;  ///< may be `from`, of one part
  const void* from;
  uint32_t parts = 1;
  const void* bias = nullptr;
  uint64_t rows, columns;
  Dtype dtype;  ///< f32, f16 or bf16
  Activation activation = Activation::none;
  void* before = nullptr;  ///< gets what the activation is of; nullptr: nothing does
};

/// Work on streams of a device, between products and plans: each is put on a stream, and does not
/// wait. False: reported. Thread safety: the device's.
class GemmStreams {
 public:
  virtual ~GemmStreams() = default;
  /// A stream whose launches get room before those of other streams; Device::destroy_stream().
  [[nodiscard]] virtual StreamHandle create_urgent_stream(Diagnostics& diagnostics) = 0;
  /// What is put on `later` from now on begins when all that is on `earlier` by now has ended.
  [[nodiscard]] virtual bool order(StreamHandle earlier, StreamHandle later,
                                   Diagnostics& diagnostics) = 0;
  /// Adds `times` to a word when all before it on the stream can be seen by this device's blocks.
  /// Also where a launch before it has given up.
  [[nodiscard]] virtual bool raise(uint32_t* word, uint32_t times, StreamHandle stream,
                                   Diagnostics& diagnostics) = 0;
  [[nodiscard]] virtual bool await(const FlagWait& wait, StreamHandle stream,
                                   Diagnostics& diagnostics) = 0;
  [[nodiscard]] virtual bool add_parts(const PartSum& sum, StreamHandle stream,
                                       Diagnostics& diagnostics) = 0;
  /// Lets a provider make a product in its turn. `failed` gets what it reports later, from the
  /// stream's thread; both must live until the stream's work has ended.
  [[nodiscard]] virtual bool multiply(GemmProvider& provider, const Gemm& gemm, StreamHandle stream,
                                      std::function<void(const Diagnostics&)> failed,
                                      Diagnostics& diagnostics) = 0;
  /// Makes one product of zeros, and waits: where kernels are loaded at their first launch, which
  /// may have to wait for those that run, and they for the product. All operands are the same
  /// memory, of its own. On processors nothing is to be done. False: reported.
  [[nodiscard]] virtual bool warm_up(GemmProvider&, const Gemm&, Diagnostics&) { return true; }
  /// The device's own: cuBLASLt on GPUs, a plain one on processors. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<GemmProvider> make_provider(Diagnostics& diagnostics) = 0;
};

}  // namespace mscclc
