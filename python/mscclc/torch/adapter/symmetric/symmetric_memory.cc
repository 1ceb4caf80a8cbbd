#include "python/mscclc/torch/adapter/symmetric/symmetric_memory.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "python/mscclc/torch/adapter/backend.h"
#include "python/mscclc/torch/adapter/interpreter.h"
#include "python/mscclc/torch/adapter/process_state.h"
#include "python/mscclc/torch/adapter/symmetric/signal_pad.h"

namespace mscclc::torch_adapter {
namespace {

constexpr size_t kPadAlignment = 16;
constexpr auto kAllocationTimeout = std::chrono::minutes(1);  // of communicators of one rank

int library_device(const c10::Device& device) {
  return device.is_cpu() ? MSCCLC_HOST : static_cast<int>(device.index());
}

std::shared_ptr<mscclc_memory_t> owned(mscclc_memory_t* memory) {
  return {memory, [](mscclc_memory_t* gone) { (void)mscclc_memory_release(gone); }};
}

/// What serves the group on a device; nullptr: nothing does.
c10::intrusive_ptr<c10d::Backend> backend_of(c10d::ProcessGroup& group, const c10::Device& device) {
  for (const c10::Device& served : group.getDeviceTypes()) {
    if (served.type() == device.type()) return group.getBackend(device.type());
  }
  return nullptr;
}

MscclcBackend* as_ours(c10d::Backend* backend) { return dynamic_cast<MscclcBackend*>(backend); }

c10::intrusive_ptr<c10d::Backend> own_backend_of(c10d::ProcessGroup& group,
                                                 const c10::Device& device) {
  auto backend = backend_of(group, device);
  return as_ours(backend.get()) != nullptr ? backend : nullptr;
}

/// torch's default where the group's backend does not say it.
std::chrono::milliseconds timeout_of(c10d::ProcessGroup& group, const c10::Device& device) {
  const auto backend = backend_of(group, device);
  if (backend == nullptr) return kProcessGroupDefaultTimeout;
  try {
    return backend->getBackendOptions()->timeout;
  } catch (const c10::Error&) {  // it has no options
    return kProcessGroupDefaultTimeout;
  }
}

/// Where the ranks meet that the group has now.
c10::intrusive_ptr<c10d::Store> store_of_ranks(c10d::ProcessGroup& group,
                                               const c10::Device& device) {
  const auto backend = own_backend_of(group, device);
  MscclcBackend* const ours = as_ours(backend.get());
  auto store = ours != nullptr ? ours->store() : group.getStore();
  TORCH_CHECK(store != nullptr, "mscclc: the process group ", group.getGroupName(),
              " has no ranks: reconfigure() gives it some");
  return store;
}

/// The n-th team of a group in its store has keys of its own: groups may be made again.
Membership membership_of_team(c10d::ProcessGroup& group, const c10::Device& device,
                              const c10::intrusive_ptr<c10d::Store>& store) {
  const std::string rank = std::to_string(group.getRank());
  const int64_t n = store->add("mscclc/symmetric/" + rank, 1);
  return {.store = store,
          .name = "symmetric" + std::to_string(n),
          .rank = group.getRank(),
          .ranks = group.getSize(),
          .device = library_device(device),
          .timeout = timeout_of(group, device)};
}

void find_symmetric_memory(const at::Tensor& tensor, const c10d::Backend& backend,
                           std::vector<SymmetricRange>& found) {
  symmetric_allocator(tensor.device().type())->find_symmetric_of(tensor, backend, found);
}

void forget_ended_teams() {
  for (const c10::DeviceType type : {c10::kCPU, c10::kCUDA}) {
    symmetric_allocator(type)->teams().forget_ended();
  }
}

}  // namespace

// ---- Teams ----

SymmetricTeam::SymmetricTeam(const c10::intrusive_ptr<c10d::ProcessGroup>& group,
                             c10::Device device)
    : group_(group),
      backend_(own_backend_of(*group, device)),
      device_(device),
      store_(store_of_ranks(*group, device)),
      timeout_(timeout_of(*group, device)),
      comm_(membership_of_team(*group, device, store_)) {
  const c10::DeviceGuard guard(device);
  comm_.create();
  const auto backend = backend_.lock();
  if (MscclcBackend* const ours = as_ours(backend.get())) {
    ours->expect_symmetric_memory(device.type(), find_symmetric_memory, forget_ended_teams);
  }
}

// Compares addresses, which no other group gets meanwhile: one that was locked might end here,
// under a lock of the caller.
bool SymmetricTeam::is_of(const c10::intrusive_ptr<c10d::ProcessGroup>& group) const {
  if (group_._unsafe_get_target() != group.get()) return false;
  const auto backend = own_backend_of(*group, device_);
  return backend == nullptr || is_served_by(*backend);
}

bool SymmetricTeam::is_served_by(const c10d::Backend& backend) const {
  if (backend_._unsafe_get_target() != &backend) return false;
  return static_cast<const MscclcBackend&>(backend).store() == store_;
}

std::chrono::milliseconds SymmetricTeam::timeout() const {
  const auto group = group_.lock();
  return group != nullptr ? timeout_of(*group, device_) : timeout_;
}

std::shared_ptr<SymmetricTeam> SymmetricTeams::of(
    const c10::intrusive_ptr<c10d::ProcessGroup>& group, c10::Device device) {
  forget_ended();  // a group of another backend has said nothing
  const std::string name = group->getGroupName();
  {
    const std::lock_guard lock(mutex_);
    const auto found = teams_.find(name);
    const bool fits = found != teams_.end() && found->second->is_of(group);
    if (fits && found->second->device() == device) return found->second;
  }
  const auto team = std::make_shared<SymmetricTeam>(group, device);  // waits for the other ranks
  std::shared_ptr<SymmetricTeam> before;  // may end here: without the lock
  const std::lock_guard lock(mutex_);
  before = std::exchange(teams_[name], team);
  return team;
}

void SymmetricTeams::forget_ended() {
  std::vector<std::shared_ptr<SymmetricTeam>> gone;  // their end waits: without the lock
  const std::lock_guard lock(mutex_);
  std::erase_if(teams_, [&](const auto& named) {
    const bool ended = named.second->group_has_ended();
    if (ended) gone.push_back(named.second);
    return ended;
  });
}

// ---- Mappings ----

SymmetricMapping::SymmetricMapping(std::shared_ptr<SymmetricTeam> team, SymmetricPiece piece)
    : team_(std::move(team)), piece_(std::move(piece)) {
  const c10::DeviceGuard guard(piece_.device);
  try {
    share(buffers_, 0, piece_.bytes, "bytes");
    share(pads_, piece_.pad, piece_.pad_bytes, "bytes of signal pad");
  } catch (...) {
    unshare(pads_);
    unshare(buffers_);
    throw;
  }
}

SymmetricMapping::~SymmetricMapping() {
  unshare(pads_);
  unshare(buffers_);
}

void SymmetricMapping::share(Shared& shared, size_t begin, size_t bytes, const char* what) {
  team_->with([&](Communicator& comm) {
    shared.number = comm.share(piece_.address() + begin, bytes);
    const size_t first = comm.shared(shared.number, 0).bytes;
    for (int r = 0; r < comm.ranks(); ++r) {
      const Communicator::Seen seen = comm.shared(shared.number, r);
      TORCH_CHECK(seen.bytes == first, "mscclc: symmetric memory has as many ", what,
                  " on all ranks; it has ", first, " on rank 0 and ", seen.bytes, " on rank ", r);
      shared.seen.push_back(seen.address);
    }
  });
}

void SymmetricMapping::unshare(Shared& shared) {
  if (shared.number == 0) return;
  try {
    team_->with([&](Communicator& comm) { comm.unshare(shared.number); });
  } catch (const std::exception& error) {
    TORCH_WARN("mscclc: ", error.what());
  }
  shared.number = 0;
}

void** SymmetricMapping::on_device(Shared& shared) {
  if (piece_.device.is_cpu()) return shared.seen.data();
  const WithoutInterpreter other_threads;
  return team_->with([&](Communicator& comm) {
    if (shared.on_device == nullptr) {
      const c10::DeviceGuard guard(piece_.device);
      const size_t bytes = shared.seen.size() * sizeof(void*);
      auto made = owned(comm.allocate(bytes));
      comm.write(mscclc_memory_address(made.get()), shared.seen.data(), bytes);
      shared.on_device = std::move(made);
    }
    return static_cast<void**>(mscclc_memory_address(shared.on_device.get()));
  });
}

// ---- Handles ----

uint32_t* MscclcSymmetricMemory::word(int owner, int from, int channel) const {
  const SymmetricTeam& team = mapping_->team();
  TORCH_CHECK(owner >= 0 && owner < team.ranks() && from >= 0 && from < team.ranks(),
              "mscclc: there is no rank ", owner < 0 || owner >= team.ranks() ? owner : from,
              " among ", team.ranks());
  const auto words = static_cast<int64_t>(mapping_->piece().pad_bytes / sizeof(uint32_t));
  const int64_t channels = words / team.ranks();
  TORCH_CHECK(channel >= 0 && channel < channels, "mscclc: there is no channel ", channel,
              "; the signal pad has room for ", channels);
  auto* const pad = static_cast<uint32_t*>(mapping_->pads()[static_cast<size_t>(owner)]);
  TORCH_CHECK(pad != nullptr, "mscclc: rank ", owner,
              " cannot be signalled: its memory is not "
              "reached directly from rank ",
              team.rank());
  return pad + int64_t{channel} * team.ranks() + from;
}

void MscclcSymmetricMemory::change(uint32_t* word, uint32_t from, uint32_t to,
                                   size_t timeout_ms) const {
  const WithoutInterpreter other_threads;
  SymmetricTeam& team = mapping_->team();
  change_signal(team.device(), word, from, to,
                {std::chrono::milliseconds(timeout_ms), [&team] { team.check(); }});
}

void MscclcSymmetricMemory::put_signal(int to, int channel, size_t timeout_ms) {
  change(word(to, get_rank(), channel), 0, 1, timeout_ms);
}

void MscclcSymmetricMemory::wait_signal(int from, int channel, size_t timeout_ms) {
  change(word(get_rank(), from, channel), 1, 0, timeout_ms);
}

void MscclcSymmetricMemory::barrier(int channel, size_t timeout_ms) {
  for (int step = 1; step < get_world_size(); ++step) {
    put_signal((get_rank() + step) % get_world_size(), channel, timeout_ms);
  }
  for (int step = 1; step < get_world_size(); ++step) {
    wait_signal((get_rank() + step) % get_world_size(), channel, timeout_ms);
  }
}

size_t MscclcSymmetricMemory::usual_timeout_ms() const {
  const SymmetricTeam& team = mapping_->team();
  return team.device().is_cpu() ? static_cast<size_t>(team.timeout().count()) : 0;
}

bool MscclcSymmetricMemory::world_within_direct_access() {
  for (const void* seen : mapping_->buffers()) {
    if (seen == nullptr) return false;
  }
  return true;
}

// ---- Allocations ----

Communicator& MscclcSymmetricAllocator::device(int index) {
  std::unique_ptr<Communicator>& comm = devices_[type_ == c10::kCPU ? 0 : index];
  if (comm == nullptr) {
    auto made = std::make_unique<Communicator>(
        Membership{.store = c10::make_intrusive<c10d::HashStore>(),
                   .name = "allocations",
                   .device = type_ == c10::kCPU ? MSCCLC_HOST : index,
                   .timeout = kAllocationTimeout});
    made->create();
    comm = std::move(made);
  }
  return *comm;
}

void* MscclcSymmetricAllocator::alloc(size_t bytes, int index,
                                      const std::optional<std::string>& group) {
  const size_t pad_bytes = c10d::symmetric_memory::get_signal_pad_size();
  TORCH_CHECK(bytes <= SIZE_MAX / 2 && pad_bytes <= SIZE_MAX / 4, "mscclc: ", bytes,
              " bytes of symmetric memory, and a signal pad of ", pad_bytes, ", are too many");
  auto block = std::make_shared<Block>();
  SymmetricPiece& piece = block->piece;
  piece.device = type_ == c10::kCPU ? c10::Device(type_)
                                    : c10::Device(type_, static_cast<c10::DeviceIndex>(index));
  piece.bytes = std::max<size_t>(bytes, 1);  // so that what is empty has an address, too
  piece.pad = (piece.bytes + kPadAlignment - 1) / kPadAlignment * kPadAlignment;
  piece.pad_bytes = pad_bytes;
  block->group = group.value_or("");
  const c10::DeviceGuard guard(piece.device);
  const std::lock_guard lock(mutex_);
  piece.memory = owned(device(index).allocate(piece.pad + pad_bytes));
  blocks_[reinterpret_cast<uintptr_t>(piece.address())] = block;
  return piece.address();
}

void MscclcSymmetricAllocator::free(void* address) {
  std::optional<WithoutInterpreter> other_threads;
  // The memory of a pool of CUDA's is freed under a lock that other threads take with the
  // interpreter.
  if (type_ == c10::kCPU) other_threads.emplace();
  std::shared_ptr<Block> gone;  // its end may wait for other threads: without the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
    if (found == blocks_.end()) return;
    gone = std::move(found->second);
    blocks_.erase(found);
  }
  if (type_ != c10::kCPU) {
    c10::impl::VirtualGuardImpl(type_).synchronizeDevice(gone->piece.device.index());
  }
}

std::shared_ptr<MscclcSymmetricAllocator::Block> MscclcSymmetricAllocator::find(
    const void* address) {
  const std::lock_guard lock(mutex_);
  return find_locked(address);
}

std::shared_ptr<MscclcSymmetricAllocator::Block> MscclcSymmetricAllocator::find_locked(
    const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(after);
  return at - begin < block->piece.bytes ? block : nullptr;
}

void MscclcSymmetricAllocator::note(Block& block, const SymmetricMapping& mapping) {
  const std::lock_guard lock(mutex_);
  std::erase_if(block.shared, [](const Sharing& with) { return with.team.expired(); });
  block.shared.push_back({mapping.shared_team(), mapping.number()});
}

void MscclcSymmetricAllocator::find_symmetric_of(const at::Tensor& tensor,
                                                 const c10d::Backend& backend,
                                                 std::vector<SymmetricRange>& found) {
  std::shared_ptr<Block> block;  // it and teams may end here: without the lock
  std::vector<std::shared_ptr<SymmetricTeam>> teams;
  const std::lock_guard lock(mutex_);
  block = find_locked(tensor.const_data_ptr());
  if (block == nullptr) return;
  for (const Sharing& with : block->shared) {
    const auto& team = teams.emplace_back(with.team.lock());
    if (team == nullptr || !team->is_served_by(backend)) continue;
    const SymmetricPiece& piece = block->piece;
    found.push_back({with.number, piece.address(), piece.bytes, piece.memory, block});
    return;
  }
}

std::optional<SymmetricPiece> MscclcSymmetricAllocator::piece_at(const void* address) {
  const auto block = find(address);
  if (block == nullptr) return std::nullopt;
  return block->piece;
}

size_t MscclcSymmetricAllocator::get_alloc_size(void* address) {
  const auto block = find(address);
  TORCH_CHECK(block != nullptr, "mscclc: there is no symmetric memory at ", address);
  return block->piece.bytes;
}

c10::intrusive_ptr<c10d::symmetric_memory::SymmetricMemory> MscclcSymmetricAllocator::rendezvous(
    void* address, const std::optional<std::string>& group) {
  const WithoutInterpreter other_threads;
  const auto block = find(address);
  if (block == nullptr) return nullptr;
  const std::string name = group.value_or(block->group);
  TORCH_CHECK(!name.empty(), "mscclc: a rendezvous of symmetric memory needs a group");
  const auto process_group = c10d::resolve_process_group(name);
  const std::lock_guard lock(block->mutex);
  Known& known = block->known[name];
  if (known.mapping == nullptr || !known.mapping->team().is_of(process_group)) {
    known = {};
    known.mapping = std::make_shared<SymmetricMapping>(
        teams_.of(process_group, block->piece.device), block->piece);
    note(*block, *known.mapping);
  }
  const auto offset = static_cast<size_t>(static_cast<uint8_t*>(address) - block->piece.address());
  auto& handle = known.handles[offset];
  if (handle == nullptr) {
    handle = c10::make_intrusive<MscclcSymmetricMemory>(known.mapping, offset);
  }
  return handle;
}

// torch asks for them by name.
c10::intrusive_ptr<MscclcSymmetricAllocator> symmetric_allocator(c10::DeviceType type) {
  TORCH_CHECK(type == c10::kCPU || type == c10::kCUDA,
              "mscclc: symmetric memory is of cpu or cuda, not of ", type);
  ProcessState& process = ProcessState::get();
  const std::lock_guard lock(process.mutex);
  auto& made = process.symmetric_allocators[type];
  if (made == nullptr) made = c10::make_intrusive<MscclcSymmetricAllocator>(type);
  return c10::static_intrusive_pointer_cast<MscclcSymmetricAllocator>(made);
}

at::Tensor symmetric_empty(int64_t bytes, const at::Device& device) {
  TORCH_CHECK(bytes >= 0, "mscclc: ", bytes, " bytes of symmetric memory");
  const auto allocator = symmetric_allocator(device.type());
  void* const data =
      allocator->alloc(static_cast<size_t>(bytes), static_cast<int>(device.index()), std::nullopt);
  return at::from_blob(
      data, {bytes}, [allocator](void* gone) { allocator->free(gone); },
      at::TensorOptions().dtype(at::kByte).device(device), device);
}

}  // namespace mscclc::torch_adapter
