#include <atomic>

#include "executor/cuda/testing/ranks_flags.h"
#include "ir/program/flag_regions.h"

namespace mscclc::cuda {

bool RanksFlags::allocate(const Program& program, Diagnostics& d) {
  program_ = &program;
  calls_ = 0;
  ranks_.clear();
  ranks_.resize(program.ranks.size());
  if (program.flags.empty()) return true;
  for (VisibleMemory& own : ranks_) {
    if (!own.allocate(flag_total(program) * kBytes, d)) return false;
  }
  return true;
}

std::vector<BlockPrograms::Places::Flags> RanksFlags::places(uint32_t rank) const {
  std::vector<BlockPrograms::Places::Flags> places;
  for (uint32_t a = 0; a < program_->flags.size(); ++a) {
    const FlagArray& array = program_->flags[a];
    const uint32_t first = flag_number(*program_, a, 0);
    places.push_back({ranks_[rank].data() + first * kBytes, first, array.raises,
                      static_cast<uint8_t>(array.bits / 8), array.scope == FlagScope::system});
  }
  return places;
}

void RanksFlags::raise_all(uint32_t rank) {
  for (uint32_t a = 0; a < program_->flags.size(); ++a) {
    const FlagArray& array = program_->flags[a];
    if (array.of_output) continue;
    for (uint32_t c = 0; c < array.count * array.raises; ++c) {
      raise(rank, flag_number(*program_, a, c % array.count));
    }
  }
}

void RanksFlags::raise(uint32_t rank, uint32_t number) {
  uint32_t array = 0, flag = number;
  while (flag >= program_->flags[array].count) flag -= program_->flags[array++].count;
  uint8_t* const words = ranks_[rank].data() + (number - flag) * kBytes;
  if (program_->flags[array].bits == 64) {
    std::atomic_ref(reinterpret_cast<uint64_t*>(words)[flag]).fetch_add(1);
  } else {
    std::atomic_ref(reinterpret_cast<uint32_t*>(words)[flag]).fetch_add(1);
  }
}

bool RanksFlags::compare(uint32_t calls, Diagnostics& d) {
  calls_ += calls;
  for (uint32_t r = 0; r < ranks_.size(); ++r) {
    for (uint32_t a = 0; a < program_->flags.size(); ++a) {
      const FlagArray& array = program_->flags[a];
      const uint8_t* const words = ranks_[r].data() + flag_number(*program_, a, 0) * kBytes;
      for (uint32_t c = 0; array.of_output && c < array.count; ++c) {
        const uint64_t word = array.bits == 64 ? reinterpret_cast<const uint64_t*>(words)[c]
                                               : reinterpret_cast<const uint32_t*>(words)[c];
        if (word == calls_ * array.raises) continue;
        d.error("wrong-data", {},
                flag_text(*program_, a, c) + " of rank " + std::to_string(r) + " was raised " +
                    std::to_string(word) + " times in " + std::to_string(calls_) + " calls");
        return false;
      }
    }
  }
  return true;
}

}  // namespace mscclc::cuda
