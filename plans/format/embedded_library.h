// The library as part of the program: the text of library.json and of every program, so that
// nothing need be installed.
#pragma once

#include <span>
#include <string_view>

namespace mscclc {

struct LibraryFile {
  std::string_view name;  ///< "library.json", "allreduce_push.mscl"
  std::string_view text;
};

/// All files, in the order of a listing of their folder.
std::span<const LibraryFile> embedded_library();
/// The programs of plans/overlap, which no table picks.
std::span<const LibraryFile> embedded_overlap();
/// plans/overlap/measured.json, the table of what was measured (runtime/choice/overlap/measured.h).
std::string_view embedded_measured();
/// The same of plans/rows: its library.json (row_table.h), "allreduce_norm_1shot.mscl".
std::span<const LibraryFile> embedded_rows();

}  // namespace mscclc
