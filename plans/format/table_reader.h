// What the tables of plans have in common: {"rows": […]}, and for which calls a row is.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plans/format/json/json_read.h"

namespace mscclc {

/// All functions that return false have reported why, but is_word(). Thread safety: one thread.
class TableReader {
 protected:
  explicit TableReader(const JsonReader& reader) : reader_(reader) {}

  /// Reads the whole text by read_row(node), and notes where the rows are.
  template <class ReadRow>
  bool read_rows(std::vector<NodeId>& places, ReadRow read_row) const {
    Members top;
    if (!top.read(reader_, 0, {w_rows}) || !reader_.expect(top[w_rows], JsonType::array)) {
      return false;
    }
    for (NodeId e = reader_.first(top[w_rows]); e != reader_.end(top[w_rows]);
         e = reader_.next(e)) {
      if (!read_row(e)) return false;
      places.push_back(e);
    }
    return true;
  }

  bool is_word(NodeId node, std::string_view word) const {
    const JsonNode& n = reader_.tape()[node];
    return n.kind() == JsonType::string && reader_.tape().text(static_cast<Word>(n.value)) == word;
  }

  /// A number from `least` on, or [smallest, largest].
  bool range(NodeId node, uint32_t least, uint32_t& min, uint32_t& max,
             const char* expected) const {
    std::vector<uint32_t> ends(1);
    const bool pair = reader_.tape()[node].kind() == JsonType::array;
    if (pair ? !reader_.numbers(node, ends) : !reader_.number(node, ends[0])) return false;
    min = ends.empty() ? 0 : ends.front();
    max = ends.empty() ? 0 : ends.back();
    return (ends.size() == (pair ? 2 : 1) && min >= least && min <= max) ||
           reader_.fail(node, expected);
  }

  /// A number, or null: any.
  bool bytes(NodeId node, uint64_t& out) const {
    return reader_.tape()[node].kind() == JsonType::null || reader_.u64(node, out);
  }

  /// The parameters of programs. `of_call`: those that the table may not give.
  bool params(NodeId node, std::initializer_list<std::string_view> of_call,
              std::vector<std::pair<std::string, std::string>>& out) const {
    if (!reader_.expect(node, JsonType::object)) return false;
    const JsonTape& tape = reader_.tape();
    for (NodeId m = node + 1; m != tape[node].next; m = tape[m].next) {
      const std::string key(tape.text(tape[m].key));
      if (std::ranges::find(of_call, key) != of_call.end()) {
        return reader_.fail(m, fmt::format("'{}' is the call's, not the table's", key));
      }
      std::string_view text;
      uint64_t number = 0;
      const bool is_text = tape[m].kind() == JsonType::string;
      if (is_text ? !reader_.string(m, text) : !reader_.u64(m, number)) return false;
      out.emplace_back(key, is_text ? std::string(text) : std::to_string(number));
    }
    return true;
  }

  const JsonReader& reader_;
};

}  // namespace mscclc
