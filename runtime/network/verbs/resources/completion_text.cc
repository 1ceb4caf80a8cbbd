#include "runtime/network/verbs/resources/completion_text.h"

#include <fmt/format.h>

namespace mscclc::verbs {
namespace {

struct Meaning {
  ibv_wc_status status;
  const char* text;
};

/// What it means, and what to check. Others are defects of a device, its driver or of this library.
constexpr Meaning kMeanings[] = {
    {IBV_WC_LOC_LEN_ERR, "local length error: the order is longer than the device takes"},
    {IBV_WC_LOC_QP_OP_ERR,
     "local queue pair error: the device cannot do this; check its firmware and driver"},
    {IBV_WC_LOC_PROT_ERR,
     "local protection error: memory of this rank was freed while it was sent; a buffer must stay "
     "until the call that uses it has ended"},
    {IBV_WC_WR_FLUSH_ERR, "flushed: an earlier order of its queue pair has failed"},
    {IBV_WC_BAD_RESP_ERR, "bad response: the peer's device has answered something else"},
    {IBV_WC_REM_INV_REQ_ERR,
     "remote invalid request: the peer's device does not take such an order; check that both ends "
     "have devices with RDMA writes and atomics, or set MSCCLC_IBV_MODE=host-no-atomic; devices in "
     "software (rdma_rxe) say so, too, after packets were lost or late: set a longer "
     "MSCCLC_IB_TIMEOUT"},
    {IBV_WC_REM_ACCESS_ERR,
     "remote access error: the peer has not shared that memory, or has freed it; a buffer must "
     "stay "
     "until all ranks have ended the calls that use it"},
    {IBV_WC_REM_OP_ERR,
     "remote operation error: the peer's device could not do it; check the log of its system"},
    {IBV_WC_RETRY_EXC_ERR,
     "transport retries exceeded: the peer's device does not answer; check that its process lives, "
     "its port is up, the GID (MSCCLC_IB_GID_INDEX) is one that its network routes, and on lossy "
     "networks MSCCLC_IB_TIMEOUT"},
    {IBV_WC_RNR_RETRY_EXC_ERR,
     "receiver not ready: the peer takes no messages; check that its process is not stopped"},
    {IBV_WC_REM_ABORT_ERR, "aborted by the peer's device; check the log of its system"},
    {IBV_WC_FATAL_ERR, "fatal error of the device; check the log of this system"},
    {IBV_WC_RESP_TIMEOUT_ERR, "response timed out: the peer's device does not answer"},
};

}  // namespace

std::string status_text(ibv_wc_status status, uint32_t vendor_error) {
  const char* text = "an error of the device or its driver; check the log of this system";
  for (const Meaning& meaning : kMeanings) {
    if (meaning.status == status) text = meaning.text;
  }
  return fmt::format("{} (status {}, vendor's {:#x})", text, static_cast<int>(status),
                     vendor_error);
}

}  // namespace mscclc::verbs
