// Externals: arguments of a call beside input and output, which row functions read and write.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// What a call does with an external.
enum class Use : uint8_t { in, out, inout };

/// What ranks have of it.
///   local: each what it likes   replicated: all the same
///   sharded: chunk c of S is at rank c / (S / ranks) only
enum class Holding : uint8_t { local, replicated, sharded };

struct External {
  std::string name;
  Kind kind = Kind::row;
  Type type = Type::T;
  uint32_t group = 0;  ///< of groups
  Use use = Use::in;
  Holding holding = Holding::local;

  bool is_read() const { return use != Use::out; }
  bool is_written() const { return use != Use::in; }
  /// Has it values for each row, or for the call?
  bool has_rows() const { return is_per_row(kind); }
};

std::string_view name_of(Use use);
std::string_view name_of(Holding holding);
std::optional<Use> find_use(std::string_view text);
std::optional<Holding> find_holding(std::string_view text);

}  // namespace mscclc::rows
