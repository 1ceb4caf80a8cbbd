// Bounds how many files of one kind a folder keeps.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace mscclc {

/// Of the files of this user in `folder` whose names `is_one` accepts, leaves the newest `most`.
/// What cannot be removed stays. From any thread, also while other processes do the same.
void drop_old_files(const std::string& folder, const std::function<bool(std::string_view)>& is_one,
                    size_t most);

}  // namespace mscclc
