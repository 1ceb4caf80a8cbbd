// Calls that only the real NCCL makes, and that read memory of their callers: copied by the call,
// as the group's end may come after the caller has used that for something else.
#include <cstddef>
#include <cstring>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/calls/comm_calls.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"

namespace mscclc::nccl {
namespace {

/// ncclWaitSignalDesc_t.
struct WaitedSignal {
  int count, peer, signal, context;
};

/// ncclTeamRequirements_t.
struct TeamNode {
  TeamNode* next;
  ncclTeam_t team;
  bool multimem;
  ncclMultimemHandle_t* made;
};
/// ncclDevResourceRequirements_t, of all versions whose requirements have a head.
struct ResourceNode {
  ResourceNode* next;
  size_t bytes, alignment;
  void* made;
  int signals, counters;
  void *first_signal, *first_counter;
};
/// How ncclDevCommRequirements_t begins from 2.29 on; what follows is of each version.
struct Requirements {
  size_t size;
  unsigned int magic, version;
  ResourceNode* resources;
  TeamNode* teams;
};
constexpr size_t kMaxRequirements = 4096;  ///< more than any version has

/// Copies a list, whose nodes `nodes` keeps, and lets `first` lead to the copy.
template <typename Node>
void keep_list(Node*& first, std::list<Node>& nodes) {
  for (Node** next = &first; *next != nullptr; next = &(*next)->next) {
    *next = &nodes.emplace_back(**next);
  }
}

/// What a caller asks of a device communicator, copied. That of 2.28 does not say how long it is,
/// so it stays the caller's, and must be there at the group's end.
class KeptRequirements {
 public:
  explicit KeptRequirements(const ncclDevCommRequirements_t* callers) : callers_(callers) {
    Requirements read{};
    if (callers == nullptr) return;
    std::memcpy(&read, callers, offsetof(Requirements, resources));
    const bool known = read.magic == MSCCLC_NCCL_MAGIC && read.size >= sizeof read;
    if (!known || read.size > kMaxRequirements) return;
    const auto* const first = reinterpret_cast<const uint8_t*>(callers);
    bytes_.assign(first, first + read.size);
    std::memcpy(&read, first, sizeof read);
    keep_list(read.resources, resources_);
    keep_list(read.teams, teams_);
    std::memcpy(bytes_.data(), &read, sizeof read);
  }
  KeptRequirements(const KeptRequirements&) = delete;
  KeptRequirements& operator=(const KeptRequirements&) = delete;

  const ncclDevCommRequirements_t* get() const {
    return bytes_.empty() ? callers_
                          : reinterpret_cast<const ncclDevCommRequirements_t*>(bytes_.data());
  }

 private:
  const ncclDevCommRequirements_t* const callers_;
  std::vector<uint8_t> bytes_;
  std::list<ResourceNode> resources_;
  std::list<TeamNode> teams_;
};

}  // namespace

namespace entry_points {

ncclResult_t WaitSignal(int count, ncclWaitSignalDesc_t* signals, ncclComm_t comm,
                        cudaStream_t stream) {
  ncclResult_t result = ncclSuccess;
  NcclCall call;
  call.comm = usable_comm(comm, "ncclWaitSignal", result);
  if (call.comm != nullptr) result = check_stream(*call.comm, "ncclWaitSignal", stream);
  if (result == ncclSuccess) result = check_function(&RealNccl::WaitSignal, "ncclWaitSignal");
  if (result != ncclSuccess) return ThreadGroup::of_thread().fail_with(result);
  call.stream = stream;
  const auto* const first = reinterpret_cast<const WaitedSignal*>(signals);
  const bool any = first != nullptr && count > 0;
  const auto kept = std::make_shared<std::vector<WaitedSignal>>(first, any ? first + count : first);
  call.make = [kept, count, stream](const RealNccl& real, ncclComm_t made) {
    auto* const signals_now = reinterpret_cast<ncclWaitSignalDesc_t*>(kept->data());
    return real.WaitSignal(count, signals_now, made, stream);
  };
  return ThreadGroup::of_thread().add(std::move(call));
}

ncclResult_t DevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* requirements,
                           ncclDevComm_t* made) {
  ncclResult_t result = ncclSuccess;
  NcclCall call;
  call.comm = usable_comm(comm, "ncclDevCommCreate", result);
  if (call.comm != nullptr) result = check_function(&RealNccl::DevCommCreate, "ncclDevCommCreate");
  if (result != ncclSuccess) return ThreadGroup::of_thread().fail_with(result);
  const auto kept = std::make_shared<const KeptRequirements>(requirements);
  call.make = [kept, made](const RealNccl& real, ncclComm_t real_comm) {
    return real.DevCommCreate(real_comm, kept->get(), made);
  };
  return ThreadGroup::of_thread().add(std::move(call));
}

}  // namespace entry_points
}  // namespace mscclc::nccl
