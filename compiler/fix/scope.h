// What a program declares, as far as its words show: channels, buffers, semaphores, variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/fix/outline.h"

namespace mscclc::fix {

struct Declared {
  std::string name;
  uint32_t statement = 0;  ///< that declares it
  std::string operand;     ///< of all of a family: "ch[p] for p in others"; else as keys are used
  std::string partner;     ///< of a channel: the name after 'to', or its own
};

class Scope {
 public:
  explicit Scope(const Outline& outline);

  const std::vector<Declared>& channels() const { return channels_; }
  const std::vector<Declared>& buffers() const { return buffers_; }
  const std::vector<Declared>& semaphores() const { return semaphores_; }
  /// How ops name ends of channels, without what lies at their far end: "ch[p] for p in others".
  const std::vector<std::string>& channel_operands() const { return channel_operands_; }
  const Declared* channel(std::string_view name) const { return find(channels_, name); }
  const Declared* buffer(std::string_view name) const { return find(buffers_, name); }
  /// Loop variables and values that a statement sees, the innermost ones first.
  std::vector<std::string> variables(uint32_t statement) const;
  /// How many ranks there are, as the body of the statement says it: "R". Empty: it does not.
  std::string ranks(uint32_t statement) const;

 private:
  static const Declared* find(const std::vector<Declared>& list, std::string_view name);
  void declare(uint32_t statement);
  Declared declared(uint32_t statement) const;
  void read_operands(uint32_t statement);
  std::string text(uint32_t first, uint32_t end) const;
  /// The word after the bracket that begins at `word`.
  uint32_t after(uint32_t word, uint32_t end) const;
  void add_binders(const Statement& s, std::vector<std::string>& names) const;

  const Outline& outline_;
  std::vector<Declared> channels_, buffers_, semaphores_;
  std::vector<std::string> channel_operands_;
};

}  // namespace mscclc::fix
