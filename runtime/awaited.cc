#include "runtime/awaited.h"

#include <algorithm>

#include "executor/host/words.h"
#include "ir/access.h"

namespace mscclc {
namespace {

using device::Fault;
using device::WaitFor;

void add_writers(const Program& program, uint32_t rank, const Fault& fault,
                 const PeerMemory& region, std::set<uint32_t>& ranks) {
  const auto spot = region.find(device::unit_of(fault));
  if (!spot) return;
  const Buffer& buffer = program.ranks[rank].buffers[spot->buffer];
  const uint64_t bytes = region.layout().buffers[spot->buffer].bytes / buffer.chunks;
  const auto chunk = static_cast<uint32_t>(spot->offset / bytes);
  std::vector<Access> accesses;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Op& op : program.ranks[r].ops) append_accesses(program, r, op, accesses);
    const bool writes = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return a.write && a.rank == rank && a.buffer == spot->buffer && chunk - a.first < a.count;
    });
    if (writes && r != rank) ranks.insert(r);
    accesses.clear();
  }
}

}  // namespace

void add_awaited(const Program& program, uint32_t rank, const Fault* faults, uint32_t blocks,
                 const PeerMemory& region, std::set<uint32_t>& ranks) {
  for (uint32_t b = 0; b < blocks; ++b) {
    const auto what = static_cast<WaitFor>(load_acquire<uint32_t>(&faults[b].what));
    const Fault fault = faults[b];
    if (what == WaitFor::signal) {
      const Channel& channel = program.ranks[rank].channels[fault.index];
      if (channel.partner != kNone) ranks.insert(channel.peer);
    } else if (what == WaitFor::packet) {
      add_writers(program, rank, fault, region, ranks);
    }
  }
}

}  // namespace mscclc
