// Making communicators: from an id, of the devices of a process, from another communicator.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "ir/diagnostics/printable.h"
#include "runtime/api/in_process.h"
#include "runtime/api/launcher.h"
#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/comm/make.h"
#include "runtime/doors/nccl/comm/meet.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"
#include "runtime/doors/nccl/entry_points/ranges.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {
namespace {

ncclResult_t invalid(const std::string& why) {
  return ThreadGroup::of_thread().fail_with(fail(ncclInvalidArgument, why));
}

/// NCCL_COMM_BLOCKING comes before the configuration.
bool is_blocking(const Config& config) {
  Diagnostics ignored;
  const auto set = Environment::of_process().text(Variable::NCCL_COMM_BLOCKING, ignored);
  if (!set || set->empty()) return config.is_blocking();
  if (*set == "0" || *set == "1") return *set == "1";
  warn_of_setting(
      fmt::format("NCCL_COMM_BLOCKING is {}; allowed are 0 and 1: configurations say it",
                  mscclc::quoted(*set)));
  return config.is_blocking();
}

/// A new communicator, and its handle in `*handle`.
CommPointer new_comm(uint32_t rank, uint32_t ranks, int ordinal, Config config,
                     ncclComm_t* handle) {
  CommPointer comm = std::make_shared<Comm>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->ordinal = ordinal;
  comm->blocking = is_blocking(config);
  comm->config = std::move(config);
  comm->async_error = ncclInProgress;
  *handle = add_comm(comm);
  return *handle == nullptr ? nullptr : comm;
}

/// Takes back a handle that came to nothing.
void forget(ncclComm_t* handle) {
  (void)remove_comm(*handle);
  *handle = nullptr;
}

/// Makes it on a thread of its own. A caller that waits finds NULL if it fails; one that does not
/// asks the communicator.
ncclResult_t begin_making(CommPointer comm, Meet meet, ncclComm_t* handle) {
  const bool blocking = comm->blocking;
  return ThreadGroup::of_thread().add(Job{
      .run =
          [comm, meet = std::move(meet), handle, blocking] {
            const ncclResult_t result = make_comm(*comm, meet);
            if (result != ncclSuccess && blocking) forget(handle);
            return result;
          },
      .cancel = [handle] { forget(handle); },
      .blocking = blocking,
  });
}

ncclResult_t init_rank(const char* function, ncclComm_t* comm, int ranks, const ncclUniqueId& id,
                       int rank, const ncclConfig_t* config) {
  const NvtxRange range = entry_points::range_of(function);
  if (comm == nullptr) return invalid(fmt::format("{}: comm is NULL", function));
  *comm = nullptr;
  const auto settings = Config::read(config);
  if (!settings) return ThreadGroup::of_thread().fail_with(ncclInvalidArgument);
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return invalid(fmt::format("{}: there is no rank {} among {}", function, rank, ranks));
  }
  Diagnostics diagnostics;
  if (!check_id(id, diagnostics)) {
    return ThreadGroup::of_thread().fail_with(fail(function, diagnostics));
  }
  const auto r = static_cast<uint32_t>(rank), n = static_cast<uint32_t>(ranks);
  CommPointer made = new_comm(r, n, current_ordinal(), *settings, comm);
  if (made == nullptr) return fail(ncclSystemError, "there are no handles left");
  const Comm& its = *made;
  return begin_making(
      std::move(made),
      [id, &its](Diagnostics& diagnostics) { return meet_by_id(id, its, diagnostics); }, comm);
}

/// No process has more: such a number is a mistake.
constexpr int kMaxDevices = 4096;

/// The devices of ncclCommInitAll(). Empty: reported.
std::vector<int> devices_of(int count, const int* list) {
  if (runs_on_host()) return std::vector<int>(static_cast<size_t>(count), 0);
  Diagnostics diagnostics;
  const int there = count_devices(diagnostics);
  std::vector<int> devices;
  for (int i = 0; i < count; ++i) {
    const int device = list != nullptr ? list[i] : i;
    if (device < 0 || device >= there) {
      (void)invalid(fmt::format("ncclCommInitAll: there is no device {}", device));
      return {};
    }
    devices.push_back(device);
  }
  return devices;
}

/// The settings of a child: its own, or those of the parent.
std::optional<Config> child_config(const Comm& parent, const ncclConfig_t* config) {
  return config == nullptr ? parent.config : Config::read(config);
}

/// Which ranks meet and how, once the parent's turn has come. `find` may be collective over the
/// parent.
struct Descent {
  CommPointer parent;
  std::function<std::unique_ptr<Bootstrap>(Comm& parent, Comm& child, Diagnostics&)> meet;
};

/// Makes a child on a thread of its own. Its rank and size come of meeting. The parent says whether
/// callers wait; if not, they ask the parent, as not all get a child.
ncclResult_t begin_child(Descent descent, const Config& config, ncclComm_t* made, bool has_child) {
  const CommPointer parent = descent.parent;
  CommPointer child = new_comm(0, 0, parent->ordinal, config, made);
  if (child == nullptr) return fail(ncclSystemError, "there are no handles left");
  child->parent = parent;
  const bool blocking = parent->blocking;
  if (!has_child) forget(made);
  ncclComm_t* const handle = has_child ? made : nullptr;
  const auto begun = std::make_shared<std::optional<Stage>>();
  const auto begin = [parent, blocking, begun] {
    if (!blocking) *begun = begin_unwaited(*parent);
  };
  const auto end = [parent, begun](ncclResult_t result) {
    const auto begun_at = std::exchange(*begun, std::nullopt);
    if (begun_at) end_unwaited(*parent, *begun_at, result);
  };
  const auto run = [parent, meet = std::move(descent.meet), child, handle, blocking, end] {
    const auto meet_now = [&](Diagnostics& diagnostics) {
      const std::lock_guard lock(parent->mutex);
      return meet(*parent, *child, diagnostics);
    };
    if (handle != nullptr) {
      const ncclResult_t result = make_comm(*child, meet_now, end);
      if (result != ncclSuccess && blocking) forget(handle);
      return result;
    }
    Diagnostics diagnostics;
    (void)meet_now(diagnostics);
    const ncclResult_t result =
        diagnostics.has_errors() ? fail(ncclRemoteError, "a split", diagnostics) : ncclSuccess;
    end(result);
    return result;
  };
  const auto cancel = [handle, end] {
    if (handle != nullptr) forget(handle);
    end(ncclSystemError);
  };
  return ThreadGroup::of_thread().add(Job{
      .run = run, .cancel = cancel, .blocking = blocking, .begin = begin, .in_turn = parent.get()});
}

void take_place(Comm& child, const Family& family) {
  child.rank = family.rank;
  child.ranks = static_cast<uint32_t>(family.ranks.size());
}

/// All ranks of a communicator, in order.
Family everyone(const Comm& comm) {
  Family family;
  family.rank = comm.rank;
  for (uint32_t rank = 0; rank < comm.ranks; ++rank) family.ranks.push_back(rank);
  return family;
}

/// Those that are not excluded. Empty: this rank is, or there is no such rank.
Family survivors(const Comm& comm, const int* excluded, int count) {
  Family family;
  for (uint32_t rank = 0; rank < comm.ranks; ++rank) {
    if (std::binary_search(excluded, excluded + count, static_cast<int>(rank))) continue;
    if (rank == comm.rank) family.rank = static_cast<uint32_t>(family.ranks.size());
    family.ranks.push_back(rank);
  }
  return family;
}

std::unique_ptr<Bootstrap> meet_once_more(Comm& parent, const Family& family, const Comm& child,
                                          Diagnostics& diagnostics) {
  return meet_again(parent, family, ++parent.meetings[family.ranks], child, diagnostics);
}

/// The id that ncclCommGetUniqueId() has kept, which serves once.
std::optional<ncclUniqueId> take_growth_id(Comm& comm) {
  const std::lock_guard lock(comm.tables);
  return std::exchange(comm.growth_id, std::nullopt);
}

/// A communicator that can have children: also one that is revoked; also with something under way
/// that the call `ends`. nullptr: `result`.
CommPointer parent_of(ncclComm_t handle, const char* function, ncclResult_t& result,
                      bool ends = false) {
  CommPointer comm = find_comm(handle);
  const Stage stage = comm == nullptr ? Stage::failed : comm->stage.load();
  if (ends && (stage == Stage::ready || stage == Stage::revoked)) return comm;
  if (stage != Stage::revoked) return usable_comm(handle, function, result);
  result = check_unwaited(*comm, function);
  return result == ncclSuccess ? comm : nullptr;
}

/// Ranks that go on without others find each other by names that one machine knows.
ncclResult_t check_machine(const Comm& parent, const char* function) {
  if (parent.facts.one_machine) return ncclSuccess;
  return ThreadGroup::of_thread().fail_with(fail(
      ncclInvalidUsage,
      fmt::format("{}: the ranks are on several machines, and cannot meet again without those "
                  "that are left out: make a new communicator with ncclCommInitRank(), from an "
                  "id that your program gives to the others",
                  function)));
}

}  // namespace

namespace entry_points {

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return fail(ncclInvalidArgument, "ncclGetUniqueId: uniqueId is NULL");
  Diagnostics diagnostics;
  ncclUniqueId made;
  if (!make_id(made, diagnostics)) return fail(ncclSystemError, "ncclGetUniqueId", diagnostics);
  std::memcpy(id, &made, sizeof made);  // the caller's may lie at any address
  return ncclSuccess;
}

ncclResult_t CommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return init_rank("ncclCommInitRank", comm, ranks, id, rank, nullptr);
}

ncclResult_t CommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                ncclConfig_t* config) {
  return init_rank("ncclCommInitRankConfig", comm, ranks, id, rank, config);
}

ncclResult_t CommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int ids, ncclUniqueId* id,
                                  ncclConfig_t* config) {
  if (comm != nullptr) *comm = nullptr;
  if (id == nullptr || ids < 1 || ids > ranks) {
    return invalid(fmt::format("ncclCommInitRankScalable: {} ids for {} ranks", ids, ranks));
  }
  // One hub serves all ranks, so the first id is enough.
  ncclUniqueId first;
  std::memcpy(&first, id, sizeof first);
  return init_rank("ncclCommInitRankScalable", comm, ranks, first, rank, config);
}

ncclResult_t CommInitAll(ncclComm_t* comms, int count, const int* list) {
  const NvtxRange range = range_of("ncclCommInitAll");
  if (comms == nullptr || count < 0 || count > kMaxDevices) {
    return invalid(fmt::format("ncclCommInitAll: comms is NULL, or ndev is {}", count));
  }
  if (count == 0) return ncclSuccess;
  const std::vector<int> devices = devices_of(count, list);
  if (devices.empty()) return ncclInvalidArgument;
  const std::set<int> distinct =
      list != nullptr ? std::set<int>(list, list + count) : std::set<int>();
  if (list != nullptr && distinct.size() != static_cast<size_t>(count)) {
    return ThreadGroup::of_thread().fail_with(
        fail(ncclInvalidUsage, "ncclCommInitAll: a device is listed twice"));
  }
  Diagnostics diagnostics;
  const auto options = read_host_options(diagnostics);
  if (!options) return fail(ncclInvalidUsage, "ncclCommInitAll", diagnostics);
  const auto ranks = static_cast<uint32_t>(count);
  auto bootstraps = make_in_process_bootstraps(ranks, options->timeout);
  ThreadGroup& group = ThreadGroup::of_thread();
  group.start();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    CommPointer made = new_comm(rank, ranks, devices[rank], Config(), &comms[rank]);
    if (made == nullptr) {
      (void)group.fail_with(fail(ncclSystemError, "there are no handles left"));
      break;
    }
    auto bootstrap = std::make_shared<std::unique_ptr<Bootstrap>>(std::move(bootstraps[rank]));
    (void)begin_making(
        std::move(made), [bootstrap](Diagnostics&) { return std::move(*bootstrap); }, &comms[rank]);
  }
  return group.end();
}

ncclResult_t CommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                       ncclConfig_t* config) {
  const NvtxRange range = range_of("ncclCommSplit");
  ncclResult_t result = ncclSuccess;
  const CommPointer parent = parent_of(comm, "ncclCommSplit", result);
  if (parent == nullptr) return ThreadGroup::of_thread().fail_with(result);
  if (made == nullptr) return invalid("ncclCommSplit: newcomm is NULL");
  *made = nullptr;
  if (color < 0 && color != kNcclSplitNoColor) {
    return invalid(
        fmt::format("ncclCommSplit: color {} is neither 0 or more nor NCCL_SPLIT_NOCOLOR", color));
  }
  const auto settings = child_config(*parent, config);
  if (!settings) return ThreadGroup::of_thread().fail_with(ncclInvalidArgument);
  if (parent->stage == Stage::revoked) {
    result = check_machine(*parent, "ncclCommSplit of what is revoked");
    if (result != ncclSuccess) return result;
  }
  const auto meet = [color, key](Comm& old, Comm& child, Diagnostics& diagnostics) {
    std::unique_ptr<Bootstrap> again;
    Bootstrap* all = &old.communicator->bootstrap();
    if (old.stage == Stage::revoked) {
      again = meet_once_more(old, everyone(old), child, diagnostics);
      all = again.get();
    }
    Family family;
    if (all == nullptr || !find_family(*all, color, key, family, diagnostics)) {
      return std::unique_ptr<Bootstrap>();
    }
    take_place(child, family);
    return meet_through(*all, family, child, diagnostics);
  };
  return begin_child({parent, meet}, *settings, made, color != kNcclSplitNoColor);
}

ncclResult_t CommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made,
                        ncclConfig_t* config, int flags) {
  const NvtxRange range = range_of("ncclCommShrink");
  ncclResult_t result = ncclSuccess;
  const bool aborts = (flags & kNcclShrinkAbort) != 0;
  const CommPointer parent = parent_of(comm, "ncclCommShrink", result, aborts);
  if (parent == nullptr) return ThreadGroup::of_thread().fail_with(result);
  if (made == nullptr || excluded == nullptr || count <= 0) {
    return invalid("ncclCommShrink: newcomm or the list is NULL, or the list is empty");
  }
  if ((flags & ~kNcclShrinkAbort) != 0) {
    return invalid(fmt::format("ncclCommShrink: unknown flags {}", flags));
  }
  *made = nullptr;
  if (static_cast<uint32_t>(count) >= parent->ranks) {
    return invalid(
        fmt::format("ncclCommShrink: {} of {} ranks cannot be excluded", count, parent->ranks));
  }
  std::sort(excluded, excluded + count);
  const bool outside = excluded[0] < 0 || excluded[count - 1] >= static_cast<int>(parent->ranks);
  if (outside || std::binary_search(excluded, excluded + count, static_cast<int>(parent->rank))) {
    return invalid("ncclCommShrink: the list has this rank, or one that does not exist");
  }
  result = check_machine(*parent, "ncclCommShrink");
  if (result != ncclSuccess) return result;
  const auto settings = child_config(*parent, config);
  if (!settings) return ThreadGroup::of_thread().fail_with(ncclInvalidArgument);
  Stage expected = Stage::ready;
  if (aborts && parent->stage.compare_exchange_strong(expected, Stage::revoked)) {
    (void)end_calls(*parent, "ncclCommShrink()");  // what fails there is given up
  }
  const Family family = survivors(*parent, excluded, count);
  const auto meet = [family](Comm& old, Comm& child, Diagnostics& diagnostics) {
    take_place(child, family);
    return meet_once_more(old, family, child, diagnostics);
  };
  return begin_child({parent, meet}, *settings, made, true);
}

ncclResult_t CommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  ncclResult_t result = ncclSuccess;
  const CommPointer parent = usable_comm(comm, "ncclCommGetUniqueId", result);
  if (parent == nullptr) return result;
  result = GetUniqueId(id);
  if (result != ncclSuccess) return result;
  const std::lock_guard lock(parent->tables);
  std::memcpy(&parent->growth_id.emplace(), id, sizeof *id);
  return ncclSuccess;
}

ncclResult_t CommGrow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank,
                      ncclComm_t* made, ncclConfig_t* config) {
  if (made == nullptr) return invalid("ncclCommGrow: newcomm is NULL");
  *made = nullptr;
  std::optional<ncclUniqueId> given;
  if (id != nullptr) std::memcpy(&given.emplace(), id, sizeof *id);  // it may lie at any address
  if (comm == nullptr) {
    if (!given) return invalid("ncclCommGrow: a new rank needs an id");
    return init_rank("ncclCommGrow", made, ranks, *given, rank, config);
  }
  const NvtxRange range = range_of("ncclCommGrow");
  ncclResult_t result = ncclSuccess;
  const CommPointer parent = usable_comm(comm, "ncclCommGrow", result);
  if (parent == nullptr) return ThreadGroup::of_thread().fail_with(result);
  if (rank != -1 || ranks <= static_cast<int>(parent->ranks)) {
    return invalid(fmt::format(
        "ncclCommGrow: from {} ranks to {}, as rank {}: there must be more than before, "
        "and a rank of the communicator gives -1",
        parent->ranks, ranks, rank));
  }
  const auto settings = child_config(*parent, config);
  if (!settings) return ThreadGroup::of_thread().fail_with(ncclInvalidArgument);
  const auto meet = [given, n = static_cast<uint32_t>(ranks)](Comm& old, Comm& child,
                                                              Diagnostics& diagnostics) {
    const auto kept = take_growth_id(old);
    const auto shared = share_id(old.communicator->bootstrap(), given, kept, diagnostics);
    child.rank = old.rank;
    child.ranks = n;
    return shared ? meet_by_id(*shared, child, diagnostics) : std::unique_ptr<Bootstrap>();
  };
  return begin_child({parent, meet}, *settings, made, true);
}

}  // namespace entry_points
}  // namespace mscclc::nccl
