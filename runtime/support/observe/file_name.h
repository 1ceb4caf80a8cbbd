// Names of files that each process, or rank, writes for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mscclc {

/// Puts in what a pattern leaves open: %h the machine's name, %p the process's id, %r the rank, %%
/// a percent sign. "" where it asks for something else, or for the rank where there is none.
std::string expand_file_name(std::string_view pattern, std::optional<uint32_t> rank);

/// This machine's name.
std::string host_name();

}  // namespace mscclc
