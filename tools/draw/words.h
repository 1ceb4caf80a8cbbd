// Ops in few words, as boxes show them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tools/draw/symmetry.h"

namespace mscclc::draw {

/// What a box says of an op that moves data: "input[6] + inbox[0]".
struct DataWords {
  std::string name;      ///< "reduce_send"
  std::string from, to;  ///< chunks read, chunks written
};

DataWords data_words(const Program& program, uint32_t rank, const Op& op, const PeerNames& names);

/// What a box says of an op without data: "wait r − 1", "barrier tb 0–3".
std::string control_words(const Program& program, uint32_t rank, const Op& op,
                          const PeerNames& names);

/// The chunk of input or output that an op is about, or the first of a run; -1 if it is about
/// several, or scratch alone.
int64_t main_chunk(const Program& program, const Op& op);

/// Adds the chunks that an op reads and writes, each alone, after its rank: "1 inbox[0]".
void add_chunks(const Program& program, uint32_t rank, const Op& op, std::set<std::string>& reads,
                std::set<std::string>& writes);

/// The text with at most `most` characters.
std::string shortened(const std::string& text, size_t most);

/// The text in at most `lines` lines of at most `most` characters, broken at spaces.
std::vector<std::string> wrapped(const std::string& text, size_t most, size_t lines);

/// How many characters a text of UTF-8 has.
size_t characters(const std::string& text);

/// The unit of a pipeline: "512 KiB".
std::string size_words(uint64_t bytes);

}  // namespace mscclc::draw
