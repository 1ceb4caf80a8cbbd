// Files written whole, and one that must not exist yet.
#pragma once

#include <string>
#include <string_view>

#include "runtime/support/fd.h"

namespace mscclc {

/// Writes all of it, whatever the system takes at once. False: errno says why not.
[[nodiscard]] bool write_fully(const Fd& file, std::string_view text);

/// Writes a new file that only this user may read. False: errno says why (EEXIST: there is such a
/// file), and nothing is left of it.
[[nodiscard]] bool write_new_file(const std::string& name, std::string_view text);

}  // namespace mscclc
