#include "python/mscclc/torch/adapter/zero_copy.h"

#include <algorithm>

#include "python/mscclc/torch/adapter/communicator.h"

namespace mscclc::torch_adapter {
namespace {

/// Where both buffers of a rank lie, as the other ranks learn it. Zeros: not both in symmetric
/// memory.
struct Places {
  uint64_t memory[2] = {0, 0};  ///< of the larger buffer, and of the other: SymmetricRange::number
  uint64_t offset[2] = {0, 0};

  bool operator==(const Places&) const = default;
  uint64_t distance() const { return offset[1] - offset[0]; }
};

/// Collectives in which every rank has both buffers.
bool can_be_registered(mscclc_kind_t kind) {
  return kind == MSCCLC_ALLREDUCE || kind == MSCCLC_ALLGATHER || kind == MSCCLC_REDUCESCATTER ||
         kind == MSCCLC_ALLTOALL;
}

const SymmetricRange* range_of(const std::vector<SymmetricRange>& ranges, const void* at) {
  const auto has = [at](const SymmetricRange& range) { return range.has(at); };
  const auto found = std::find_if(ranges.begin(), ranges.end(), has);
  return found == ranges.end() ? nullptr : &*found;
}

Places places_of(const void* larger, const SymmetricRange& of_larger, const void* other,
                 const SymmetricRange& of_other) {
  const auto offset = [](const void* at, const SymmetricRange& range) {
    return static_cast<uint64_t>(static_cast<const uint8_t*>(at) - range.begin);
  };
  return {{of_larger.number, of_other.number},
          {offset(larger, of_larger), offset(other, of_other)}};
}

/// Whether each rank's smaller buffer is its own part of the larger one, which has been checked to
/// be the only overlap.
bool are_in_place(const std::vector<Places>& all) {
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Places& own = all[rank];
    if (own.memory[0] != own.memory[1] || own.memory[0] != all[0].memory[0] ||
        own.offset[0] != all[0].offset[0] || own.distance() != rank * all[1].distance()) {
      return false;
    }
  }
  return true;
}

/// Whether the ranks' buffers are the same parts of symmetric memory.
bool are_alike(const std::vector<Places>& all, mscclc_kind_t kind) {
  if (all.size() < 2 || all[0].memory[0] == 0) return false;
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Places& places) { return places == all[0]; });
  const bool has_parts = kind == MSCCLC_ALLGATHER || kind == MSCCLC_REDUCESCATTER;
  return same || (has_parts && are_in_place(all));
}

std::vector<Places> places_of_all(Places own, Communicator& comm) {
  std::vector<Places> all(static_cast<size_t>(comm.ranks()));
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.kind = MSCCLC_ALLGATHER;
  call.dtype = MSCCLC_U64;
  call.count = sizeof(Places) / sizeof(uint64_t);
  call.input = &own;
  call.output = all.data();
  comm.call(call, nullptr);
  return all;
}

/// Collective: asks all ranks. `input` and `output` are where this rank's buffers lie; an input of
/// nullptr: not both do.
bool all_give_the_same(const mscclc_call_t& call, const SymmetricRange* input,
                       const SymmetricRange* output, Communicator& comm) {
  Places own;
  if (input != nullptr) {
    own = call.kind == MSCCLC_ALLGATHER ? places_of(call.output, *output, call.input, *input)
                                        : places_of(call.input, *input, call.output, *output);
  }
  return are_alike(places_of_all(own, comm), call.kind);
}

}  // namespace

void RegisteredRanges::prepare(mscclc_call_t& call, const SymmetricBuffers& symmetric,
                               Communicator& comm) {
  let_go(comm);
  if (!symmetric.possible || !can_be_registered(call.kind)) return;
  const SymmetricRange* input = range_of(symmetric.ranges, call.input);
  const SymmetricRange* output = range_of(symmetric.ranges, call.output);
  const bool here = input != nullptr && output != nullptr;
  const bool everywhere =
      symmetric.promised ? here : all_give_the_same(call, here ? input : nullptr, output, comm);
  if (!everywhere) return;
  add(*input, comm);
  add(*output, comm);
  call.registered = 1;
}

void RegisteredRanges::let_go(Communicator& comm) {
  std::erase_if(registered_, [&comm](const Registered& one) {
    if (!one.range.in_use.expired()) return false;
    comm.unshare(one.number);
    return true;
  });
}

void RegisteredRanges::add(const SymmetricRange& range, Communicator& comm) {
  const auto is_it = [&](const Registered& one) { return one.range.begin == range.begin; };
  if (std::any_of(registered_.begin(), registered_.end(), is_it)) return;
  registered_.push_back({range, comm.share(range.begin, range.bytes)});
}

}  // namespace mscclc::torch_adapter
