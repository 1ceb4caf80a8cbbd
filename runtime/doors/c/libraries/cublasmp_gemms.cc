// cuBLASMp's GEMMs, which communicate themselves, over a communicator of NCCL's. Its matrices lie
// by columns: ours, by rows, are their transposes, so D^T = B^T A^T, and B is its first factor.
// How the ranks' pieces make one matrix: https://docs.nvidia.com/cuda/cublasmp/usage/tp.html
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/api/device.h"
#include "runtime/doors/c/libraries/cublasmp.h"
#include "runtime/doors/c/libraries/nccl_ranks.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "runtime/support/observe/leak.h"

namespace mscclc::capi {
namespace {

using nccl::InsideReal;

mp::DataType data_type_of(Dtype dtype) {
  if (dtype == Dtype::f32) return mp::kF32;
  if (dtype == Dtype::f16) return mp::kF16;
  if (dtype == Dtype::bf16) return mp::kBf16;
  return dtype == Dtype::e4m3 ? mp::kE4m3 : mp::kE5m2;
}

/// A matrix of all ranks: its rows and columns, those of a rank's piece, and whether pieces lie
/// side by side (else one below the other).
struct Spread {
  int64_t rows, columns, piece_rows, piece_columns;
  bool side_by_side;
};

/// One product of all ranks: the first factor is B, the second A.
struct Product {
  int64_t m, n, k;
  bool transposed;
  Spread b, a, d;
};

Product product_of(const OverlapConfig& config, int64_t ranks, int64_t columns) {
  const auto rows = static_cast<int64_t>(config.m), k = static_cast<int64_t>(config.k);
  const bool transposed = config.b_transposed;
  if (config.kind == OverlapKind::allgather_gemm) {
    const int64_t all = columns * ranks, own = rows / ranks;
    return {all,
            rows,
            k,
            transposed,
            transposed ? Spread{k, all, k, columns, true} : Spread{all, k, columns, k, false},
            {k, rows, k, own, true},
            {all, rows, columns, own, false}};
  }
  const bool whole = config.kind == OverlapKind::gemm_allreduce;
  const int64_t depth = k * ranks, own = whole ? rows : rows / ranks;
  return {columns,
          rows,
          depth,
          transposed,
          transposed ? Spread{depth, columns, k, columns, false}
                     : Spread{columns, depth, columns, k, true},
          {depth, rows, k, own, false},
          {columns, own * ranks, columns, own, true}};
}

}  // namespace

/// The library's handle, of all objects of a communicator: its documents permit one for a process
/// and GPU. Its stream is that of the last run, which may have gone since.
class CublasMpHandle {
 public:
  CublasMpHandle(const mp::Library& library, mp::Handle handle)
      : library_(library), handle_(handle) {}
  ~CublasMpHandle() {
    (void)library_.SetStream(handle_, nullptr);
    (void)library_.Destroy(handle_);
  }
  CublasMpHandle(const CublasMpHandle&) = delete;
  CublasMpHandle& operator=(const CublasMpHandle&) = delete;
  mp::Handle get() const { return handle_; }

 private:
  const mp::Library library_;
  const mp::Handle handle_;
};

namespace {

/// What belongs to one object; cuBLASMp's parts end with it, on all ranks.
class CublasMpGemms final : public OtherGemms {
 public:
  CublasMpGemms(std::shared_ptr<NcclRanks> ranks, const mp::Library& library,
                const OverlapConfig& config)
      : ranks_(std::move(ranks)), library_(library), config_(config) {}
  ~CublasMpGemms() override;

  /// Collective. False: reported.
  bool make(SharedLibraries& shared, Diagnostics& diagnostics);
  bool run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) override;
  uint64_t held_bytes() const override { return room_bytes_; }
  void abort() override { ranks_->abort(); }

 private:
  /// The product with one B.
  struct Weight {
    Product product = {};
    mp::MatmulDesc desc = nullptr;
    mp::Matrix b = nullptr, a = nullptr, d = nullptr;
    size_t device_bytes = 0, host_bytes = 0;
  };

  struct Operands {
    const void *a = nullptr, *b = nullptr;
    void* d = nullptr;
  };

  bool succeeded(mp::Status status, const char* what, Diagnostics& diagnostics) const;
  bool take_handle(SharedLibraries& shared, Diagnostics& diagnostics);
  bool make_grids(Diagnostics& diagnostics);
  bool make_matrix(const Spread& spread, Dtype dtype, mp::Matrix& made, Diagnostics& diagnostics);
  bool describe(Weight& weight, Diagnostics& diagnostics);
  bool measure(Weight& weight, Diagnostics& diagnostics);
  bool begin(SharedLibraries& shared, Diagnostics& diagnostics);
  bool make_room(Diagnostics& diagnostics);
  bool name_operands(const Weight& weight, const OverlapCall& call, size_t w,
                     Diagnostics& diagnostics);
  /// A call of cublasMpMatmul(), or of what measures it, which reads no memory.
  template <class Function, class... Rooms>
  mp::Status multiply(Function function, const Weight& weight, const Operands& at, Rooms... rooms) {
    constexpr float kOne = 1, kZero = 0;
    const Product& p = weight.product;
    return function(handle_->get(), weight.desc, p.m, p.n, p.k, &kOne, at.b, 1, 1, weight.b, at.a,
                    1, 1, weight.a, &kZero, nullptr, 1, 1, weight.d, at.d, 1, 1, weight.d,
                    rooms...);
  }
  template <class Value>
  bool set(mp::MatmulDesc desc, mp::Attribute attribute, const Value& value,
           Diagnostics& diagnostics) {
    return succeeded(library_.MatmulDescriptorSetAttribute(desc, attribute, &value, sizeof value),
                     "describe the product", diagnostics);
  }

  const std::shared_ptr<NcclRanks> ranks_;
  const mp::Library library_;
  const OverlapConfig config_;
  std::shared_ptr<CublasMpHandle> handle_;
  mp::Grid below_ = nullptr, beside_ = nullptr;  ///< of ranks: one column, one row
  std::vector<Weight> weights_;
  void* room_ = nullptr;
  size_t room_bytes_ = 0;
  std::vector<uint8_t> host_room_;
};

CublasMpGemms::~CublasMpGemms() {
  // Memory and grids go on all ranks at once: where one may have gone, they stay.
  Diagnostics why;
  const auto entered = ranks_->enter(why);
  if (!entered || ranks_->communicator().has_failed(why)) {
    leak(std::tuple(std::move(handle_), below_, beside_, room_, std::move(weights_)),
         ranks_->communicator().rank(), "memory of products by cuBLASMp", why);
    return;
  }
  const InsideReal inside;
  if (room_ != nullptr) (void)library_.Free(below_, room_);
  for (const Weight& weight : weights_) {
    for (const mp::Matrix matrix : {weight.b, weight.a, weight.d}) {
      if (matrix != nullptr) (void)library_.MatrixDescriptorDestroy(matrix);
    }
    if (weight.desc != nullptr) (void)library_.MatmulDescriptorDestroy(weight.desc);
  }
  for (const mp::Grid grid : {below_, beside_}) {
    if (grid != nullptr) (void)library_.GridDestroy(grid);
  }
  handle_.reset();
}

bool CublasMpGemms::succeeded(mp::Status status, const char* what, Diagnostics& diagnostics) const {
  if (status == mp::kSuccess) return true;
  const char* const text =
      library_.GetStatusString != nullptr ? library_.GetStatusString(status) : "no text";
  diagnostics.error("peer-failed", {},
                    fmt::format("cuBLASMp cannot {}: {} ({})", what, text, status));
  return false;
}

bool CublasMpGemms::take_handle(SharedLibraries& shared, Diagnostics& diagnostics) {
  handle_ = shared.cublasmp.lock();
  if (handle_ != nullptr) {
    return succeeded(library_.SetStream(handle_->get(), nullptr), "use no stream", diagnostics);
  }
  mp::Handle made = nullptr;
  if (!succeeded(library_.Create(&made, nullptr), "begin", diagnostics)) return false;
  shared.cublasmp = handle_ = std::make_shared<CublasMpHandle>(library_, made);
  return true;
}

bool CublasMpGemms::make_grids(Diagnostics& diagnostics) {
  const auto ranks = static_cast<int64_t>(ranks_->communicator().size());
  const ncclComm_t comm = ranks_->comm();
  return succeeded(library_.GridCreate(ranks, 1, mp::kColumnMajor, comm, &below_),
                   "make a grid of the ranks", diagnostics) &&
         succeeded(library_.GridCreate(1, ranks, mp::kRowMajor, comm, &beside_),
                   "make a grid of the ranks", diagnostics);
}

bool CublasMpGemms::make_matrix(const Spread& spread, Dtype dtype, mp::Matrix& made,
                                Diagnostics& diagnostics) {
  return succeeded(library_.MatrixDescriptorCreate(spread.rows, spread.columns, spread.piece_rows,
                                                   spread.piece_columns, 0, 0, spread.piece_rows,
                                                   data_type_of(dtype),
                                                   spread.side_by_side ? beside_ : below_, &made),
                   "describe a matrix", diagnostics);
}

bool CublasMpGemms::describe(Weight& weight, Diagnostics& diagnostics) {
  const Product& product = weight.product;
  const bool sums = config_.kind != OverlapKind::allgather_gemm;
  const mp::DataType out = data_type_of(config_.out_dtype);
  if (!succeeded(library_.MatmulDescriptorCreate(&weight.desc, mp::kCompute32f),
                 "describe the product", diagnostics) ||
      !set(weight.desc, mp::kTransposeA, product.transposed ? mp::kTransposed : mp::kAsItLies,
           diagnostics) ||
      !set(weight.desc, mp::kTransposeB, mp::kAsItLies, diagnostics)) {
    return false;
  }
  const auto budget = static_cast<int32_t>(config_.budget);
  if (budget != 0 && !set(weight.desc, mp::kCommunicationMultiprocessors, budget, diagnostics)) {
    return false;
  }
  if (sums && !set(weight.desc, mp::kCommunicationType, out, diagnostics)) return false;
  if (config_.kind == OverlapKind::gemm_allreduce &&
      !set(weight.desc, mp::kEpilogue, mp::kAllReduce, diagnostics)) {
    return false;
  }
  if (config_.bias && !sums &&
      (!set(weight.desc, mp::kEpilogue, mp::kBias, diagnostics) ||
       !set(weight.desc, mp::kBiasType, out, diagnostics))) {
    return false;
  }
  return make_matrix(product.b, config_.b_dtype, weight.b, diagnostics) &&
         make_matrix(product.a, config_.a_dtype, weight.a, diagnostics) &&
         make_matrix(product.d, config_.out_dtype, weight.d, diagnostics);
}

bool CublasMpGemms::measure(Weight& weight, Diagnostics& diagnostics) {
  return succeeded(
      multiply(library_.Matmul_bufferSize, weight, {}, &weight.device_bytes, &weight.host_bytes),
      "make such a product", diagnostics);
}

bool CublasMpGemms::make_room(Diagnostics& diagnostics) {
  size_t host_bytes = 0;
  for (const Weight& weight : weights_) {
    room_bytes_ = std::max(room_bytes_, weight.device_bytes);
    host_bytes = std::max(host_bytes, weight.host_bytes);
  }
  host_room_.resize(host_bytes);
  const auto entered = ranks_->enter(diagnostics);
  if (!entered) return false;
  const InsideReal inside;
  return room_bytes_ == 0 || succeeded(library_.Malloc(below_, &room_, room_bytes_),
                                       "make room for products", diagnostics);
}

bool CublasMpGemms::begin(SharedLibraries& shared, Diagnostics& diagnostics) {
  const auto entered = ranks_->enter(diagnostics);
  if (!entered) return false;
  const InsideReal inside;
  if (!take_handle(shared, diagnostics) || !make_grids(diagnostics)) return false;
  for (const uint64_t columns : config_.n) {
    Weight& weight = weights_.emplace_back();
    weight.product =
        product_of(config_, ranks_->communicator().size(), static_cast<int64_t>(columns));
    if (!describe(weight, diagnostics) || !measure(weight, diagnostics)) return false;
  }
  return true;
}

/// A product that the library refuses ends nothing but this: all ranks learn it before they make
/// room together. Without room here, others may have theirs, which they would free together with
/// this rank, or wait for it: that ends all.
bool CublasMpGemms::make(SharedLibraries& shared, Diagnostics& diagnostics) {
  constexpr auto kWhat = "make such a product by cuBLASMp";
  if (!ranks_->all_are_able(begin(shared, diagnostics), kWhat, diagnostics)) return false;
  if (make_room(diagnostics)) return ranks_->all_are_able(true, kWhat, diagnostics);
  ranks_->communicator().abort(diagnostics);
  return false;
}

bool CublasMpGemms::name_operands(const Weight& weight, const OverlapCall& call, size_t w,
                                  Diagnostics& diagnostics) {
  const bool biased = config_.bias && config_.kind == OverlapKind::allgather_gemm;
  if (biased && !set(weight.desc, mp::kBiasPointer, call.bias[w], diagnostics)) return false;
  if (info(config_.a_dtype).bytes != 1) return true;
  const float* const b_scale = call.b_scale.empty() ? nullptr : call.b_scale[w];
  return set(weight.desc, mp::kScaleA, b_scale, diagnostics) &&
         set(weight.desc, mp::kScaleB, call.a_scale, diagnostics);
}

bool CublasMpGemms::run(const OverlapCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  if (!ranks_->begin_on(stream, diagnostics)) return false;
  const auto entered = ranks_->enter(diagnostics);
  if (!entered) return false;
  const InsideReal inside;
  if (!succeeded(library_.SetStream(handle_->get(), stream), "use the stream", diagnostics))
    return false;
  for (size_t w = 0; w < weights_.size(); ++w) {
    const Weight& weight = weights_[w];
    if (!name_operands(weight, call, w, diagnostics)) return false;
    const mp::Status made = multiply(library_.Matmul, weight, {call.a, call.b[w], call.out[w]},
                                     room_, room_bytes_, host_room_.data(), host_room_.size());
    if (!succeeded(made, "make a product", diagnostics)) return false;
  }
  return true;
}

}  // namespace

OtherGemmLibrary cublasmp_library(bool on_host, std::shared_ptr<SharedLibraries> shared) {
  const std::string no_nccl = nccl_library(on_host, nullptr).missing;
  if (!no_nccl.empty()) return {.make = {}, .missing = "it needs NCCL: " + no_nccl};
  const auto found = mp::find_library(*nccl::real_nccl());
  if (!found) return {.make = {}, .missing = found.error().text()};
  const auto make = [library = *found, shared = std::move(shared)](
                        Communicator& communicator, const OverlapConfig& config,
                        Diagnostics& diagnostics) -> std::unique_ptr<OtherGemms> {
    auto ranks = NcclRanks::take(communicator, *shared, diagnostics);
    if (ranks == nullptr) return nullptr;
    auto gemms = std::make_unique<CublasMpGemms>(std::move(ranks), library, config);
    return gemms->make(*shared, diagnostics) ? std::move(gemms) : nullptr;
  };
  return {.make = make,
          .missing = "",
          .first_uncaptured = mp::why_first_uncaptured(*nccl::real_nccl())};
}

}  // namespace mscclc::capi
