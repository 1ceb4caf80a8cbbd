// A file that must not exist yet.
#pragma once

#include <string>
#include <string_view>

namespace mscclc {

/// Writes a new file that only this user may read. False: errno says why (EEXIST: there is such a
/// file), and nothing is left of it.
[[nodiscard]] bool write_new_file(const std::string& name, std::string_view text);

}  // namespace mscclc
