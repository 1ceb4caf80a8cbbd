#include "tests/overlap/gemm_side.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "executor/shared_atomics.h"
#include "ir/program/flag_regions.h"

namespace mscclc::testing {

FlagMemory::FlagMemory(const Program& program) : program_(program) {
  for (const FlagArray& array : program.flags) {
    std::vector<uint64_t>& words = words_.emplace_back(array.count, 0);
    given_.push_back(
        {.name = array.name, .words = words.data(), .count = array.count, .bits = array.bits});
  }
}

void FlagMemory::raise(uint32_t array, uint32_t flag, uint64_t times) {
  if (program_.flags[array].bits == 64) {
    shared_word<uint64_t>(&words_[array][flag]).fetch_add(times, std::memory_order_release);
    return;
  }
  auto* const words = reinterpret_cast<uint32_t*>(words_[array].data());
  shared_word<uint32_t>(words + flag)
      .fetch_add(static_cast<uint32_t>(times), std::memory_order_release);
}

uint64_t FlagMemory::word(uint32_t array, uint32_t flag) const {
  if (program_.flags[array].bits == 64) return load_acquire<uint64_t>(&words_[array][flag]);
  return load_acquire<uint32_t>(reinterpret_cast<const uint32_t*>(words_[array].data()) + flag);
}

GemmSide::GemmSide(const Program& program, uint32_t rank, FlagMemory& flags, const SideCall& call,
                   uint32_t missing)
    : program_(program), flags_(flags), call_(call) {
  for (uint32_t a = 0; a < program.flags.size(); ++a) {
    const bool of_output = program.flags[a].of_output;
    const Side side = of_output ? Side::output : Side::input;
    for (uint32_t c = 0; c < program.flags[a].count; ++c) {
      const FlagRegion region = flag_region(program, rank, a, c);
      const uint32_t last = region.first + region.count - 1;
      const uint64_t begin = call.chunking.offset(side, rank, region.first);
      const uint64_t end =
          call.chunking.offset(side, rank, last) + call.chunking.length(side, rank, last);
      regions_.push_back({a, c, (of_output ? call.output : call.input) + begin, end - begin, {}});
    }
  }
  for (Region& region : regions_) {
    const FlagArray& array = program.flags[region.array];
    if (array.of_output) continue;
    std::memset(region.at, 0xa5, region.bytes);
    const uint32_t left = region.flag + 1 == array.count ? missing : 0;
    for (uint32_t i = left; i < array.raises; ++i) raises_.push_back({&region, false});
  }
  thread_ = std::thread([this] { run(call_.seed); });
}

uint64_t GemmSide::goal(const Region& region) const {
  const FlagArray& array = program_.flags[region.array];
  const uint64_t all = (call_.number + 1) * array.raises;
  return array.bits == 64 ? all : static_cast<uint32_t>(all);
}

bool GemmSide::take(Region& region) {
  if (flags_.word(region.array, region.flag) != goal(region)) return false;
  region.taken.assign(region.at, region.at + region.bytes);
  return true;
}

void GemmSide::run(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(raises_.begin(), raises_.end(), random);
  std::vector<bool> seen(regions_.size());
  for (auto turn = raises_.rbegin(); turn != raises_.rend(); ++turn) {
    const auto r = static_cast<size_t>(turn->region - regions_.data());
    turn->last = !seen[r];
    seen[r] = true;
  }
  std::vector<Region*> awaited;
  for (Region& region : regions_) {
    if (program_.flags[region.array].of_output) awaited.push_back(&region);
  }
  for (auto next = raises_.begin(); next != raises_.end() || !awaited.empty();) {
    for (uint64_t lazy = random() % 8; lazy > 0; --lazy) std::this_thread::yield();
    std::erase_if(awaited, [this](Region* region) { return take(*region); });
    if (next == raises_.end()) continue;
    const Region& region = *next->region;
    if (next->last) {
      std::memcpy(region.at, call_.made + (region.at - call_.input), region.bytes);
    }
    flags_.raise(region.array, region.flag);
    ++next;
  }
}

std::string GemmSide::end() {
  thread_.join();
  for (const Region& region : regions_) {
    if (!program_.flags[region.array].of_output) continue;
    if (std::equal(region.taken.begin(), region.taken.end(), region.at)) continue;
    return flag_text(program_, region.array, region.flag) + " was raised too early";
  }
  return "";
}

}  // namespace mscclc::testing
