// Ranks as processes of this machine, forked by this one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace mscclc {

/// Forks `ranks` processes; each gets the text that `make_id` makes in this process once they are
/// there, and returns fn(rank, id) as its exit code. Their standard error comes out in rank order
/// once all have ended, equal texts once. Returns the greatest exit code; one that is ended by a
/// signal is reported and counts as `failed`.
int run_processes(uint32_t ranks, const std::function<std::string()>& make_id,
                  const std::function<int(uint32_t rank, const std::string& id)>& fn, int failed);

}  // namespace mscclc
