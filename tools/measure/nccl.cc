#include "tools/measure/nccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "ir/diagnostics/first_message.h"
#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

/// Functions of the library, as runtime/doors/nccl/abi lists them; those that it lacks are null.
struct NcclFunctions {
#define API(since, how, result, name, parameters, arguments) result(*name) parameters = nullptr;
#include "runtime/doors/nccl/abi/api.def"
#undef API
};

/// What every version has, and this needs some of.
const char* missing_of(const NcclFunctions& nccl) {
#define API(since, how, result, name, parameters, arguments) \
  if (since <= 20400 && nccl.name == nullptr) return "nccl" #name;
#include "runtime/doors/nccl/abi/api.def"
#undef API
  // Send and receive came with 2.7.
  return nccl.Send == nullptr || nccl.Recv == nullptr ? "ncclSend" : nullptr;
}

/// Fills `nccl`; `file` is where the library was found.
bool load_nccl(NcclFunctions& nccl, std::string& file, Diagnostics& diagnostics) {
  const auto named = Environment::of_process().text(Variable::MSCCLC_NCCL, diagnostics);
  if (!named) return false;
  const std::string path = named->empty() ? "libnccl.so.2" : *named;
  const auto library = open_library(path);
  if (!library) {
    diagnostics.error("no-nccl", {}, fmt::format("cannot load NCCL: {}", library.error().text()))
        .notes.push_back({"MSCCLC_NCCL names the library, 'libnccl.so.2' if it is not set"});
    return false;
  }
#define API(since, how, result, name, parameters, arguments) \
  (void)find_function(*library, "nccl" #name, nccl.name);
#include "runtime/doors/nccl/abi/api.def"
#undef API
  if (const char* name = missing_of(nccl)) {
    diagnostics.error("no-nccl", {}, fmt::format("'{}' has no function {}", path, name));
    return false;
  }
  Dl_info where{};
  if (::dladdr(reinterpret_cast<void*>(nccl.AllReduce), &where) != 0) file = where.dli_fname;
  return true;
}

bool has_type(Dtype dtype) {
  for (int type = 0; type < nccl::kTypes; ++type) {
    if (nccl::dtype_of(type) == dtype) return true;
  }
  return false;
}

}  // namespace

struct NcclRank::State {
  explicit State(Bootstrap& meeting) : bootstrap(meeting) {}

  [[nodiscard]] bool open(Diagnostics& diagnostics);
  [[nodiscard]] bool make_communicator(ncclComm_t& made, Diagnostics& diagnostics);
  ncclResult_t start(const NcclCall& call, cudaStream_t stream);
  ncclResult_t exchange(const NcclCall& call, size_t count, int type, cudaStream_t stream);
  ncclResult_t shift(const NcclCall& call, size_t count, int type, cudaStream_t stream);
  bool succeeded(ncclResult_t result, const std::string& attempt, Diagnostics& diagnostics) const;

  Bootstrap& bootstrap;
  NcclFunctions functions{};
  std::string file;
  int version = 0;
  ncclComm_t comm = nullptr;
  ncclComm_t messages = nullptr;  ///< of sends and receives
};

namespace {

/// Before this version a collective hangs whose buffers a send of the same communicator has
/// registered first, as those of a captured call are: it has no addresses of them at its peers
/// (https://github.com/NVIDIA/nccl/issues/1859). So sends have a communicator of their own there.
constexpr int kMayMix = 22902;

/// Collective: does every rank have the library? Else what the first that has none reports.
bool all_have_nccl(Bootstrap& bootstrap, bool here, Diagnostics& diagnostics) {
  const std::string text = here ? "" : first_message(diagnostics, "it has no NCCL");
  std::vector<std::vector<uint8_t>> all;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  if (!bootstrap.all_gather({bytes, text.size()}, "whether NCCL is there", all, diagnostics)) {
    return false;
  }
  for (size_t r = 0; here && r < all.size(); ++r) {
    if (all[r].empty()) continue;
    const std::string why(all[r].begin(), all[r].end());
    diagnostics.error("no-nccl", {}, fmt::format("rank {}: {}", r, why));
    return false;
  }
  return here;
}

}  // namespace

bool NcclRank::State::open(Diagnostics& diagnostics) {
  const bool loaded = load_nccl(functions, file, diagnostics);
  if (!all_have_nccl(bootstrap, loaded, diagnostics)) return false;
  if (!succeeded(functions.GetVersion(&version), "say its version", diagnostics) ||
      !make_communicator(comm, diagnostics)) {
    return false;
  }
  messages = comm;
  return version >= kMayMix || make_communicator(messages, diagnostics);
}

bool NcclRank::State::make_communicator(ncclComm_t& made, Diagnostics& diagnostics) {
  ncclUniqueId id{};
  if (bootstrap.rank() == 0 && !succeeded(functions.GetUniqueId(&id), "make an id", diagnostics)) {
    return false;
  }
  std::vector<std::vector<uint8_t>> all;
  const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
  if (!bootstrap.all_gather({bytes, sizeof id}, "NCCL's id", all, diagnostics) ||
      all[0].size() != sizeof id) {
    return false;
  }
  std::memcpy(&id, all[0].data(), sizeof id);
  made = nullptr;
  return succeeded(functions.CommInitRank(&made, static_cast<int>(bootstrap.size()), id,
                                          static_cast<int>(bootstrap.rank())),
                   "make a communicator", diagnostics);
}

ncclResult_t NcclRank::State::start(const NcclCall& call, cudaStream_t stream) {
  const int type = nccl::nccl_type_of(call.dtype);
  const int op = call.contract->reduces() ? nccl::nccl_op_of(call.op) : 0;
  const size_t count = call.part / info(call.dtype).bytes;
  const auto root = static_cast<int>(call.contract->root);
  switch (call.contract->kind) {
    case CollectiveKind::allreduce:
      return functions.AllReduce(call.input, call.output, count, type, op, comm, stream);
    case CollectiveKind::allgather:
      return functions.AllGather(call.input, call.output, count, type, comm, stream);
    case CollectiveKind::reducescatter:
      return functions.ReduceScatter(call.input, call.output, count, type, op, comm, stream);
    case CollectiveKind::broadcast:
      return functions.Broadcast(call.input, call.output, count, type, root, comm, stream);
    case CollectiveKind::reduce:
      return functions.Reduce(call.input, call.output, count, type, op, root, comm, stream);
    case CollectiveKind::alltoall:
      return exchange(call, count, type, stream);
    default:
      return shift(call, count, type, stream);
  }
}

ncclResult_t NcclRank::State::exchange(const NcclCall& call, size_t count, int type,
                                       cudaStream_t stream) {
  functions.GroupStart();
  for (uint32_t q = 0; q < bootstrap.size(); ++q) {
    const auto other = static_cast<int>(q);
    functions.Send(call.input + q * call.part, count, type, other, messages, stream);
    functions.Recv(call.output + q * call.part, count, type, other, messages, stream);
  }
  return functions.GroupEnd();
}

ncclResult_t NcclRank::State::shift(const NcclCall& call, size_t count, int type,
                                    cudaStream_t stream) {
  const auto n = static_cast<int64_t>(bootstrap.size());
  const auto rank = static_cast<int64_t>(bootstrap.rank());
  const int64_t by = call.contract->shift;
  functions.GroupStart();
  functions.Send(call.input, count, type, static_cast<int>(((rank + by) % n + n) % n), messages,
                 stream);
  functions.Recv(call.output, count, type, static_cast<int>(((rank - by) % n + n) % n), messages,
                 stream);
  return functions.GroupEnd();
}

bool NcclRank::State::succeeded(ncclResult_t result, const std::string& attempt,
                                Diagnostics& diagnostics) const {
  if (result == ncclSuccess) return true;
  diagnostics.error("nccl", {},
                    fmt::format("NCCL cannot {}: {}", attempt, functions.GetErrorString(result)));
  return false;
}

NcclRank::NcclRank(std::unique_ptr<State> state) : state_(std::move(state)) {}

NcclRank::~NcclRank() {
  const ncclComm_t comm = state_->comm, messages = state_->messages;
  if (messages != comm && messages != nullptr) state_->functions.CommDestroy(messages);
  if (comm != nullptr) state_->functions.CommDestroy(comm);
}

std::unique_ptr<NcclRank> NcclRank::make(Bootstrap& bootstrap, Diagnostics& diagnostics) {
  std::unique_ptr<NcclRank> made(new NcclRank(std::make_unique<State>(bootstrap)));
  return made->state_->open(diagnostics) ? std::move(made) : nullptr;
}

std::string NcclRank::version() const {
  // 22809 is 2.28.9; before 2.9 it was 2804.
  const int v = state_->version;
  return v < 10000 ? fmt::format("{}.{}.{}", v / 1000, v / 100 % 10, v % 100)
                   : fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

const std::string& NcclRank::file() const { return state_->file; }

bool NcclRank::register_window(void* data, uint64_t bytes, Diagnostics& diagnostics) {
  ncclWindow_t window = nullptr;
  return state_->functions.CommWindowRegister != nullptr &&
         state_->succeeded(state_->functions.CommWindowRegister(state_->comm, data, bytes, &window,
                                                                kNcclWinCollSymmetric),
                           "register a symmetric window", diagnostics);
}

bool NcclRank::can_do(const Contract& contract, Dtype dtype, bool in_place) {
  if (!has_type(dtype)) return false;
  switch (contract.kind) {
    case CollectiveKind::allreduce:
    case CollectiveKind::allgather:
    case CollectiveKind::reducescatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return true;
    case CollectiveKind::alltoall:
    case CollectiveKind::sendrecv:
      return !in_place;
    default:
      return false;
  }
}

/// Others run as without a window, and NCCL 2.28.9's broadcast of 4 MiB out of one does not end.
bool NcclRank::has_window_kernel(CollectiveKind kind) {
  return kind == CollectiveKind::allreduce || kind == CollectiveKind::allgather ||
         kind == CollectiveKind::reducescatter;
}

bool NcclRank::start(const NcclCall& call, StreamHandle stream, Diagnostics& diagnostics) {
  return state_->succeeded(state_->start(call, static_cast<cudaStream_t>(stream)),
                           "start a collective", diagnostics);
}

}  // namespace mscclc
