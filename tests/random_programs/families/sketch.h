// A random program before it is text: ranks with what they own, and for each thread block its
// stretches, straight or pipelines, as lines of text. Generators make it, edges change it, and it
// is written down as a program or as IR text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/cpu/dice.h"

namespace mscclc::random_programs {

/// Ops that follow one another in a thread block.
struct Stretch {
  uint32_t unit = 0;  ///< of a pipeline; 0: straight
  uint32_t loop = 0;  ///< pipelines of one rank with the same number are one
  std::vector<std::string> ops = {};
  uint32_t chunks = 1;  ///< of each operand in a pipeline
};

struct BufferSketch {
  std::string name;
  uint32_t chunks = 1, units = 0, copies = 1;
  std::string packets = {};  ///< a format, or nothing
  std::string type = {};     ///< of rows, or nothing
};

struct SemaphoreSketch {
  std::string name;
  uint32_t initial = 0;
};

struct RankSketch {
  std::vector<BufferSketch> buffers;
  std::vector<std::string> channels;  ///< whole declarations
  std::vector<SemaphoreSketch> semaphores;
  std::vector<std::vector<Stretch>> blocks;

  /// The last stretch of a block if it is straight, else a new one.
  Stretch& straight(uint32_t block);
  void op(uint32_t block, std::string text) { straight(block).ops.push_back(std::move(text)); }
  void ops(uint32_t block, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) op(block, text);
  }
};

struct Sketch {
  std::string family;                  ///< which generator made it
  std::vector<std::string> rows = {};  ///< row functions, a line each
  std::string collective;
  std::vector<std::string> promises = {};  ///< after "ensure"
  std::string types = {};                  ///< of `select dtypes`, or nothing
  std::vector<RankSketch> ranks = {};
  bool reuse_scratch = false;           ///< what it shares with other plans of a set
  uint32_t align = 0;                   ///< of chunks; 0: what programs have
  bool compiled = false;                ///< most often a program, as the compiler makes the ops
  bool repeats = false;                 ///< the same packets come from chunks of several buffers
  bool ir_only = false;                 ///< units in two pipelines: programs may not
  std::vector<std::string> edges = {};  ///< what was changed, for people
};

/// How a sketch is written down.
enum class Form : uint8_t {
  ordered,  ///< a program, to which the compiler adds what orders the blocks of a rank
  written,  ///< a program with `auto_sync: false`
  ir,       ///< IR text, that no pass touches
  foreign   ///< likewise, and counts need not balance, as in MSCCL++'s plans
};
std::string text(const Sketch& sketch, Form form);

/// A channel between two ranks, declared at both under one name; `kind`: memory or port. A port may
/// begin with credits at `a`.
void connect(Sketch& sketch, const std::string& kind, const std::string& name, uint32_t a,
             uint32_t b, uint32_t credits = 0);

/// True in one of `n` cases.
inline bool one_in(Dice& dice, uint32_t n) { return dice.below(n) == 0; }

}  // namespace mscclc::random_programs
