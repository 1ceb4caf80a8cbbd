#include "executor/cuda/testing/ranks_externals.h"

namespace mscclc::cuda {
namespace {

constexpr uint64_t kExternalLine = 128;

}  // namespace

bool RanksExternals::allocate(const Program& program, const Call& call, Diagnostics& d) {
  ranks_.clear();
  ranks_.resize(program.ranks.size());
  if (program.externals.empty()) return true;
  const Chunking chunking(program.contract, call.part_bytes, program.granule(call.dtype));
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    OfRank& own = ranks_[r];
    own.layouts = rows::lay_out_externals(program, r, chunking, call.dtype);
    uint64_t bytes = 0;
    for (const rows::ExternalLayout& layout : own.layouts) {
      own.offsets.push_back(bytes);
      bytes += (layout.bytes() + kExternalLine - 1) / kExternalLine * kExternalLine;
    }
    if (!own.memory.allocate(bytes, d)) return false;
  }
  return true;
}

std::vector<BlockPrograms::Places::External> RanksExternals::places(uint32_t rank) const {
  const OfRank& own = ranks_[rank];
  std::vector<BlockPrograms::Places::External> places;
  for (size_t e = 0; e < own.layouts.size(); ++e) {
    const rows::ExternalLayout& layout = own.layouts[e];
    places.push_back({own.memory.data() + own.offsets[e], layout.first_row,
                      layout.shared ? 0 : layout.row_bytes, false});
  }
  return places;
}

bool RanksExternals::write(uint32_t rank, uint32_t external, const uint8_t* from, Diagnostics& d) {
  OfRank& own = ranks_[rank];
  return succeeded(cudaMemcpy(own.memory.data() + own.offsets[external], from,
                              own.layouts[external].bytes(), cudaMemcpyHostToDevice),
                   "copy an external to the device", d);
}

bool RanksExternals::read(uint32_t rank, uint32_t external, uint8_t* to, Diagnostics& d) const {
  const OfRank& own = ranks_[rank];
  return succeeded(cudaMemcpy(to, own.memory.data() + own.offsets[external],
                              own.layouts[external].bytes(), cudaMemcpyDeviceToHost),
                   "copy an external from the device", d);
}

}  // namespace mscclc::cuda
