// What documents say of NCCL's variables: parts of pages that the table of variables makes.
#pragma once

#include <span>
#include <string>

namespace mscclc::nccl {

/// What stands between the marks of a page, in Markdown.
struct GeneratedPart {
  const char* page;  ///< its path from the repository's root
  std::string (*text)();
};

/// For users, what plans read, map or warn of; for maintainers, what is left to NVIDIA's library.
std::span<const GeneratedPart> generated_parts();

/// `page` with that part between its marks. Empty: it has no such marks.
std::string with_generated(const std::string& page, const GeneratedPart& part);

}  // namespace mscclc::nccl
