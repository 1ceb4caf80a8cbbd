// How the ranks of a communicator find each other: by ncclUniqueId, or through a communicator that
// they share.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

/// Makes an id, and starts the hub that serves it in this process. False: reported.
[[nodiscard]] bool make_id(ncclUniqueId& id, Diagnostics& diagnostics);

/// Whether ranks could meet by it at all: it is made like those of make_id(). Local. False:
/// reported (bad-unique-id, also of what NCCL_COMM_ID was).
[[nodiscard]] bool check_id(const ncclUniqueId& id, Diagnostics& diagnostics);

/// Collective, of the ranks of `made`, with the same id. It ends when `made` or its parent is
/// aborted, or the parent fails. nullptr: reported.
[[nodiscard]] std::unique_ptr<Bootstrap> meet_by_id(const ncclUniqueId& id, const Comm& made,
                                                    Diagnostics& diagnostics);

/// The ranks of `parent` that make a child together, and which of them this one is.
struct Family {
  std::vector<uint32_t> ranks;  ///< of the parent, in the child's order
  uint32_t rank = 0;            ///< in the child
};

/// Collective over the parent: the ranks of the same color, by key and then by rank. A rank without
/// a color has an empty family. False: reported.
[[nodiscard]] bool find_family(Bootstrap& parent, int color, int key, Family& family,
                               Diagnostics& diagnostics);

/// Collective over the parent: a bootstrap for each family, for its communicator `child`. nullptr:
/// reported, or the family is empty.
[[nodiscard]] std::unique_ptr<Bootstrap> meet_through(Bootstrap& parent, const Family& family,
                                                      const Comm& child, Diagnostics& diagnostics);

/// Collective only over the family, whatever has become of the other ranks and of the parent's
/// bootstrap. `number`: of such meetings of the family, the same on all. It ends when `child` or
/// the parent is aborted. Errors: those of make_bootstrap(); and where the parent's ranks are on
/// several machines.
[[nodiscard]] std::unique_ptr<Bootstrap> meet_again(const Comm& parent, const Family& family,
                                                    uint32_t number, const Comm& child,
                                                    Diagnostics& diagnostics);

/// Collective only over two ranks of the parent, for messages from one to the other: they are ranks
/// 0 and 1. It ends when the parent fails or is aborted. Errors: those of meet_again(), and why the
/// parent has ended.
[[nodiscard]] std::unique_ptr<Bootstrap> meet_for_messages(const Comm& parent, uint32_t from,
                                                           uint32_t to, Diagnostics& diagnostics);

/// Collective over the parent: the id that one of its ranks gives, or several the same. What they
/// have kept counts only if none gives one, as it may be of a meeting that did not come about.
/// nullopt: reported.
[[nodiscard]] std::optional<ncclUniqueId> share_id(Bootstrap& parent,
                                                   const std::optional<ncclUniqueId>& given,
                                                   const std::optional<ncclUniqueId>& kept,
                                                   Diagnostics& diagnostics);

}  // namespace mscclc::nccl
