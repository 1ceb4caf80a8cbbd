// Folders of the user for what one process keeps for the next: what was proved, kernels of plans.
// What lies there is believed, so it counts only where no other user can write. A cache may be
// deleted at any time.
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fd.h"

namespace mscclc {

struct CacheFolder {
  std::string path;       ///< "": there is none
  std::string root = {};  ///< nothing is made below it where it is not: the user's home is not ours
};

/// The folder that `variable` names, or mscclc/`name` in the user's folder for caches. nullopt:
/// reported (bad-variable).
[[nodiscard]] std::optional<CacheFolder> cache_folder(const Environment& environment,
                                                      Variable variable, const std::string& name,
                                                      Diagnostics& diagnostics);

/// The error where a folder is there, but is not this user's own.
inline constexpr const char* kNotOwn = "it is another user's, or others may write there";
/// Opens a folder that is this user's, and that no other user may write to.
Result<Fd> open_own_folder(const std::string& path);
/// The same, of a folder that is made if it is not there.
Result<Fd> make_own_folder(const CacheFolder& folder);
/// A regular file in it that is this user's, and that no other user may write to. Links are not
/// followed. Not valid: there is none.
[[nodiscard]] Fd open_own_file(const Fd& folder, const std::string& name);

}  // namespace mscclc
