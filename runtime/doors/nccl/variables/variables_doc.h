// The table of NCCL's variables in docs/nccl.md.
#pragma once

#include <string>

namespace mscclc::nccl {

/// The table, and the names that stand for NVIDIA's library only. Markdown.
std::string variables_table();

/// `page` with that table between its marks. Empty: it has no such marks.
std::string with_variables_table(const std::string& page);

}  // namespace mscclc::nccl
