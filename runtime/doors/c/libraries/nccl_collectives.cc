// NCCL's collectives for GEMMs, by whatever NCCL this process finds.
#include <utility>

#include "runtime/api/call.h"
#include "runtime/doors/c/libraries/nccl_ranks.h"
#include "runtime/doors/c/libraries/other_libraries.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::capi {
namespace {

class NcclCollectives final : public OtherCollectives {
 public:
  explicit NcclCollectives(std::shared_ptr<NcclRanks> ranks) : ranks_(std::move(ranks)) {}

  bool call(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) override {
    if (!ranks_->begin_on(stream, diagnostics)) return false;
    const auto entered = ranks_->enter(diagnostics);
    if (!entered) return false;
    const nccl::InsideReal inside;
    return ranks_->succeeded(put(call, static_cast<cudaStream_t>(stream)), "make a collective",
                             diagnostics);
  }
  void abort() override { ranks_->abort(); }

 private:
  ncclResult_t put(const CollectiveCall& c, cudaStream_t stream) const {
    const nccl::RealNccl& real = ranks_->real();
    const ncclComm_t comm = ranks_->comm();
    // What is only moved moves as bytes: older versions know no floats of 8 bits.
    const size_t bytes = c.count * info(c.dtype).bytes;
    const ncclDataType_t type = nccl::nccl_type_of(c.dtype);
    const ncclDataType_t as_bytes = nccl::nccl_type_of(Dtype::u8);
    const ncclRedOp_t sum = nccl::nccl_op_of(ReduceOp::sum);
    const bool rows = info(c.kind).has_rows(Side::input);
    if (!info(c.kind).adds_up()) {
      return rows ? exchange(c, bytes, stream)
                  : real.AllGather(c.input, c.output, bytes, as_bytes, comm, stream);
    }
    return rows ? real.ReduceScatter(c.input, c.output, c.count, type, sum, comm, stream)
                : real.AllReduce(c.input, c.output, c.count, type, sum, comm, stream);
  }

  ncclResult_t exchange(const CollectiveCall& c, size_t bytes, cudaStream_t stream) const {
    const nccl::RealNccl& real = ranks_->real();
    const ncclDataType_t as_bytes = nccl::nccl_type_of(Dtype::u8);
    ncclResult_t result = real.GroupStart();
    for (uint32_t p = 0; p < ranks_->communicator().size() && result == ncclSuccess; ++p) {
      const auto peer = static_cast<int>(p);
      result = real.Send(static_cast<const uint8_t*>(c.input) + p * bytes, bytes, as_bytes, peer,
                         ranks_->comm(), stream);
      if (result != ncclSuccess) break;
      result = real.Recv(static_cast<uint8_t*>(c.output) + p * bytes, bytes, as_bytes, peer,
                         ranks_->comm(), stream);
    }
    const ncclResult_t ended = real.GroupEnd();
    return result == ncclSuccess ? ended : result;
  }

  const std::shared_ptr<NcclRanks> ranks_;
};

}  // namespace

OtherLibrary nccl_library(bool on_host, std::shared_ptr<SharedLibraries> shared) {
  if (on_host && !Environment::of_process().has(Variable::MSCCLC_NCCL)) {
    return {.make = {}, .missing = "NCCL needs GPUs"};
  }
  if (nccl::real_nccl() == nullptr) {
    return {.make = {}, .missing = nccl::why_no_real()};
  }
  const auto make = [shared = std::move(shared)](
                        Communicator& communicator,
                        Diagnostics& diagnostics) -> std::unique_ptr<OtherCollectives> {
    SharedLibraries none;
    auto ranks = NcclRanks::take(communicator, shared != nullptr ? *shared : none, diagnostics);
    if (ranks == nullptr) return nullptr;
    return std::make_unique<NcclCollectives>(std::move(ranks));
  };
  return {.make = make, .missing = ""};
}

}  // namespace mscclc::capi
