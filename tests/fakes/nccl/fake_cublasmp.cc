// A fake of NVIDIA's cuBLASMp, for tests: products of f32 in host memory over the fake NCCL, done
// when the call returns. It refuses what the library's documents refuse: grids that are not of all
// ranks, matrices whose pieces do not fit, rooms that are not as measured.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/doors/nccl/abi/api.h"

namespace {

enum Status { kSuccess = 0, kInvalid = 3, kNotSupported = 7 };
constexpr int kFloat = 0, kCompute32f = 68;
constexpr int kNcclFloat = 7, kNcclSum = 0;
constexpr size_t kDeviceBytes = 64, kHostBytes = 32;

struct Handle {
  void* stream = nullptr;
};
struct Grid {
  int64_t rows, columns;
  ncclComm_t comm;
};
struct Matrix {
  int64_t m, n, mb, nb;
  const Grid* grid;
};
struct Desc {
  int32_t transpose_a = 0, transpose_b = 0, epilogue = 0, bias_type = -1;
  const float* bias = nullptr;
};

/// A rank's factors, which lie by columns.
struct Factors {
  const Desc& desc;
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

int done(ncclResult_t result) { return result == ncclSuccess ? kSuccess : kInvalid; }

bool fits(const Desc& desc, const Matrix& a, const Matrix& b, const Matrix& d) {
  const int64_t depth = desc.transpose_a != 0 ? a.mb : a.nb;
  const int64_t rows = desc.transpose_a != 0 ? a.nb : a.mb;
  return desc.transpose_b == 0 && depth == b.mb && rows == d.mb && b.nb == d.nb;
}

/// Each rank has columns of B, and gets rows of D.
int gather(Factors f, const Matrix& b, const Matrix& d, float* out) {
  std::vector<float> all(static_cast<size_t>(b.m * b.n));
  const auto own = static_cast<size_t>(b.mb * b.nb);
  const int gathered = done(ncclAllGather(f.b, all.data(), own, kNcclFloat, d.grid->comm, nullptr));
  if (gathered != kSuccess) return gathered;
  f.b = all.data();
  for (int64_t j = 0; j < d.n; ++j) {
    for (int64_t i = 0; i < d.mb; ++i) {
      const float bias = f.desc.epilogue == 4 ? f.desc.bias[i] : 0;
      out[i + j * d.mb] = f.product(i, j) + bias;
    }
  }
  return kSuccess;
}

/// Each rank has a part of the depth.
int add_up(const Factors& f, int64_t columns, const Matrix& d, float* out) {
  std::vector<float> partial(static_cast<size_t>(d.m * columns));
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < d.m; ++i) {
      partial[static_cast<size_t>(i + j * d.m)] = f.product(i, j);
    }
  }
  if (f.desc.epilogue == 1) {
    return done(ncclAllReduce(partial.data(), out, partial.size(), kNcclFloat, kNcclSum,
                              d.grid->comm, nullptr));
  }
  return done(ncclReduceScatter(partial.data(), out, static_cast<size_t>(d.m * d.nb), kNcclFloat,
                                kNcclSum, d.grid->comm, nullptr));
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) int

FAKE cublasMpCreate(Handle** handle, void* stream) {
  *handle = new Handle{stream};
  return kSuccess;
}
FAKE cublasMpDestroy(Handle* handle) {
  delete handle;
  return kSuccess;
}
FAKE cublasMpSetStream(Handle* handle, void* stream) {
  handle->stream = stream;
  return kSuccess;
}
FAKE cublasMpGridCreate(int64_t rows, int64_t columns, int layout, ncclComm_t comm, Grid** grid) {
  int ranks = 0;
  if (ncclCommCount(comm, &ranks) != ncclSuccess || rows * columns != ranks) return kInvalid;
  if ((rows == 1) != (layout == 1)) return kInvalid;
  *grid = new Grid{rows, columns, comm};
  return kSuccess;
}
FAKE cublasMpGridDestroy(Grid* grid) {
  delete grid;
  return kSuccess;
}
FAKE cublasMpMalloc(Grid*, void** at, size_t bytes) {
  *at = ::operator new(bytes);
  return kSuccess;
}
FAKE cublasMpFree(Grid*, void* at) {
  ::operator delete(at);
  return kSuccess;
}
FAKE cublasMpMatrixDescriptorCreate(int64_t m, int64_t n, int64_t mb, int64_t nb, int64_t rsrc,
                                    int64_t csrc, int64_t ld, int type, Grid* grid,
                                    Matrix** matrix) {
  if (type != kFloat) return kNotSupported;
  if (mb <= 0 || nb <= 0 || rsrc != 0 || csrc != 0 || ld < mb) return kInvalid;
  if (mb * grid->rows != m || nb * grid->columns != n) {
    // Pieces of a matrix with one row of ranks are of all its rows; and so on.
    const bool columns_alone = grid->columns == 1 && nb < n && mb * grid->rows == m;
    if (!columns_alone) return kInvalid;
  }
  *matrix = new Matrix{m, n, mb, nb, grid};
  return kSuccess;
}
FAKE cublasMpMatrixDescriptorDestroy(Matrix* matrix) {
  delete matrix;
  return kSuccess;
}
FAKE cublasMpMatmulDescriptorCreate(Desc** desc, int compute) {
  if (compute != kCompute32f) return kNotSupported;
  *desc = new Desc;
  return kSuccess;
}
FAKE cublasMpMatmulDescriptorDestroy(Desc* desc) {
  delete desc;
  return kSuccess;
}
FAKE cublasMpMatmulDescriptorSetAttribute(Desc* desc, int attribute, const void* value,
                                          size_t bytes) {
  const auto* const number = static_cast<const int32_t*>(value);
  if (bytes != (attribute == 6 ? sizeof(void*) : sizeof(int32_t))) return kInvalid;
  switch (attribute) {
    case 0:
      desc->transpose_a = *number;
      return kSuccess;
    case 1:
      desc->transpose_b = *number;
      return kSuccess;
    case 4:  // multiprocessors
      return *number > 0 ? kSuccess : kInvalid;
    case 5:
      desc->epilogue = *number;
      return kSuccess;
    case 6:
      desc->bias = *static_cast<const float* const*>(value);
      return kSuccess;
    case 8:
    case 27:  // the type of what travels
      return *number == kFloat ? kSuccess : kNotSupported;
    default:
      return kInvalid;
  }
}

#define PRODUCT                                                                                    \
  Handle *handle, Desc *desc, int64_t m, int64_t n, int64_t k, const float *alpha, const float *a, \
      int64_t ia, int64_t ja, Matrix *of_a, const float *b, int64_t ib, int64_t jb, Matrix *of_b,  \
      const float *beta, const float *c, int64_t ic, int64_t jc, Matrix *of_c, float *d,           \
      int64_t id, int64_t jd, Matrix *of_d

FAKE cublasMpMatmul_bufferSize(PRODUCT, size_t* device_bytes, size_t* host_bytes) {
  const bool whole = ia == 1 && ja == 1 && ib == 1 && jb == 1 && ic == 1 && jc == 1 && id == 1 &&
                     jd == 1 && a == nullptr && b == nullptr && c == nullptr && d == nullptr;
  if (handle == nullptr || !whole || *alpha != 1 || *beta != 0 || of_c != of_d) return kInvalid;
  if (!fits(*desc, *of_a, *of_b, *of_d) || m != of_d->m || n <= 0 || k != of_b->m) return kInvalid;
  *device_bytes = kDeviceBytes;
  *host_bytes = kHostBytes;
  return kSuccess;
}

FAKE cublasMpMatmul(PRODUCT, void* device, size_t device_bytes, void* host, size_t host_bytes) {
  (void)m, (void)alpha, (void)ia, (void)ja, (void)ib, (void)jb, (void)beta, (void)ic, (void)jc;
  (void)k, (void)of_c, (void)id, (void)jd;
  if (handle == nullptr || c != nullptr || device == nullptr || device_bytes != kDeviceBytes ||
      host == nullptr || host_bytes != kHostBytes) {
    return kInvalid;
  }
  const Factors factors{*desc, a, b, of_d->mb, of_b->mb};
  if (of_d->grid->rows > 1) return gather(factors, *of_b, *of_d, d);
  return add_up(factors, n, *of_d, d);
}

extern "C" __attribute__((visibility("default"))) const char* cublasMpGetStatusString(int status) {
  return status == kNotSupported ? "CUBLASMP_STATUS_NOT_SUPPORTED"
                                 : "CUBLASMP_STATUS_INVALID_VALUE";
}
