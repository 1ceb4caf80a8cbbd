#include "plans/format/embedded_library.h"

namespace mscclc {
namespace {

constexpr LibraryFile kFiles[] = {
#include "plans/format/embedded_library.inc"
};

}  // namespace

std::span<const LibraryFile> embedded_library() { return kFiles; }

}  // namespace mscclc
