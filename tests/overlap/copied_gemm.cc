#include "tests/overlap/copied_gemm.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "ir/program/flag_regions.h"

namespace mscclc::testing {

bool CopiedGemm::allocate(Diagnostics& diagnostics) {
  for (const FlagArray& array : program_.flags) {
    auto words = device_.allocate(uint64_t{array.count} * (array.bits / 8), "flags", diagnostics);
    if (words == nullptr) return false;
    given_.push_back(
        {.name = array.name, .words = words->data(), .count = array.count, .bits = array.bits});
    words_.push_back(std::move(words));
  }
  return true;
}

std::vector<CopiedGemm::Region> CopiedGemm::regions(const CopiedCall& call, bool of_output) const {
  std::vector<Region> all;
  const Side side = of_output ? Side::output : Side::input;
  for (uint32_t a = 0; a < program_.flags.size(); ++a) {
    if (program_.flags[a].of_output != of_output) continue;
    for (uint32_t c = 0; c < program_.flags[a].count; ++c) {
      const FlagRegion region = flag_region(program_, rank_, a, c);
      const uint32_t last = region.first + region.count - 1;
      const uint64_t begin = call.chunking.offset(side, rank_, region.first);
      const uint64_t end =
          call.chunking.offset(side, rank_, last) + call.chunking.length(side, rank_, last);
      all.push_back({a, c, begin, end - begin});
    }
  }
  return all;
}

bool CopiedGemm::set_word(const Region& region, uint64_t value, Diagnostics& diagnostics) {
  const uint32_t width = program_.flags[region.array].bits / 8;
  return device_.write(words_[region.array]->data() + uint64_t{region.flag} * width, &value, width,
                       diagnostics);
}

bool CopiedGemm::await_word(const Region& region, uint64_t value, Diagnostics& diagnostics) {
  using Clock = std::chrono::steady_clock;
  const uint32_t width = program_.flags[region.array].bits / 8;
  const auto end = Clock::now() + std::chrono::minutes(1);
  for (uint64_t word = 0; word != value;) {
    const uint8_t* const at = words_[region.array]->data() + uint64_t{region.flag} * width;
    if (!device_.read(&word, at, width, diagnostics)) return false;
    if (word == value || Clock::now() < end) continue;
    diagnostics.error("hang", {}, flag_text(program_, region.array, region.flag) + " did not come");
    return false;
  }
  return true;
}

bool CopiedGemm::spoil(const CopiedCall& call, Diagnostics& diagnostics) {
  for (const Region& region : regions(call, false)) {
    const std::vector<uint8_t> rubbish(region.bytes, 0xa5);
    if (!device_.write(call.input + region.begin, rubbish.data(), region.bytes, diagnostics)) {
      return false;
    }
  }
  return true;
}

bool CopiedGemm::serve(const CopiedCall& call, Diagnostics& diagnostics) {
  const std::vector<Region> inputs = regions(call, false);
  std::vector<size_t> turns;
  for (size_t i = 0; i < inputs.size(); ++i) {
    turns.insert(turns.end(), program_.flags[inputs[i].array].raises, i);
  }
  std::shuffle(turns.begin(), turns.end(), std::mt19937_64(call.seed));
  std::map<size_t, uint64_t> raised;
  for (const size_t turn : turns) {
    const Region& region = inputs[turn];
    const uint64_t raises = program_.flags[region.array].raises;
    if (++raised[turn] == raises &&
        !device_.write(call.input + region.begin, call.made.data() + region.begin, region.bytes,
                       diagnostics)) {
      return false;
    }
    if (!set_word(region, call.number * raises + raised[turn], diagnostics)) return false;
  }
  taken_.clear();
  for (const Region& region : regions(call, true)) {
    const uint64_t goal = (call.number + 1) * program_.flags[region.array].raises;
    std::vector<uint8_t>& own = taken_.emplace_back(region.bytes);
    if (!await_word(region, goal, diagnostics) ||
        !device_.read(own.data(), call.output + region.begin, region.bytes, diagnostics)) {
      return false;
    }
  }
  return true;
}

std::string CopiedGemm::compare(const CopiedCall& call, const std::vector<uint8_t>& output) const {
  const std::vector<Region> all = regions(call, true);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto begin = output.begin() + static_cast<ptrdiff_t>(all[i].begin);
    if (std::equal(taken_[i].begin(), taken_[i].end(), begin)) continue;
    return flag_text(program_, all[i].array, all[i].flag) + " was raised too early";
  }
  return "";
}

}  // namespace mscclc::testing
