// What the printers of the IR share: literals, lists, labels, and ops. print.h describes the text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/print/text_writer.h"
#include "ir/program/program.h"

namespace mscclc {

/// "name" if the language reads it as a name, else as a string with quotes.
void print_name(TextWriter& out, std::string_view name);
void print_string(TextWriter& out, std::string_view text);
/// Bytes with the largest unit that divides them: 512KiB.
void print_bytes(TextWriter& out, uint64_t bytes);
/// [1, 3]
void print_list(TextWriter& out, std::span<const int64_t> values);
/// Integers as `a..b` if they are consecutive, else as a list.
void print_set(TextWriter& out, std::span<const int64_t> values);

/// `collective`, `select`, `launch` and all above them.
void print_header(TextWriter& out, const Program& program);

/// The separator of options: nothing before the first, then ", ".
class Separator {
 public:
  explicit Separator(TextWriter& out) : out_(out) {}
  TextWriter& next() {
    if (!first_) out_ << ", ";
    first_ = false;
    return out_;
  }

 private:
  TextWriter& out_;
  bool first_ = true;
};

/// Prints the ops of one program, rank by rank. What names channels and sites is rendered once.
class OpPrinter {
 public:
  explicit OpPrinter(const Program& program) : program_(program) {}

  /// The following ops are those of `rank`. `remember`: render its labels once, for many ops.
  void begin_rank(uint32_t rank, bool remember);
  /// Chunks are called by the indices of their rows, as in messages, instead of being counted.
  void name_rows() { names_rows_ = true; }
  /// An op without its locations.
  void print(TextWriter& out, const Op& op);
  /// "  @18:25(r=0, p=1) @…"
  void print_locations(TextWriter& out, const Op& op);

 private:
  /// Ready-made texts, concatenated.
  struct Texts {
    std::string text;
    std::vector<uint32_t> ends;
    void add(std::string_view piece);
    std::string_view operator[](size_t i) const;
  };
  struct SiteText {
    std::string head;                 ///< "@18:25"
    std::vector<std::string> values;  ///< "(r=", ", p="
  };

  void print_applied(TextWriter& out, const Op& op);
  static void print_rows(TextWriter& out, const rows::External& external, uint32_t first,
                         uint32_t count);
  void print_side(TextWriter& out, const Slots& slots, std::span<const Operand> operands);
  void print_operand(TextWriter& out, SlotKind kind, const Operand& operand);
  void print_options(TextWriter& out, const Op& op);
  void print_blocks(TextWriter& out, std::span<const Operand> blocks);
  void prepare_sites();

  const Program& program_;
  uint32_t rank_ = 0;
  bool remembers_ = false, names_rows_ = false;
  Texts channels_, semaphores_;
  std::vector<SiteText> sites_;
};

}  // namespace mscclc
