// What a soup is written as: the ops of each process, and what they name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/random_programs/families/soup/shape.h"

namespace mscclc::random_programs::soup {

class Text : public Part {
 public:
  Text(const Shape& shape, Dice& dice) : Part(shape, dice) {}

  /// Declares blocks, scratch, and the switch. REQUIRES: once, before all else.
  void declare();
  void op(uint32_t p, const std::string& text) { body_[p].push_back(text); }
  /// The name of a channel between two processes.
  std::string channel(uint32_t q, uint32_t p, bool port);
  void use_semaphore(uint32_t rank, const std::string& name);
  void add_buffer(uint32_t rank, const BufferSketch& buffer);
  /// What follows is another stretch: a pipeline of its own, or straight.
  void cut_here();
  void set_collective(const std::string& collective, const std::string& types);
  void promise(const std::string& text) { sketch_.promises.push_back(text); }
  /// All of it. REQUIRES: last.
  Sketch assemble();

 private:
  /// What the text of an op lacks: which reduction, and that operands have two chunks.
  std::string completed(std::string text) const;

  Sketch sketch_;
  std::vector<std::vector<size_t>> cuts_;       ///< where stretches end, by process
  std::vector<std::vector<std::string>> body_;  ///< by process
  std::set<std::pair<uint32_t, std::string>> semaphores_;
  std::set<std::string> channels_;
};

}  // namespace mscclc::random_programs::soup
