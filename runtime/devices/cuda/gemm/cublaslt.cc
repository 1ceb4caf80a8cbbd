#include "runtime/devices/cuda/gemm/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "runtime/devices/cuda/gemm/cublaslt_library.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

/// What NVIDIA recommends for Hopper.
constexpr uint64_t kWorkspace = uint64_t{32} << 20;
constexpr uint32_t kBaseAlignment = 16;  ///< of matrices, in bytes

/// What is fixed of a product.
using ShapeKey = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, bool, bool,
                            bool, Dtype, Dtype, Dtype, uint32_t>;
ShapeKey key_of(const Gemm& g) {
  return {
      g.m,          g.n,        g.k,       g.a_stride, g.b_stride, g.d_stride,       g.b_transposed,
      g.accumulate, g.has_bias, g.a_dtype, g.b_dtype,  g.d_dtype,  g.multiprocessors};
}

std::string text_of(const Gemm& g) {
  return fmt::format("m = {}, n = {}, k = {}, {} times {}{} to {}", g.m, g.n, g.k,
                     info(g.a_dtype).name, info(g.b_dtype).name,
                     g.b_transposed ? " (transposed)" : "", info(g.d_dtype).name);
}

int type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return lt::kF16;
    case Dtype::bf16:
      return lt::kBf16;
    case Dtype::e4m3:
      return lt::kE4m3;
    case Dtype::e5m2:
      return lt::kE5m2;
    default:
      return lt::kF32;
  }
}

/// Of any row of a matrix.
uint32_t alignment_of(uint64_t stride, Dtype dtype) {
  const uint64_t bytes = stride * info(dtype).bytes;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kBaseAlignment, uint64_t{1} << std::countr_zero(bytes)));
}

/// A handle of a context, with the library's functions. Thread safety: as cuBLASLt's, from any.
class SharedHandle {
 public:
  SharedHandle(SharedContext context, const lt::Library& library, lt::Handle handle)
      : context_(std::move(context)), lib_(library), handle_(handle) {}
  ~SharedHandle() {
    const CurrentContext current(*context_);
    if (current.is_set()) lib_.Destroy(handle_);
  }
  SharedHandle(const SharedHandle&) = delete;
  SharedHandle& operator=(const SharedHandle&) = delete;

  const lt::Library& library() const { return lib_; }
  lt::Handle get() const { return handle_; }

  /// A new one. nullptr: reported.
  static std::shared_ptr<SharedHandle> create(const SharedContext& context,
                                              Diagnostics& diagnostics) {
    const auto found = lt::find_library();
    if (!found) {
      diagnostics.error("bad-call", {}, found.error().text());
      return nullptr;
    }
    const CurrentContext current(*context);
    if (!current.is_set(diagnostics)) return nullptr;
    lt::Handle handle = nullptr;
    if (const lt::Status status = found->Create(&handle); status != lt::kSuccess) {
      diagnostics.error("cuda", {}, fmt::format("cuBLASLt cannot begin: status {}", status));
      return nullptr;
    }
    return std::make_shared<SharedHandle>(context, *found, handle);
  }

 private:
  const SharedContext context_;
  const lt::Library lib_;
  const lt::Handle handle_;
};

/// One handle for each context of the process, which takes memory there: it lives until the last
/// that uses it goes. Thread safety: from any thread.
class Handles {
 public:
  /// nullptr: reported.
  std::shared_ptr<SharedHandle> find(const SharedContext& context, Diagnostics& diagnostics) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<SharedHandle>& known = by_context_[context->handle()];
    auto found = known.lock();
    if (found == nullptr) known = found = SharedHandle::create(context, diagnostics);
    return found;
  }

 private:
  std::mutex mutex_;
  std::map<abi::Context, std::weak_ptr<SharedHandle>> by_context_;
};

/// A product that is made ready. cuBLASLt's matrices are of columns, ours of rows: it computes the
/// transposed d = b^T a^T, so its A is our b.
struct Prepared {
  explicit Prepared(const lt::Library& library) : lib(library) {}
  ~Prepared() {
    for (const lt::Layout layout : {a, b, d}) {
      if (layout != nullptr) lib.MatrixLayoutDestroy(layout);
    }
    if (desc != nullptr) lib.MatmulDescDestroy(desc);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  const lt::Library& lib;
  lt::MatmulDesc desc = nullptr;
  lt::Layout a = nullptr, b = nullptr, d = nullptr;  ///< as cuBLASLt calls them
  lt::Heuristic how = {};
};

class CublasLt final : public GemmProvider {
 public:
  CublasLt(SharedContext context, std::shared_ptr<SharedHandle> handle)
      : context_(std::move(context)), handle_(std::move(handle)), lib_(handle_->library()) {}

  uint64_t workspace_bytes() const override { return kWorkspace; }

  bool prepare(const Gemm& gemm, Diagnostics& diagnostics) override {
    if (prepared_.contains(key_of(gemm))) return true;
    const CurrentContext current(*context_);
    if (!current.is_set(diagnostics)) return false;
    auto made = std::make_unique<Prepared>(lib_);
    if (!describe(gemm, *made, diagnostics) || !choose(gemm, *made, diagnostics)) return false;
    prepared_[key_of(gemm)] = std::move(made);
    return true;
  }

  bool run(const Gemm& gemm, StreamHandle stream, Diagnostics& diagnostics) override {
    const auto found = prepared_.find(key_of(gemm));
    if (found == prepared_.end()) {
      diagnostics.error("cuda", {}, "a GEMM that was not prepared: " + text_of(gemm));
      return false;
    }
    const Prepared& p = *found->second;
    const CurrentContext current(*context_);
    const float one = 1, beta = gemm.accumulate ? 1 : 0;
    return current.is_set(diagnostics) && point(gemm, p, diagnostics) &&
           ok(lib_.Matmul(handle_->get(), p.desc, &one, gemm.b, p.a, gemm.a, p.b, &beta, gemm.d,
                          p.d, gemm.d, p.d, &p.how.algorithm, gemm.workspace, gemm.workspace_bytes,
                          stream),
              "launch", gemm, diagnostics);
  }

 private:
  bool ok(lt::Status status, const char* what, const Gemm& gemm, Diagnostics& diagnostics) const {
    if (status == lt::kSuccess) return true;
    const char* const text = lib_.GetStatusString == nullptr ? "" : lib_.GetStatusString(status);
    diagnostics.error("cuda", {},
                      fmt::format("cuBLASLt cannot {} a GEMM of {}: status {} {}", what,
                                  text_of(gemm), status, text));
    return false;
  }
  template <class T>
  bool set(const Prepared& p, int attribute, const T& value, const Gemm& gemm,
           Diagnostics& diagnostics) const {
    return ok(lib_.MatmulDescSetAttribute(p.desc, attribute, &value, sizeof value), "describe",
              gemm, diagnostics);
  }

  bool describe(const Gemm& g, Prepared& p, Diagnostics& diagnostics) const {
    const auto layout = [&](lt::Layout& into, Dtype dtype, uint64_t rows, uint64_t columns,
                            uint64_t stride) {
      return ok(lib_.MatrixLayoutCreate(&into, type_of(dtype), rows, columns,
                                        static_cast<int64_t>(stride)),
                "describe", g, diagnostics);
    };
    const int32_t turned = g.b_transposed ? lt::kTransposed : lt::kAsItLies;
    const uint64_t b_rows = g.b_transposed ? g.k : g.n, b_columns = g.b_transposed ? g.n : g.k;
    return ok(lib_.MatmulDescCreate(&p.desc, lt::kCompute32f, lt::kF32), "describe", g,
              diagnostics) &&
           layout(p.a, g.b_dtype, b_rows, b_columns, g.b_stride) &&
           layout(p.b, g.a_dtype, g.k, g.m, g.a_stride) &&
           layout(p.d, g.d_dtype, g.n, g.m, g.d_stride) &&
           set(p, lt::kTransposeA, turned, g, diagnostics) &&
           set(p, lt::kTransposeB, int32_t{lt::kAsItLies}, g, diagnostics) &&
           set(p, lt::kEpilogue, uint32_t{g.has_bias ? lt::kBias : lt::kPlain}, g, diagnostics) &&
           // Unasked, it takes the bias of an f32 product of 8-bit floats for bf16.
           (!g.has_bias ||
            set(p, lt::kBiasType, static_cast<int32_t>(type_of(g.d_dtype)), g, diagnostics)) &&
           (g.multiprocessors == 0 ||
            set(p, lt::kMultiprocessors, static_cast<int32_t>(g.multiprocessors), g, diagnostics));
  }

  bool choose(const Gemm& g, Prepared& p, Diagnostics& diagnostics) const {
    lt::Preference preference = nullptr;
    if (!ok(lib_.MatmulPreferenceCreate(&preference), "describe", g, diagnostics)) return false;
    const auto prefer = [&](int attribute, const auto& value) {
      return lib_.MatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
    };
    lt::Status status = prefer(lt::kMaxWorkspace, kWorkspace);
    const std::pair<int, uint32_t> alignments[] = {
        {lt::kAlignA, alignment_of(g.b_stride, g.b_dtype)},
        {lt::kAlignB, alignment_of(g.a_stride, g.a_dtype)},
        {lt::kAlignC, alignment_of(g.d_stride, g.d_dtype)},
        {lt::kAlignD, alignment_of(g.d_stride, g.d_dtype)}};
    for (const auto& [attribute, bytes] : alignments) {
      if (status == lt::kSuccess) status = prefer(attribute, bytes);
    }
    int found = 0;
    if (status == lt::kSuccess) {
      status = lib_.MatmulAlgoGetHeuristic(handle_->get(), p.desc, p.a, p.b, p.d, p.d, preference,
                                           1, &p.how, &found);
    }
    lib_.MatmulPreferenceDestroy(preference);
    if (status == lt::kSuccess && found > 0) return true;
    return refuse(g, status, diagnostics);
  }

  /// No algorithm takes it: on Hopper, those for types of 8 bits take b only as [n, k], and rows
  /// that begin at multiples of 16 bytes.
  bool refuse(const Gemm& g, lt::Status status, Diagnostics& diagnostics) const {
    const bool narrow = info(g.a_dtype).bytes == 1;
    diagnostics.error(
        "bad-call", {},
        fmt::format("cuBLASLt has no GEMM of {} (status {}){}", text_of(g), status,
                    narrow ? "; of types of 8 bits B must lie as [n, k] (b_transposed), k and n "
                             "must be multiples of 16, and not both types be e5m2"
                           : ""));
    return false;
  }

  /// What differs from run to run.
  bool point(const Gemm& g, const Prepared& p, Diagnostics& diagnostics) const {
    return (!g.has_bias || set(p, lt::kBiasPointer, g.bias, g, diagnostics)) &&
           (!g.has_scales || (set(p, lt::kScaleA, g.b_scale, g, diagnostics) &&
                              set(p, lt::kScaleB, g.a_scale, g, diagnostics)));
  }

  const SharedContext context_;
  const std::shared_ptr<SharedHandle> handle_;
  const lt::Library& lib_;
  std::map<ShapeKey, std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

std::unique_ptr<GemmProvider> make_cublaslt(SharedContext context, Diagnostics& diagnostics) {
  auto handle = process_wide<Handles>().find(context, diagnostics);
  if (handle == nullptr) return nullptr;
  return std::make_unique<CublasLt>(std::move(context), std::move(handle));
}

}  // namespace mscclc::cuda
