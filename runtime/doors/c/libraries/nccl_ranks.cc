#include "runtime/doors/c/libraries/nccl_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::capi {
namespace {

using nccl::InsideReal;
using nccl::RealNccl;

bool succeeded_in(const RealNccl& real, ncclResult_t result, std::string_view what,
                  Diagnostics& diagnostics) {
  if (result == ncclSuccess) return true;
  diagnostics.error("peer-failed", {},
                    fmt::format("NCCL cannot {}: {}", what, real.GetErrorString(result)));
  return false;
}

/// Collective: `bytes` of each rank, `own` of this one; ranks that are unable give none. False: one
/// is, or has gone, which is reported, by those that are able, too.
bool gather_of_able(const Communicator& communicator, std::span<const uint8_t> own, size_t bytes,
                    std::string_view step, std::string_view what,
                    std::vector<std::vector<uint8_t>>& all, Diagnostics& diagnostics) {
  if (!communicator.bootstrap().all_gather(own, step, all, diagnostics)) return false;
  const auto unable =
      std::ranges::find_if(all, [&](const auto& given) { return given.size() != bytes; });
  if (unable == all.end()) return true;
  if (!own.empty()) {
    diagnostics.error("peer-failed", {},
                      fmt::format("rank {} cannot {}", unable - all.begin(), what));
  }
  return false;
}

std::vector<uint8_t> bytes_of(const ncclUniqueId& id) {
  std::vector<uint8_t> bytes(sizeof id);
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

/// Collective: the id that rank 0 has made. False: reported.
bool share_id(const RealNccl& real, Communicator& communicator, ncclUniqueId& id,
              Diagnostics& diagnostics) {
  const bool able = communicator.device().bind_thread(diagnostics) &&
                    (communicator.rank() != 0 ||
                     succeeded_in(real, real.GetUniqueId(&id), "make an id", diagnostics));
  const std::vector<uint8_t> own = able ? bytes_of(id) : std::vector<uint8_t>();
  std::vector<std::vector<uint8_t>> all;
  if (!gather_of_able(communicator, own, sizeof id, "make NCCL's communicator", "use NCCL", all,
                      diagnostics)) {
    return false;
  }
  std::memcpy(&id, all[0].data(), sizeof id);
  return true;
}

}  // namespace

std::shared_ptr<NcclRanks> NcclRanks::take(Communicator& communicator, SharedLibraries& shared,
                                           Diagnostics& diagnostics) {
  std::shared_ptr<NcclRanks> ranks = shared.nccl.lock();
  Diagnostics ignored;  // a thread that cannot use the device says so below
  const bool has = ranks != nullptr && communicator.device().bind_thread(ignored);
  const std::vector<uint8_t> own = has ? ranks->name() : std::vector<uint8_t>();
  std::vector<std::vector<uint8_t>> all;
  // A rank may have freed its last object, and another not yet.
  if (!communicator.bootstrap().all_gather(own, "share NCCL's communicator", all, diagnostics)) {
    return nullptr;
  }
  const bool alike =
      std::ranges::all_of(all, [&](const auto& one) { return !one.empty() && one == all.front(); });
  if (!alike) shared.nccl = ranks = make(communicator, diagnostics);
  return ranks;
}

std::shared_ptr<NcclRanks> NcclRanks::make(Communicator& communicator, Diagnostics& diagnostics) {
  const RealNccl& real = *nccl::real_nccl();
  ncclUniqueId id = {};
  const InsideReal inside;
  if (!share_id(real, communicator, id, diagnostics)) return nullptr;
  ncclComm_t comm = nullptr;
  const ncclResult_t made = real.CommInitRank(&comm, static_cast<int>(communicator.size()), id,
                                              static_cast<int>(communicator.rank()));
  if (!succeeded_in(real, made, "make a communicator", diagnostics)) {
    communicator.abort(diagnostics);  // others may have theirs, or wait in NCCL
    return nullptr;
  }
  std::shared_ptr<NcclRanks> ranks(new NcclRanks(real, id, comm, communicator));
  ranks->watch_ = Watchdog::watch([own = ranks.get()] { own->look(); }, diagnostics);
  if (ranks->watch_ != nullptr) return ranks;
  ranks->abort();
  communicator.abort(diagnostics);
  return nullptr;
}

std::vector<uint8_t> NcclRanks::name() {
  const std::lock_guard lock(mutex_);
  return aborted_ ? std::vector<uint8_t>() : bytes_of(id_);
}

bool NcclRanks::all_are_able(bool able, const char* what, Diagnostics& diagnostics) const {
  std::vector<std::vector<uint8_t>> all;
  const std::vector<uint8_t> own(able ? 1 : 0);
  return gather_of_able(communicator_, own, 1, what, what, all, diagnostics);
}

NcclRanks::~NcclRanks() {
  watch_.reset();
  if (aborting_.joinable()) aborting_.join();
  Diagnostics why;
  // What is destroyed waits for the other ranks.
  if (communicator_.has_failed(why)) abort();
  if (aborted_) return;
  const InsideReal inside;
  (void)real_.CommDestroy(comm_);
}

// Without a thread for it, the next run aborts, as it does in any case.
void NcclRanks::look() {
  Diagnostics why;
  if (failed_ || !communicator_.has_failed(why)) return;
  failed_ = true;
  aborting_ = quiet_thread("mscclc-nccl", [this] { abort(); });
}

NcclRanks::Entered NcclRanks::enter(Diagnostics& diagnostics) {
  {
    const std::lock_guard lock(mutex_);
    if (!aborted_) {
      ++inside_;
      return Entered(this);
    }
  }
  if (!communicator_.has_failed(diagnostics)) {
    diagnostics.error("aborted", {}, "NCCL's communicator is aborted");
  }
  return nullptr;
}

void NcclRanks::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (--inside_ > 0 || !aborted_) return;
  }
  const InsideReal inside;
  (void)real_.CommAbort(comm_);
}

void NcclRanks::abort() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(aborted_, true)) return;
    ++inside_;
  }
  const Entered self(this);
  if (real_.CommRevoke == nullptr) return;
  const InsideReal inside;
  (void)real_.CommRevoke(comm_, 0);
}

bool NcclRanks::begin_on(StreamHandle stream, Diagnostics& diagnostics) const {
  return !is_host_stream(stream) || communicator_.device().synchronize(stream, diagnostics);
}

bool NcclRanks::succeeded(ncclResult_t result, std::string_view what,
                          Diagnostics& diagnostics) const {
  return succeeded_in(real_, result, what, diagnostics);
}

}  // namespace mscclc::capi
