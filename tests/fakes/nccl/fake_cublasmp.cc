// A fake of NVIDIA's cuBLASMp, for tests: products of f32 in host memory over the fake NCCL, done
// when the call returns. It refuses what the library's documents refuse: grids that are not of all
// ranks, matrices whose pieces do not fit, rooms that are not as measured.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "runtime/doors/c/libraries/cublasmp_abi.h"
#include "runtime/doors/nccl/abi/api.h"

namespace mscclc::capi::mp {

struct Context {
  void* stream;
};
struct GridOpaque {
  int64_t rows, columns;
  ncclComm_t comm;
};
struct MatrixOpaque {
  int64_t m, n, mb, nb;
  const GridOpaque* grid;
};
struct MatmulDescOpaque {
  int32_t transpose_a = 0, transpose_b = 0, epilogue = 0, multiprocessors = 0;
  const float* bias = nullptr;
};

#define FUNCTION(name, parameters) \
  extern "C" __attribute__((visibility("default"))) Status cublasMp##name parameters;
MSCCLC_CUBLASMP(FUNCTION)
#undef FUNCTION

namespace {

constexpr Status kInvalid = 3, kNotSupported = 7;
constexpr int32_t kRefused = 13;  // multiprocessors of a sum that all ranks get
constexpr int kNcclFloat = 7, kNcclSum = 0;
constexpr size_t kDeviceBytes = 64, kHostBytes = 32;

alignas(64) thread_local bool has_handle = false;  // aligned as in fake_nccl.cc

/// A rank's factors, which lie by columns.
struct Factors {
  const MatmulDescOpaque& desc;
  const float *a, *b;
  int64_t rows, depth;  ///< of op(A) here

  float a_at(int64_t i, int64_t p) const {
    return desc.transpose_a != 0 ? a[p + i * depth] : a[i + p * rows];
  }
  float product(int64_t i, int64_t j) const {
    float sum = 0;
    for (int64_t p = 0; p < depth; ++p) sum += a_at(i, p) * b[p + j * depth];
    return sum;
  }
};

Status done(ncclResult_t result) { return result == ncclSuccess ? kSuccess : kInvalid; }

bool fits(const MatmulDescOpaque& desc, const MatrixOpaque& a, const MatrixOpaque& b,
          const MatrixOpaque& d) {
  const int64_t depth = desc.transpose_a != 0 ? a.mb : a.nb;
  const int64_t rows = desc.transpose_a != 0 ? a.nb : a.mb;
  return desc.transpose_b == 0 && depth == b.mb && rows == d.mb && b.nb == d.nb;
}

/// Each rank has columns of B, and gets rows of D.
Status gather(Factors f, const MatrixOpaque& b, const MatrixOpaque& d, float* out) {
  std::vector<float> all(static_cast<size_t>(b.m * b.n));
  const auto own = static_cast<size_t>(b.mb * b.nb);
  const Status gathered =
      done(ncclAllGather(f.b, all.data(), own, kNcclFloat, d.grid->comm, nullptr));
  if (gathered != kSuccess) return gathered;
  f.b = all.data();
  for (int64_t j = 0; j < d.n; ++j) {
    for (int64_t i = 0; i < d.mb; ++i) {
      const float bias = f.desc.epilogue == kBias ? f.desc.bias[i] : 0;
      out[i + j * d.mb] = f.product(i, j) + bias;
    }
  }
  return kSuccess;
}

/// Each rank has a part of the depth.
Status add_up(const Factors& f, int64_t columns, const MatrixOpaque& d, float* out) {
  std::vector<float> partial(static_cast<size_t>(d.m * columns));
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < d.m; ++i) {
      partial[static_cast<size_t>(i + j * d.m)] = f.product(i, j);
    }
  }
  if (f.desc.epilogue == kAllReduce) {
    return done(ncclAllReduce(partial.data(), out, partial.size(), kNcclFloat, kNcclSum,
                              d.grid->comm, nullptr));
  }
  return done(ncclReduceScatter(partial.data(), out, static_cast<size_t>(d.m * d.nb), kNcclFloat,
                                kNcclSum, d.grid->comm, nullptr));
}

}  // namespace

/// A GPU has one handle: each rank is a thread.
Status cublasMpCreate(Handle* handle, void* stream) {
  if (has_handle) return kInvalid;
  has_handle = true;
  *handle = new Context{stream};
  return kSuccess;
}
Status cublasMpDestroy(Handle handle) {
  delete handle;
  has_handle = false;
  return kSuccess;
}
Status cublasMpSetStream(Handle handle, void* stream) {
  handle->stream = stream;
  return kSuccess;
}
Status cublasMpGridCreate(int64_t rows, int64_t columns, int layout, ncclComm_t comm, Grid* grid) {
  int ranks = 0;
  if (ncclCommCount(comm, &ranks) != ncclSuccess || rows * columns != ranks) return kInvalid;
  if ((rows == 1) != (layout == kRowMajor)) return kInvalid;
  *grid = new GridOpaque{rows, columns, comm};
  return kSuccess;
}
Status cublasMpGridDestroy(Grid grid) {
  delete grid;
  return kSuccess;
}
/// All ranks at once. FAKE_CUBLASMP_ROOMLESS: the rank that gets none, and waits for no other.
Status cublasMpMalloc(Grid grid, void** at, size_t bytes) {
  const char* const roomless = std::getenv("FAKE_CUBLASMP_ROOMLESS");
  if (roomless != nullptr && std::atoi(roomless) == ncclTeamWorld(grid->comm).rank) return kInvalid;
  float none = 0;
  const Status all =
      done(ncclAllReduce(&none, &none, 1, kNcclFloat, kNcclSum, grid->comm, nullptr));
  if (all == kSuccess) *at = ::operator new(bytes);
  return all;
}
Status cublasMpFree(Grid, void* at) {
  ::operator delete(at);
  return kSuccess;
}
Status cublasMpMatrixDescriptorCreate(int64_t m, int64_t n, int64_t mb, int64_t nb, int64_t rsrc,
                                      int64_t csrc, int64_t ld, int type, Grid grid,
                                      Matrix* matrix) {
  if (type != kF32) return kNotSupported;
  if (mb <= 0 || nb <= 0 || rsrc != 0 || csrc != 0 || ld < mb) return kInvalid;
  // One piece a rank; where all columns are a rank's, they may be in several.
  const bool whole = nb * grid->columns == n || (grid->columns == 1 && nb < n);
  if (mb * grid->rows != m || !whole) return kInvalid;
  *matrix = new MatrixOpaque{m, n, mb, nb, grid};
  return kSuccess;
}
Status cublasMpMatrixDescriptorDestroy(Matrix matrix) {
  delete matrix;
  return kSuccess;
}
Status cublasMpMatmulDescriptorCreate(MatmulDesc* desc, int compute) {
  if (compute != kCompute32f) return kNotSupported;
  *desc = new MatmulDescOpaque;
  return kSuccess;
}
Status cublasMpMatmulDescriptorDestroy(MatmulDesc desc) {
  delete desc;
  return kSuccess;
}
Status cublasMpMatmulDescriptorSetAttribute(MatmulDesc desc, int attribute, const void* value,
                                            size_t bytes) {
  const bool pointer = attribute == kBiasPointer;
  if (bytes != (pointer ? sizeof(void*) : sizeof(int32_t))) return kInvalid;
  const int32_t number = pointer ? 0 : *static_cast<const int32_t*>(value);
  switch (attribute) {
    case kTransposeA:
      desc->transpose_a = number;
      return kSuccess;
    case kTransposeB:
      desc->transpose_b = number;
      return kSuccess;
    case kCommunicationMultiprocessors:
      desc->multiprocessors = number;
      return number > 0 ? kSuccess : kInvalid;
    case kEpilogue:
      desc->epilogue = number;
      return kSuccess;
    case kBiasPointer:
      desc->bias = *static_cast<const float* const*>(value);
      return kSuccess;
    case kBiasType:
    case kCommunicationType:
      return number == kF32 ? kSuccess : kNotSupported;
    default:
      return kInvalid;
  }
}

Status cublasMpMatmul_bufferSize(Handle handle, MatmulDesc desc, int64_t m, int64_t n, int64_t k,
                                 const void* alpha, const void* a, int64_t ia, int64_t ja,
                                 Matrix of_a, const void* b, int64_t ib, int64_t jb, Matrix of_b,
                                 const void* beta, const void* c, int64_t ic, int64_t jc,
                                 Matrix of_c, void* d, int64_t id, int64_t jd, Matrix of_d,
                                 size_t* device_bytes, size_t* host_bytes) {
  const bool whole = ia == 1 && ja == 1 && ib == 1 && jb == 1 && ic == 1 && jc == 1 && id == 1 &&
                     jd == 1 && a == nullptr && b == nullptr && c == nullptr && d == nullptr;
  const bool plain =
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
  if (handle == nullptr || !whole || !plain || of_c != of_d) return kInvalid;
  if (!fits(*desc, *of_a, *of_b, *of_d) || m != of_d->m || n <= 0 || k != of_b->m) return kInvalid;
  // As the library where there is no multicast, here for one number only.
  if (desc->epilogue == kAllReduce && desc->multiprocessors == kRefused) return kNotSupported;
  *device_bytes = kDeviceBytes;
  *host_bytes = kHostBytes;
  return kSuccess;
}

Status cublasMpMatmul(Handle handle, MatmulDesc desc, int64_t, int64_t n, int64_t, const void*,
                      const void* a, int64_t, int64_t, Matrix, const void* b, int64_t, int64_t,
                      Matrix of_b, const void*, const void* c, int64_t, int64_t, Matrix, void* d,
                      int64_t, int64_t, Matrix of_d, void* device, size_t device_bytes, void* host,
                      size_t host_bytes) {
  if (handle == nullptr || c != nullptr || device == nullptr || device_bytes != kDeviceBytes ||
      host == nullptr || host_bytes != kHostBytes) {
    return kInvalid;
  }
  const Factors factors{*desc, static_cast<const float*>(a), static_cast<const float*>(b), of_d->mb,
                        of_b->mb};
  auto* const out = static_cast<float*>(d);
  if (of_d->grid->rows > 1) return gather(factors, *of_b, *of_d, out);
  return add_up(factors, n, *of_d, out);
}

extern "C" __attribute__((visibility("default"))) const char* cublasMpGetStatusString(
    Status status) {
  return status == kNotSupported ? "CUBLASMP_STATUS_NOT_SUPPORTED"
                                 : "CUBLASMP_STATUS_INVALID_VALUE";
}

}  // namespace mscclc::capi::mp
