#include "runtime/core/calls/call_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "runtime/support/failed_call.h"
#include "runtime/support/idle.h"

namespace mscclc {
namespace {

constexpr size_t kLineBytes = 64;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

/// All of a record except its number, and what agrees with anything.
auto key_of(const CallRecord& r) {
  return std::tie(r.bytes, r.row_pitch, r.offset, r.buffer, r.bind, r.executable, r.dtype, r.reduce,
                  r.accumulate, r.counts);
}

}  // namespace

/// What a rank writes, and others read.
struct alignas(kLineBytes) CallBoard::Line {
  std::atomic<uint64_t> calls;    ///< that it has come to
  std::atomic<uint64_t> certain;  ///< the same, or the call for which it waits to load a plan
  std::atomic<uint64_t> changes;  ///< records that it has written
};

/// The first line.
struct alignas(kLineBytes) CallBoard::Shared {
  std::atomic<uint64_t> changes;  ///< of all ranks
};

bool CallRecord::is_same(const CallRecord& other) const {
  return placement == other.placement && is_load == other.is_load && key_of(*this) == key_of(other);
}

bool CallRecord::agrees_with(const CallRecord& other) const {
  if (is_load != 0 || other.is_load != 0) return executable == other.executable;
  const bool placed = placement == 0 || other.placement == 0 || placement == other.placement;
  return placed && key_of(*this) == key_of(other);
}

uint64_t CallBoard::memory_bytes(size_t ranks) {
  return sizeof(Shared) + ranks * (sizeof(Line) + kRoom * sizeof(CallRecord));
}

// Zeros are right to begin with. Pages that nothing is written to take no memory.
Fd CallBoard::make_memory(size_t ranks, Diagnostics& diagnostics) {
  Fd file(memfd_create("mscclc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const QuietWrites quiet;
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(memory_bytes(ranks))) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    report_failed_call(diagnostics, "out-of-memory",
                       "cannot allocate memory in which {} ranks compare their calls", ranks);
    return Fd();
  }
  return file;
}

std::unique_ptr<CallBoard> CallBoard::open(const Fd& memory, std::vector<uint32_t> ranks,
                                           size_t own, Diagnostics& diagnostics) {
  const uint64_t bytes = memory_bytes(ranks.size());
  struct stat status {};
  if (fstat(memory.get(), &status) != 0 || static_cast<uint64_t>(status.st_size) != bytes) {
    diagnostics.error("bad-handle", {}, "a peer's memory for comparing calls has another size");
    return nullptr;
  }
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (data == MAP_FAILED) {
    report_failed_call(diagnostics, "out-of-memory", "cannot map {} bytes to compare calls", bytes);
    return nullptr;
  }
  return std::unique_ptr<CallBoard>(
      new CallBoard(static_cast<uint8_t*>(data), std::move(ranks), own));
}

CallBoard::CallBoard(uint8_t* memory, std::vector<uint32_t> ranks, size_t own)
    : memory_(memory), ranks_(std::move(ranks)), own_(own) {}

CallBoard::~CallBoard() { munmap(memory_, memory_bytes(ranks_.size())); }

CallBoard::Line& CallBoard::line(size_t rank) const {
  return reinterpret_cast<Line*>(memory_ + sizeof(Shared))[rank];
}

CallRecord* CallBoard::records(size_t rank) const {
  uint8_t* const all = memory_ + sizeof(Shared) + ranks_.size() * sizeof(Line);
  return reinterpret_cast<CallRecord*>(all) + rank * kRoom;
}

std::optional<CallBoard::Refusal> CallBoard::next(CallRecord& call, const Over& over) {
  call.call = calls_ + 1;
  const bool changed = changes_ == 0 || !call.is_same(latest_);
  if (changed) {
    if (auto refusal = publish(call, over)) return refusal;
  }
  line(own_).calls.store(++calls_, std::memory_order_release);
  return look(calls_, changed);
}

std::optional<CallBoard::Refusal> CallBoard::begin_load(const CallRecord& call, const Over& over) {
  if (auto refusal = publish(call, over)) return refusal;
  return look(call.call, true);
}

void CallBoard::end_load() { line(own_).certain.store(calls_, std::memory_order_seq_cst); }

// The order of stores and loads matters, on all ranks: first what this rank does, then what the
// others do. Of two ranks that do so at once one at least sees the other.
std::optional<CallBoard::Refusal> CallBoard::look(uint64_t call, bool changed) {
  Shared& shared = *reinterpret_cast<Shared*>(memory_);
  line(own_).certain.exchange(call, std::memory_order_seq_cst);
  if (changed) shared.changes.fetch_add(1, std::memory_order_seq_cst);
  const uint64_t seen = shared.changes.load(std::memory_order_seq_cst);
  if (seen == seen_ && call < next_look_) return std::nullopt;
  seen_ = seen;
  return compare(call);
}

std::optional<CallBoard::Refusal> CallBoard::publish(const CallRecord& call, const Over& over) {
  for (Idle idle;; idle.rest()) {
    const auto late = find_too_far_behind(changes_);
    if (!late) break;
    const uint64_t calls = line(*late).calls.load();
    if (over(ranks_[*late], calls)) return Refusal{ranks_[*late], {}, calls};
  }
  records(own_)[changes_ % kRoom] = call;
  latest_ = call;
  line(own_).changes.store(++changes_, std::memory_order_release);
  return std::nullopt;
}

/// A rank that may still look at the record in whose place that of this change belongs.
std::optional<size_t> CallBoard::find_too_far_behind(uint64_t change) const {
  if (change < kRoom) return std::nullopt;
  const uint64_t until = records(own_)[(change + 1) % kRoom].call;  // it holds for calls before
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == own_) continue;
    if (line(rank).calls.load(std::memory_order_seq_cst) < until) return rank;
  }
  return std::nullopt;
}

// Ranks that have not come to this call will compare theirs with it when they do.
std::optional<CallBoard::Refusal> CallBoard::compare(uint64_t call) {
  next_look_ = ~uint64_t{0};
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == own_) continue;
    const auto said = said_by(rank, call);
    if (said && !said->agrees_with(latest_)) {
      return Refusal{ranks_[rank], said, line(rank).calls.load()};
    }
  }
  return std::nullopt;
}

// The latest record that holds: after one for a plan that is to be loaded may come calls before it.
std::optional<CallRecord> CallBoard::said_by(size_t rank, uint64_t call) {
  const uint64_t certain = line(rank).certain.load(std::memory_order_seq_cst);
  const uint64_t changes = line(rank).changes.load(std::memory_order_acquire);
  for (uint64_t change = changes; change > 0 && change + kRoom > changes; --change) {
    const CallRecord& record = records(rank)[(change - 1) % kRoom];
    if (record.call <= call) return certain >= call ? std::optional(record) : std::nullopt;
    next_look_ = std::min(next_look_, record.call);
  }
  return std::nullopt;
}

}  // namespace mscclc
