#include "plans/format/embedded_library.h"

namespace mscclc {
namespace {

constexpr LibraryFile kFiles[] = {
#include "plans/format/embedded_library.inc"
};

constexpr LibraryFile kOverlapFiles[] = {
#include "plans/format/embedded_overlap.inc"
};

constexpr std::string_view kMeasured =
#include "plans/format/embedded_measured.inc"
    ;

constexpr LibraryFile kRows[] = {
#include "plans/format/embedded_rows.inc"
};

}  // namespace

std::span<const LibraryFile> embedded_library() { return kFiles; }
std::span<const LibraryFile> embedded_overlap() { return kOverlapFiles; }
std::string_view embedded_measured() { return kMeasured; }
std::span<const LibraryFile> embedded_rows() { return kRows; }

}  // namespace mscclc
