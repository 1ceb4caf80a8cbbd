// NCCL's collectives for GEMMs, by whatever NCCL this process finds.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/api/bootstrap.h"
#include "runtime/api/call.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/doors/c/overlap_args.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::capi {
namespace {

using nccl::InsideReal;
using nccl::RealNccl;

bool succeeded_in(const RealNccl& real, ncclResult_t result, const char* what,
                  Diagnostics& diagnostics) {
  if (result == ncclSuccess) return true;
  diagnostics.error("peer-failed", {},
                    fmt::format("NCCL cannot {}: {}", what, real.GetErrorString(result)));
  return false;
}

class NcclCollectives final : public OtherCollectives {
 public:
  NcclCollectives(const RealNccl& real, ncclComm_t comm, Communicator& communicator)
      : real_(real), comm_(comm), communicator_(communicator) {}
  ~NcclCollectives() override {
    const InsideReal inside;
    (void)real_.CommDestroy(comm_);
  }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  bool call(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) override {
    // On processors there is only a fake for tests, which acts at once.
    if (is_host_stream(stream) && !communicator_.device().synchronize(stream, diagnostics)) {
      return false;
    }
    const InsideReal inside;
    return succeeded_in(real_, put(call, static_cast<cudaStream_t>(stream)), "make a collective",
                        diagnostics);
  }

 private:
  ncclResult_t put(const CollectiveCall& c, cudaStream_t stream) const {
    // What is only moved moves as bytes: older versions know no floats of 8 bits.
    const size_t bytes = c.count * info(c.dtype).bytes;
    const ncclDataType_t type = nccl::nccl_type_of(c.dtype);
    const ncclDataType_t as_bytes = nccl::nccl_type_of(Dtype::u8);
    const ncclRedOp_t sum = nccl::nccl_op_of(ReduceOp::sum);
    if (c.kind == CollectiveKind::allgather) {
      return real_.AllGather(c.input, c.output, bytes, as_bytes, comm_, stream);
    }
    if (c.kind == CollectiveKind::alltoall) return exchange(c, bytes, stream);
    if (c.kind == CollectiveKind::reducescatter) {
      return real_.ReduceScatter(c.input, c.output, c.count, type, sum, comm_, stream);
    }
    return real_.AllReduce(c.input, c.output, c.count, type, sum, comm_, stream);
  }

  ncclResult_t exchange(const CollectiveCall& c, size_t bytes, cudaStream_t stream) const {
    const ncclDataType_t as_bytes = nccl::nccl_type_of(Dtype::u8);
    ncclResult_t result = real_.GroupStart();
    for (uint32_t p = 0; p < communicator_.size() && result == ncclSuccess; ++p) {
      const auto peer = static_cast<int>(p);
      result = real_.Send(static_cast<const uint8_t*>(c.input) + p * bytes, bytes, as_bytes, peer,
                          comm_, stream);
      if (result != ncclSuccess) break;
      result = real_.Recv(static_cast<uint8_t*>(c.output) + p * bytes, bytes, as_bytes, peer, comm_,
                          stream);
    }
    const ncclResult_t ended = real_.GroupEnd();
    return result == ncclSuccess ? ended : result;
  }

  const RealNccl& real_;
  const ncclComm_t comm_;
  Communicator& communicator_;
};

/// Collective: the ranks of a communicator as one of NCCL's.
std::unique_ptr<OtherCollectives> make_nccl(Communicator& communicator, Diagnostics& diagnostics) {
  const RealNccl& real = *nccl::real_nccl();
  ncclUniqueId id = {};
  const InsideReal inside;
  const bool able = communicator.device().bind_thread(diagnostics) &&
                    (communicator.rank() != 0 ||
                     succeeded_in(real, real.GetUniqueId(&id), "make an id", diagnostics));
  std::vector<uint8_t> own(able ? sizeof id : 0);
  if (able) std::memcpy(own.data(), &id, sizeof id);
  std::vector<std::vector<uint8_t>> all;
  if (!communicator.bootstrap().all_gather(own, "make NCCL's communicator", all, diagnostics)) {
    return nullptr;
  }
  const auto unable =
      std::ranges::find_if(all, [](const auto& message) { return message.size() != sizeof id; });
  if (unable != all.end()) {
    if (able) {
      diagnostics.error("peer-failed", {},
                        fmt::format("rank {} cannot use NCCL", unable - all.begin()));
    }
    return nullptr;
  }
  std::memcpy(&id, all[0].data(), sizeof id);
  ncclComm_t comm = nullptr;
  const ncclResult_t made = real.CommInitRank(&comm, static_cast<int>(communicator.size()), id,
                                              static_cast<int>(communicator.rank()));
  if (!succeeded_in(real, made, "make a communicator", diagnostics)) return nullptr;
  return std::make_unique<NcclCollectives>(real, comm, communicator);
}

}  // namespace

OtherLibrary nccl_library(bool on_host) {
  if (on_host && !Environment::of_process().has(Variable::MSCCLC_NCCL)) {
    return {.make = {}, .missing = "NCCL needs GPUs"};
  }
  if (nccl::real_nccl() == nullptr) {
    return {.make = {}, .missing = nccl::why_no_real()};
  }
  return {.make = make_nccl, .missing = ""};
}

}  // namespace mscclc::capi
