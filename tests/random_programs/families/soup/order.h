// The order of a soup: who has touched what, who knows of it, and how others learn.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/random_programs/families/soup/shape.h"
#include "tests/random_programs/families/soup/text.h"

namespace mscclc::random_programs::soup {

class Order : public Part {
 public:
  Order(const Shape& shape, Dice& dice, Text& text) : Part(shape, dice), text_(text) {}

  /// Callers have given their buffers. REQUIRES: once, before all else.
  void begin();
  void sync(uint32_t p);
  /// `p` has done an op more.
  void did(uint32_t p) { ++time_[p]; }
  uint32_t time(uint32_t p) const { return time_[p]; }
  /// Lets `p` know of all that `q` has done by now.
  void learn(uint32_t p, uint32_t q, bool relaxed);
  /// Is about to touch a place: hears of all that has been done there.
  void touch(uint32_t p, const RankChunk& place, bool write);
  /// Has touched it by its latest op.
  void note(uint32_t p, const RankChunk& place, bool write);
  /// The caller takes its buffers, and all may begin again.
  void close();

 private:
  using Clock = std::vector<uint32_t>;
  struct Access {
    uint32_t process, time;
    bool write;
  };

  /// The same as learn(), by what the program has for it.
  void inform(uint32_t q, uint32_t p, bool relaxed);
  void meet(uint32_t rank);
  void close_all();

  Text& text_;
  std::vector<uint32_t> time_, settled_;
  std::vector<Clock> known_;
  std::map<RankChunk, std::vector<Access>> accesses_;
};

}  // namespace mscclc::random_programs::soup
