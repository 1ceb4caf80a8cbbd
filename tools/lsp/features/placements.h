// What became of each op of a program, gathered over ranks and rounds of loops.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ir/program/program.h"

namespace mscclc::lsp {

/// Line and column, both from 1.
using LineColumn = std::pair<uint32_t, uint32_t>;

/// Numbers of thread blocks, or of ranks.
using Numbers = std::set<uint32_t>;

struct Placement {
  Numbers blocks;
  std::set<OpKind> became;                  ///< the kinds of op that it is part of
  std::map<OpKind, Numbers> before, after;  ///< ops that were added, and on which ranks
};

struct ChannelUse {
  Numbers signals, waits;  ///< the blocks that do
};

struct Placements {
  std::map<LineColumn, Placement> ops;
  std::map<LineColumn, std::string> removed;  ///< and by which pass
  std::map<LineColumn, ChannelUse> channels;  ///< by where they are declared
};

/// Of the ops that stand in the program's first file. REQUIRES: program.split.
Placements placements_of(const Program& program);

/// "0, 2..5"
std::string text_of(const Numbers& numbers);

}  // namespace mscclc::lsp
