// Which GPUs this process would see, for queries: they initialise no driver, as no context may come
// of that, and a process that is forked later has to have a driver of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace mscclc::cuda {

/// What the driver would show at most: the machine's GPUs, as files at `root` list them ("": at
/// /), of which `visible` is CUDA_VISIBLE_DEVICES, or nullptr. nullopt: that cannot be known, as
/// where no list is there, or parts of GPUs (MIG) are chosen.
std::optional<size_t> most_gpus(const std::string& root, const char* visible);

/// Why GPU `ordinal` cannot be opened, as far as that can be known; "": nothing speaks against it.
std::string why_not_seen(int ordinal);

}  // namespace mscclc::cuda
