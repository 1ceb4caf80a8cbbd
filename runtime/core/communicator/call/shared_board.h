// Makes a CallBoard with the ranks beside this one: the first of them has memory, and a ticket for
// it that goes to the others with what the ranks exchange.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/core/group/group.h"
#include "runtime/support/fd.h"
#include "runtime/support/memory/fd_server.h"

namespace mscclc {

/// Must live until all ranks have opened their boards. Thread safety: one thread at a time.
class SharedBoard {
 public:
  SharedBoard() = default;
  ~SharedBoard();
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  /// This rank is the one that makes the memory, and there are others.
  static bool makes(const RankGroup& group);
  /// For all ranks that are to open it; empty where this rank makes none. False: reported.
  [[nodiscard]] bool make(const RankGroup& group, std::vector<uint8_t>& ticket,
                          Diagnostics& diagnostics);
  /// `ticket`: of the first rank beside this one. False: reported. `board` stays nullptr where
  /// there are no others.
  [[nodiscard]] bool open(const RankGroup& group, std::span<const uint8_t> ticket,
                          std::unique_ptr<CallBoard>& board, Diagnostics& diagnostics);

 private:
  Fd memory_;
  std::shared_ptr<FdServer> server_;
  std::vector<uint8_t> offered_;  ///< the ticket that this rank has given
};

}  // namespace mscclc
