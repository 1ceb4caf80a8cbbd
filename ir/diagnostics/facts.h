// What programs read in a diagnostic besides its text (--diagnostics=json): the values of loop
// variables, the two accesses that nothing orders, and patches of the source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/source.h"

namespace mscclc {

/// A loop variable where an op was made.
struct LoopValue {
  std::string name;
  int64_t value = 0;
};

/// What would order two accesses.
enum class MissingKind : uint8_t {
  none,       ///< not known
  signal,     ///< a signal from the first rank to the second, and a wait for it
  sync,       ///< a 'sync' of the block's threads
  semaphore,  ///< a release by the first block, and an acquire by the second
  flush,      ///< a flush of the port, or a reply that the data has come
  packets,    ///< packets that fill the slot, or a reader that has emptied it
};
std::string_view name(MissingKind kind);

/// One of two accesses.
struct EdgeEnd {
  std::string op = {};     ///< as IR text has it; empty: the caller of the rank
  std::string does = {};   ///< "reads", "writes", "waits"; may be empty
  std::string block = {};  ///< "tb 0"; empty: not of a thread block
  uint32_t rank = 0;
  uint32_t call = 0;      ///< counted from the first call that matters, 0
  Span span = {};         ///< invalid: no place
  std::string file = {};  ///< see Diagnostic::file
  std::vector<LoopValue> loop = {};
  bool known() const { return !does.empty(); }
};

/// What lies between two accesses that nothing orders.
struct MissingEdge {
  MissingKind kind = MissingKind::none;
  std::string chunk = {};           ///< what both access: "inbox[0] of rank 3"; may be empty
  uint32_t copies = 0;              ///< so many copies of the buffer would do, too; 0: not known
  EdgeEnd first = {}, second = {};  ///< in the order that is meant
};

/// A replacement of bytes [begin, end) of a source.
struct TextEdit {
  FileId file = 0;
  uint32_t begin = 0, end = 0;
  std::string text;
};

/// A change of the source after which the program is proved.
struct Patch {
  std::string title;            ///< "add 'copies: 2'"
  std::vector<TextEdit> edits;  ///< in order, not overlapping
};

}  // namespace mscclc
