#include "passes/prove/system.h"

#include <numeric>

namespace mscclc::proof {

System::System(const Program& program, const Symmetry& symmetry, bool in_place)
    : program_(program), symmetry_(symmetry), in_place_(in_place) {
  uint32_t ends = 0, semaphores = 0, buffers = 0;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const Rank& rank = program.ranks[r];
    first_.push_back(static_cast<uint32_t>(processes_.size()));
    blocks_.push_back(r < ranks() ? static_cast<uint32_t>(block_offsets(rank).size()) - 1
                                  : blocks_[r % ranks()]);
    for (uint32_t b = 0; b < blocks_[r]; ++b) processes_.push_back({ProcessKind::block, r, b});
    processes_.push_back({ProcessKind::caller, r, 0});
    first_end_.push_back(ends);
    first_semaphore_.push_back(semaphores);
    first_buffer_.push_back(buffers);
    ends += static_cast<uint32_t>(rank.channels.size());
    semaphores += static_cast<uint32_t>(rank.semaphores.size());
    buffers += static_cast<uint32_t>(rank.buffers.size());
    if (r < ranks()) place_buffers(r);
  }
  first_end_.push_back(ends);
  first_semaphore_.push_back(semaphores);
  width_ = static_cast<uint32_t>(processes_.size());
  turn_ = ranks() < program.ranks.size() ? first_[ranks()] : 0;
  add_ports();
}

void System::add_ports() {
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    const std::vector<Channel>& channels = program_.ranks[r].channels;
    for (uint32_t c = 0; c < channels.size(); ++c) {
      const bool port = channels[c].kind == ChannelKind::port;
      ports_.push_back(port ? static_cast<uint32_t>(processes_.size()) : kNone);
      if (!port) continue;
      processes_.push_back({ProcessKind::port_reader, r, c});
      processes_.push_back({ProcessKind::port_writer, r, c});
    }
  }
}

/// In place, both of the caller's buffers lie in the larger one.
void System::place_buffers(uint32_t r) {
  const Rank& rank = program_.ranks[r];
  const size_t first = bases_.size();
  for (const Buffer& buffer : rank.buffers) {
    bases_.push_back(chunks_);
    chunks_ += uint64_t{buffer.chunks} * buffer.copies;
    period_ = std::lcm(period_, buffer.copies);
  }
  const auto alias = in_place_ ? program_.contract.alias(r) : std::nullopt;
  if (!alias) return;
  if (rank.buffers[kOutput].chunks >= rank.buffers[kInput].chunks) {
    bases_[first + kInput] = bases_[first + kOutput] + alias->output_chunk;
  } else {
    bases_[first + kOutput] = bases_[first + kInput] + alias->input_chunk;
  }
}

News System::turned(const News& news, uint32_t turns) const {
  if (turns == 0) return news;
  News result = news;
  result.known = news.known.rotated(turned(0, turns), width_);
  if (news.process != kNone) result.process = turned(news.process, turns);
  return result;
}

}  // namespace mscclc::proof
