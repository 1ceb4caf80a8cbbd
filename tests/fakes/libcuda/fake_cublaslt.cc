// A libcublasLt.so.13 for tests, which makes no product, and refuses what NVIDIA's documents refuse
// on Hopper: products of 8-bit floats in other layouts, sizes and types than these. Tests ask it
// how many handles were made, and how many there are (fakeCublasLtMade, fakeCublasLtLive).
#include <atomic>
#include <cstring>

#include "runtime/devices/cuda/gemm/cublaslt_abi.h"

namespace mscclc::cuda::lt {

struct Context {};
struct PreferenceOpaque {};
struct LayoutOpaque {
  int type;
  uint64_t rows, columns;
};
struct MatmulDescOpaque {
  int32_t transpose_a = kAsItLies, transpose_b = kAsItLies;
  uint32_t epilogue = kPlain;
};

#define FUNCTION(name, parameters) extern "C" Status cublasLt##name parameters;
MSCCLC_CUBLASLT(FUNCTION)
#undef FUNCTION

namespace {

std::atomic<int> made_handles = 0, live_handles = 0;

constexpr Status kInvalid = 7, kNotSupported = 15;

bool is_narrow(const Layout layout) { return layout->type == kE4m3 || layout->type == kE5m2; }

bool serves(const MatmulDescOpaque& desc, Layout a, Layout b, Layout d) {
  if (!is_narrow(a) && !is_narrow(b)) return true;
  const bool layouts = desc.transpose_a == kTransposed && desc.transpose_b == kAsItLies;
  const bool sizes = a->rows % 16 == 0 && d->rows % 16 == 0;  // k, and m of its own
  const bool types = a->type != kE5m2 || b->type != kE5m2;
  return layouts && sizes && types && (desc.epilogue != kBias || d->type != kF32);
}

template <class T>
Status take(const void* value, size_t bytes, T& to) {
  if (bytes != sizeof to) return kInvalid;
  std::memcpy(&to, value, sizeof to);
  return kSuccess;
}

template <class T>
Status end(T* of) {
  delete of;
  return kSuccess;
}

}  // namespace

extern "C" int fakeCublasLtMade() { return made_handles; }
extern "C" int fakeCublasLtLive() { return live_handles; }

Status cublasLtCreate(Handle* handle) {
  ++made_handles;
  ++live_handles;
  return *handle = new Context, kSuccess;
}
Status cublasLtDestroy(Handle handle) {
  --live_handles;
  return end(handle);
}
Status cublasLtMatmulDescCreate(MatmulDesc* desc, int compute, int scale) {
  if (compute != kCompute32f || scale != kF32) return kNotSupported;
  return *desc = new MatmulDescOpaque, kSuccess;
}
Status cublasLtMatmulDescDestroy(MatmulDesc desc) { return end(desc); }
Status cublasLtMatmulDescSetAttribute(MatmulDesc desc, int what, const void* value, size_t bytes) {
  if (what == kTransposeA) return take(value, bytes, desc->transpose_a);
  if (what == kTransposeB) return take(value, bytes, desc->transpose_b);
  return what == kEpilogue ? take(value, bytes, desc->epilogue) : kSuccess;
}
Status cublasLtMatrixLayoutCreate(Layout* layout, int type, uint64_t rows, uint64_t columns,
                                  int64_t stride) {
  if (stride < static_cast<int64_t>(rows)) return kInvalid;
  return *layout = new LayoutOpaque{type, rows, columns}, kSuccess;
}
Status cublasLtMatrixLayoutDestroy(Layout layout) { return end(layout); }
Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  return *preference = new PreferenceOpaque, kSuccess;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) { return end(preference); }
Status cublasLtMatmulPreferenceSetAttribute(Preference, int, const void*, size_t) {
  return kSuccess;
}
Status cublasLtMatmulAlgoGetHeuristic(Handle, MatmulDesc desc, Layout a, Layout b, Layout, Layout d,
                                      Preference, int, Heuristic*, int* found) {
  *found = serves(*desc, a, b, d) ? 1 : 0;
  return *found == 1 ? kSuccess : kNotSupported;
}
Status cublasLtMatmul(Handle, MatmulDesc, const void*, const void*, Layout, const void*, Layout,
                      const void*, const void*, Layout, void*, Layout, const Algorithm*,
                      void* workspace, size_t, void*) {
  return reinterpret_cast<uintptr_t>(workspace) % 256 == 0 ? kSuccess : kInvalid;
}

}  // namespace mscclc::cuda::lt
