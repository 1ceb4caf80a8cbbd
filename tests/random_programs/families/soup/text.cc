#include "tests/random_programs/families/soup/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mscclc::random_programs::soup {

void Text::declare() {
  sketch_.family = "soups";
  sketch_.ranks.resize(shape_.ranks);
  body_.resize(shape_.processes());
  for (uint32_t r = 0; r < shape_.ranks; ++r) {
    RankSketch& rank = sketch_.ranks[r];
    rank.blocks.resize(shape_.blocks);
    if (shape_.with_switch) {
      std::vector<uint32_t> all;
      for (uint32_t q = 0; q < shape_.ranks; ++q) all.push_back(q);
      rank.channels.push_back(fmt::format("channel sw = switch([{}])", fmt::join(all, ", ")));
    }
  }
  for (const char* name : {"s", "t", "u"}) {
    const uint32_t units = shape_.piped && !shape_.wide && one_in(dice_, 2) ? 2 + any(2) : 0;
    for (RankSketch& rank : sketch_.ranks) {
      rank.buffers.push_back({.name = name, .chunks = shape_.wide ? 2u : 1u, .units = units});
    }
  }
}

std::string Text::channel(uint32_t q, uint32_t p, bool port) {
  const std::string name = fmt::format("{}{}{}", port ? "n" : "c", std::min(p, q), std::max(p, q));
  if (channels_.insert(name).second) {
    connect(sketch_, port ? "port" : "memory", name, shape_.rank_of(std::min(p, q)),
            shape_.rank_of(std::max(p, q)));
  }
  return name;
}

void Text::use_semaphore(uint32_t rank, const std::string& name) {
  if (semaphores_.insert({rank, name}).second) sketch_.ranks[rank].semaphores.push_back({name, 0});
}

void Text::add_buffer(uint32_t rank, const BufferSketch& buffer) {
  sketch_.ranks[rank].buffers.push_back(buffer);
}

void Text::set_collective(const std::string& collective, const std::string& types) {
  sketch_.collective = collective;
  sketch_.types = types;
}

void Text::cut_here() {
  std::vector<size_t>& ends = cuts_.emplace_back();
  for (const auto& body : body_) ends.push_back(body.size());
}

std::string Text::completed(std::string text) const {
  if (text.find("<-") == std::string::npos) return text;
  if (text.find("reduce") != std::string::npos) {
    const size_t part = text.find(" part:"), at = std::min(part, text.size());
    text.insert(at, part == std::string::npos ? " op: sum" : " op: sum,");
  }
  for (size_t at = 0; shape_.wide && (at = text.find("[0]", at)) != std::string::npos;) {
    text.replace(at, 3, "[0..2]");
  }
  return text;
}

Sketch Text::assemble() {
  cut_here();
  std::vector<bool> pipes;
  for (size_t i = 0; i < cuts_.size(); ++i) {
    pipes.push_back(shape_.piped && !(cuts_.size() > 1 && one_in(dice_, 3)));
  }
  const uint32_t other = one_in(dice_, 2) ? shape_.unit : 16 * (1 + any(3));
  for (uint32_t p = 0; p < shape_.ranks * shape_.blocks; ++p) {
    RankSketch& rank = sketch_.ranks[shape_.rank_of(p)];
    size_t begin = 0;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      std::vector<std::string> ops;
      for (; begin < cuts_[i][p]; ++begin) ops.push_back(completed(body_[p][begin]));
      if (ops.empty()) continue;
      if (!pipes[i]) {
        rank.ops(shape_.block_of(p), ops);
      } else {
        rank.blocks[shape_.block_of(p)].push_back(
            {i == 0 ? shape_.unit : other, static_cast<uint32_t>(i), ops, shape_.wide ? 2u : 1u});
      }
    }
  }
  sketch_.ir_only = cuts_.size() > 1 && shape_.piped;
  return std::move(sketch_);
}

}  // namespace mscclc::random_programs::soup
