// Programs in which the same packets are put into a slot more than once, in one call: by two ranks
// or blocks, from memory or by a port, ordered or not. A poll of the slot has seen one of the puts,
// and it is open which; what the program does next may rely on having seen another.
//
// The families `twins`, `echoes` and `junk` are three kinds of them.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {

class Repeats {
 public:
  enum class Sent : uint8_t {
    data,  ///< what one rank has as its input
    junk   ///< what is in scratch that no op has written, or not all of it
  };
  struct Kind {
    const char* family;
    Sent sent = Sent::data;
    uint32_t ports = 0;  ///< writers that send by a port, at least
  };

  Repeats(Dice& dice, const Kind& kind) : dice_(dice), kind_(kind) {}
  Sketch make();

 private:
  /// A block of a rank.
  struct Process {
    uint32_t rank = 0, block = 0;
    auto operator<=>(const Process&) const = default;
  };
  struct Writer {
    Process process;
    bool port = false;
    bool forwards = false;    ///< packets that have come, with one op
    bool written = false;     ///< the slot
    std::string source = {};  ///< where it has what it sends; `forwards`: a slot
  };
  /// Signals that have been given, and are taken later.
  struct Taker {
    Process process;
    std::deque<std::string> ops = {};
  };

  uint32_t any(uint32_t n) { return dice_.below(n); }
  void op(Process p, const std::string& text) { sketch_.ranks[p.rank].op(p.block, text); }
  void sync(Process p);
  /// A far chunk, or a near one.
  std::string at(Process p, uint32_t rank, const std::string& chunk, bool port = false);
  /// Between two blocks: none takes what is meant for another.
  std::string channel(Process a, Process b, bool port = false);

  void declare();
  void choose_writers();
  /// Gives a writer what it sends.
  void fill(Writer& writer);
  void fill_box(Writer& writer);
  void mix(Process p);
  void write(Writer& writer);
  void poll();
  /// Changes what a writer has sent.
  void overwrite();
  void act();

  void give(Process from, Process to, bool relaxed);
  void take(Taker& taker, size_t count);
  Taker& taker(Process p);
  Process hub() { return {0, any(static_cast<uint32_t>(sketch_.ranks[0].blocks.size()))}; }

  void finish();
  void close();

  Dice& dice_;
  const Kind kind_;
  Sketch sketch_;
  uint32_t ranks_ = 3, origin_ = 0, polls_ = 0;
  std::string format_;
  std::vector<Writer> writers_;
  std::vector<Taker> takers_;
  std::vector<std::string> channels_;
  bool kept_ = false;  ///< an output holds what was sent
  bool calm_ = false;  ///< each writer hears of the one before, and all of the end
};

}  // namespace mscclc::random_programs
