#include "runtime/doors/nccl/calls/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ir/diagnostics/printable.h"
#include "runtime/api/bootstrap.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/window_calls.h"

namespace mscclc::nccl {
namespace {

/// What all ranks must say alike. A pre-multiplied sum has another handle, and may have another
/// scalar, on each rank.
std::string text_of(const Comm& comm, const NcclCall& call) {
  const std::string op =
      call.reduction == nullptr ? std::to_string(nccl_op_of(call.op)) : "of PreMulSum";
  return fmt::format("{} count {} datatype {} op {} root {}{}{}{}{}", name(call), call.count,
                     nccl_type_of(call.dtype), op, call.root,
                     call.most_blocks != 0 ? fmt::format(" maxCTAs {}", call.most_blocks) : "",
                     call.cta_policy ? fmt::format(" CTAPolicy {}", *call.cta_policy) : "",
                     call.order ? fmt::format(" order {}", mscclc::name(*call.order)) : "",
                     lies_in_windows(comm, call) ? ", in symmetric windows" : "");
}

std::vector<uint8_t> describe(const Comm& comm, const std::vector<const NcclCall*>& calls) {
  std::string text;
  for (const NcclCall* call : calls) {
    if (is_collective(*call)) text += text_of(comm, *call) + '\n';
  }
  return {text.begin(), text.end()};
}

/// The line of a text in which it first differs from another; "no call" if it ends there.
std::string first_difference(const std::vector<uint8_t>& text, const std::vector<uint8_t>& other) {
  const auto differs = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
  auto begin = differs;
  while (begin != text.begin() && begin[-1] != '\n') --begin;
  const auto end = std::find(differs, text.end(), '\n');
  return begin == end ? "no call" : printable_line(std::string(begin, end));
}

}  // namespace

ncclResult_t compare_calls(Comm& comm, const std::vector<const NcclCall*>& calls) {
  const std::vector<uint8_t> own = describe(comm, calls);
  if (own.empty() || comm.ranks == 1) return ncclSuccess;
  std::vector<std::vector<uint8_t>> all;
  Diagnostics diagnostics;
  if (!comm.communicator->bootstrap().all_gather(own, "compare calls", all, diagnostics)) {
    return fail(ncclRemoteError, "cannot compare calls", diagnostics);
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return fail(
        ncclInvalidUsage,
        fmt::format("the ranks' calls differ (MSCCLC_CHECK_CALLS): rank {} makes {}, rank 0 "
                    "makes {}",
                    rank, first_difference(all[rank], all[0]),
                    first_difference(all[0], all[rank])));
  }
  return ncclSuccess;
}

}  // namespace mscclc::nccl
