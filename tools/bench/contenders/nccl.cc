// NCCL as a contender. The few functions that are needed are declared here and found at run time,
// so that the benchmark builds and runs without NCCL.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/bench/measure/contender.h"

namespace mscclc::bench {
namespace {

// NCCL's C interface (nccl.h, version 2): https://docs.nvidia.com/deeplearning/nccl
using Comm = struct ncclComm*;
struct UniqueId {
  char internal[128];
};
using Window = struct ncclWindow*;
using Result = int;
constexpr int kSymmetricWindow = 1;  // NCCL_WIN_COLL_SYMMETRIC

struct Library {
  Result (*GetVersion)(int*);
  Result (*GetUniqueId)(UniqueId*);
  Result (*CommInitRank)(Comm*, int, UniqueId, int);
  Result (*CommDestroy)(Comm);
  Result (*CommWindowRegister)(Comm, void*, size_t, Window*, int);
  Result (*GroupStart)();
  Result (*GroupEnd)();
  Result (*Send)(const void*, size_t, int, int, Comm, cudaStream_t);
  Result (*Recv)(void*, size_t, int, int, Comm, cudaStream_t);
  Result (*AllReduce)(const void*, void*, size_t, int, int, Comm, cudaStream_t);
  Result (*AllGather)(const void*, void*, size_t, int, Comm, cudaStream_t);
  Result (*ReduceScatter)(const void*, void*, size_t, int, int, Comm, cudaStream_t);
  Result (*Broadcast)(const void*, void*, size_t, int, int, Comm, cudaStream_t);
  Result (*Reduce)(const void*, void*, size_t, int, int, int, Comm, cudaStream_t);
  const char* (*GetErrorString)(Result);
};

/// Fills `library`; `file` is where the library was found.
bool load_library(Library& library, std::string& file, Diagnostics& diagnostics) {
  const char* named = std::getenv("MSCCLC_NCCL");
  const char* path = named != nullptr ? named : "libnccl.so.2";
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    diagnostics.error("no-nccl", {}, fmt::format("cannot load NCCL: {}", dlerror()))
        .notes.push_back({"MSCCLC_NCCL names the library, 'libnccl.so.2' if it is not set"});
    return false;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(handle, fmt::format("nccl{}", name).c_str()));
    if (function != nullptr || std::strcmp(name, "CommWindowRegister") == 0) return true;
    diagnostics.error("no-nccl", {}, fmt::format("'{}' has no function nccl{}", path, name));
    return false;
  };
  const bool found =
      find(library.GetVersion, "GetVersion") && find(library.GetUniqueId, "GetUniqueId") &&
      find(library.CommInitRank, "CommInitRank") && find(library.CommDestroy, "CommDestroy") &&
      find(library.CommWindowRegister, "CommWindowRegister") &&
      find(library.GroupStart, "GroupStart") && find(library.GroupEnd, "GroupEnd") &&
      find(library.Send, "Send") && find(library.Recv, "Recv") &&
      find(library.AllReduce, "AllReduce") && find(library.AllGather, "AllGather") &&
      find(library.ReduceScatter, "ReduceScatter") && find(library.Broadcast, "Broadcast") &&
      find(library.Reduce, "Reduce") && find(library.GetErrorString, "GetErrorString");
  Dl_info where{};
  if (found && dladdr(reinterpret_cast<void*>(library.AllReduce), &where) != 0) {
    file = where.dli_fname;
  }
  return found;
}

std::optional<int> type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::i8:
      return 0;
    case Dtype::u8:
      return 1;
    case Dtype::i32:
      return 2;
    case Dtype::u32:
      return 3;
    case Dtype::i64:
      return 4;
    case Dtype::u64:
      return 5;
    case Dtype::f16:
      return 6;
    case Dtype::f32:
      return 7;
    case Dtype::f64:
      return 8;
    case Dtype::bf16:
      return 9;
    case Dtype::e4m3:
      return 10;
    case Dtype::e5m2:
      return 11;
    default:
      return std::nullopt;
  }
}

int op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return 1;
    case ReduceOp::max:
      return 2;
    case ReduceOp::min:
      return 3;
    case ReduceOp::avg:
      return 4;
    default:
      return 0;
  }
}

class NcclContender : public Contender {
 public:
  NcclContender(Communicator& communicator, bool symmetric)
      : communicator_(communicator), symmetric_(symmetric) {}
  ~NcclContender() override {
    if (messages_ != comm_ && messages_ != nullptr) library_.CommDestroy(messages_);
    if (comm_ != nullptr) library_.CommDestroy(comm_);
  }

  bool open(const Memory& memory, std::string& file, Diagnostics& diagnostics) {
    const bool loaded = load_library(library_, file, diagnostics);
    if (any_unable(communicator_, loaded, diagnostics)) return false;
    int version = 0;
    if (!succeeded(library_.GetVersion(&version), "say its version", diagnostics) ||
        !make_communicator(comm_, diagnostics)) {
      return false;
    }
    messages_ = comm_;
    if (!symmetric_) {
      return version >= kMayMix || make_communicator(messages_, diagnostics);
    }
    Window window = nullptr;
    return library_.CommWindowRegister != nullptr &&
           succeeded(library_.CommWindowRegister(comm_, memory.data(), memory.bytes(), &window,
                                                 kSymmetricWindow),
                     "register a symmetric window", diagnostics);
  }

  std::string name() const override { return symmetric_ ? "nccl-symmetric" : "nccl"; }
  Role role() const override { return Role::baseline; }
  std::string ordered_by() const override { return "the library"; }

  // Sends and receives in place would overtake one another.
  bool prepare(const Workload& workload, Diagnostics&) override {
    workload_ = workload;
    const CollectiveKind kind = workload.contract->kind;
    const bool exchanges = kind == CollectiveKind::alltoall || kind == CollectiveKind::sendrecv;
    return type_of(workload.dtype).has_value() &&
           (symmetric_ ? has_window_kernel(kind) : can_do(kind)) &&
           !(exchanges && workload.in_place);
  }

  bool launch(cudaStream_t stream, Diagnostics& diagnostics) override {
    return succeeded(start(stream), "start a collective", diagnostics);
  }

 private:
  /// Before this version a collective hangs whose buffers a send of the same communicator has
  /// registered first, as those of a captured call are: it has no addresses of them at its peers
  /// (https://github.com/NVIDIA/nccl/issues/1859). So sends have a communicator of their own there.
  static constexpr int kMayMix = 22902;

  /// Collective.
  bool make_communicator(Comm& comm, Diagnostics& diagnostics) {
    UniqueId id{};
    if (communicator_.rank() == 0 &&
        !succeeded(library_.GetUniqueId(&id), "make an id", diagnostics)) {
      return false;
    }
    std::vector<std::vector<uint8_t>> all;
    const auto* bytes_of_id = reinterpret_cast<const uint8_t*>(&id);
    if (!communicator_.bootstrap().all_gather({bytes_of_id, sizeof id}, "NCCL's id", all,
                                              diagnostics) ||
        all[0].size() != sizeof id) {
      return false;
    }
    std::memcpy(&id, all[0].data(), sizeof id);
    comm = nullptr;
    return succeeded(library_.CommInitRank(&comm, static_cast<int>(communicator_.size()), id,
                                           static_cast<int>(communicator_.rank())),
                     "make a communicator", diagnostics);
  }

  static bool can_do(CollectiveKind kind) {
    switch (kind) {
      case CollectiveKind::allreduce:
      case CollectiveKind::allgather:
      case CollectiveKind::reducescatter:
      case CollectiveKind::alltoall:
      case CollectiveKind::broadcast:
      case CollectiveKind::reduce:
      case CollectiveKind::sendrecv:
        return true;
      default:
        return false;
    }
  }

  /// NCCL has kernels over symmetric windows for these alone. Others run as without a window, and
  /// NCCL 2.28.9's broadcast of 4 MiB out of one does not end.
  static bool has_window_kernel(CollectiveKind kind) {
    return kind == CollectiveKind::allreduce || kind == CollectiveKind::allgather ||
           kind == CollectiveKind::reducescatter;
  }

  Result start(cudaStream_t stream) {
    const Workload& w = workload_;
    const int type = *type_of(w.dtype), op = op_of(w.op);
    const size_t count = w.part / info(w.dtype).bytes;
    const auto root = static_cast<int>(w.contract->root);
    switch (w.contract->kind) {
      case CollectiveKind::allreduce:
        return library_.AllReduce(w.input, w.output, count, type, op, comm_, stream);
      case CollectiveKind::allgather:
        return library_.AllGather(w.input, w.output, count, type, comm_, stream);
      case CollectiveKind::reducescatter:
        return library_.ReduceScatter(w.input, w.output, count, type, op, comm_, stream);
      case CollectiveKind::broadcast:
        return library_.Broadcast(w.input, w.output, count, type, root, comm_, stream);
      case CollectiveKind::reduce:
        return library_.Reduce(w.input, w.output, count, type, op, root, comm_, stream);
      case CollectiveKind::alltoall:
        return exchange(stream, count, type);
      default:
        return shift(stream, count, type);
    }
  }

  Result exchange(cudaStream_t stream, size_t count, int type) {
    const Workload& w = workload_;
    library_.GroupStart();
    for (uint32_t q = 0; q < communicator_.size(); ++q) {
      const auto peer = static_cast<int>(q);
      library_.Send(w.input + q * w.part, count, type, peer, messages_, stream);
      library_.Recv(w.output + q * w.part, count, type, peer, messages_, stream);
    }
    return library_.GroupEnd();
  }

  Result shift(cudaStream_t stream, size_t count, int type) {
    const auto n = static_cast<int64_t>(communicator_.size());
    const auto rank = static_cast<int64_t>(communicator_.rank());
    const int64_t by = workload_.contract->shift;
    library_.GroupStart();
    library_.Send(workload_.input, count, type, static_cast<int>(((rank + by) % n + n) % n),
                  messages_, stream);
    library_.Recv(workload_.output, count, type, static_cast<int>(((rank - by) % n + n) % n),
                  messages_, stream);
    return library_.GroupEnd();
  }

  bool succeeded(Result result, const std::string& attempt, Diagnostics& diagnostics) const {
    if (result == 0) return true;
    diagnostics.error("nccl", {},
                      fmt::format("NCCL cannot {}: {}", attempt, library_.GetErrorString(result)));
    return false;
  }

  Communicator& communicator_;
  const bool symmetric_;
  Library library_{};
  Comm comm_ = nullptr;
  Comm messages_ = nullptr;  ///< of sends and receives
  Workload workload_;
};

}  // namespace

std::unique_ptr<Contender> make_nccl_contender(Communicator& communicator, bool symmetric,
                                               const Memory& memory, std::string& file,
                                               Diagnostics& diagnostics) {
  auto made = std::make_unique<NcclContender>(communicator, symmetric);
  return made->open(memory, file, diagnostics) ? std::move(made) : nullptr;
}

}  // namespace mscclc::bench
