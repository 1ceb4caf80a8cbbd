#include "runtime/core/communicator/call/shared_board.h"

#include <algorithm>

namespace mscclc {
SharedBoard::~SharedBoard() {
  if (!offered_.empty()) server_->withdraw(offered_);
}

bool SharedBoard::makes(const RankGroup& group) {
  return group.neighbours.beside.size() > 1 && group.neighbours.beside.front() == group.rank();
}

bool SharedBoard::make(const RankGroup& group, std::vector<uint8_t>& ticket,
                       Diagnostics& diagnostics) {
  if (!makes(group)) return true;
  memory_ = CallBoard::make_memory(group.neighbours.beside.size(), diagnostics);
  if (!memory_.valid()) return false;
  server_ = FdServer::of_process(diagnostics);
  if (server_ == nullptr) return false;
  offered_ = server_->offer(
      memory_.get(), {0, CallBoard::memory_bytes(group.neighbours.beside.size())}, diagnostics);
  ticket = offered_;
  return !ticket.empty();
}

bool SharedBoard::open(const RankGroup& group, std::span<const uint8_t> ticket,
                       std::unique_ptr<CallBoard>& board, Diagnostics& diagnostics) {
  const std::vector<uint32_t>& ranks = group.neighbours.beside;
  if (ranks.size() < 2) return true;
  if (!memory_.valid()) {
    memory_ =
        fetch_fd({ticket.begin(), ticket.end()}, {0, CallBoard::memory_bytes(ranks.size())},
                 {group.timeout, [&group] { return group.failure->happened(); }}, diagnostics);
    if (!memory_.valid()) return false;
  }
  const auto own = std::find(ranks.begin(), ranks.end(), group.rank()) - ranks.begin();
  board = CallBoard::open(memory_, ranks, static_cast<size_t>(own), diagnostics);
  return board != nullptr;
}

}  // namespace mscclc
