#include "tools/draw/repeats.h"

#include "tools/draw/symmetry.h"

namespace mscclc::draw {
namespace {

constexpr uint32_t kMaxLength = 4;  // longer ones are not seen to be alike
constexpr uint32_t kLeastTimes = 3;

/// How many times the steps from `first` on follow one another.
uint32_t times_of(const std::vector<uint64_t>& shapes, uint32_t first, uint32_t length) {
  uint32_t end = first + length;
  while (end < shapes.size() && shapes[end] == shapes[end - length]) ++end;
  return (end - first) / length;
}

}  // namespace

std::vector<Repeat> repeats_of(const Program& program, const Steps& steps, const Block& block) {
  std::vector<uint64_t> shapes;
  bool in_loop = false;
  for (uint32_t s = block.first; s < block.first + block.count; ++s) {
    shapes.push_back(shape_of(program, steps, {block.rank, block.place, s, 1}, nullptr));
    in_loop = in_loop || steps.steps[s].loop != kNone;
  }
  std::vector<Repeat> repeats;
  for (uint32_t at = 0; at < block.count;) {
    Repeat best{at, 1, 1};
    for (uint32_t length = 1; !in_loop && length <= kMaxLength; ++length) {
      if (at + length > block.count) break;
      const uint32_t times = times_of(shapes, at, length);
      if (times >= kLeastTimes && times * length > best.times * best.length) {
        best = {at, length, times};
      }
    }
    repeats.push_back(best);
    at += best.length * best.times;
  }
  return repeats;
}

}  // namespace mscclc::draw
