// What tests of this folder share: the library that is compiled in.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "plans/format/embedded_library.h"
#include "plans/format/library_table.h"
#include "tools/tune/candidate.h"

namespace mscclc::tune {

inline std::optional<std::string> text_of_library(const std::string& file) {
  for (const LibraryFile& f : embedded_library()) {
    if (f.name == file) return std::string(f.text);
  }
  return std::nullopt;
}

inline std::optional<std::string> program_of_library(const std::string& program) {
  return text_of_library(program + ".mscl");
}

inline const LibraryTable& whole_library() {
  static const LibraryTable kTable = [] {
    Diagnostics diagnostics;
    return LibraryTable::parse(text_of_library("library.json").value(), "library.json", diagnostics)
        .value();
  }();
  return kTable;
}

inline constexpr Limits kLimits{.max_blocks = 132};

inline LibraryCall two_ranks(uint64_t bytes) {
  return {.kind = CollectiveKind::allreduce, .ranks = 2, .bytes = bytes};
}

}  // namespace mscclc::tune
