// Which devices and ports are to be used, as a user writes it, in NCCL's syntax: "mlx5_0:1,mlx5_2"
// (names begin so), "=mlx5_0:1" (exact names), "^mlx5_3" and "^=mlx5_3" (all others); and in ours,
// "?mlx5" and "?=mlx5_0" (those of them that are usable). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/result.h"

namespace mscclc {

struct HcaList {
  struct HcaPort {
    std::string name;
    uint8_t port = 0;  ///< 0: any
  };
  bool lenient = false;  ///< entries that are not usable, or not there, are passed over
  bool others = false;   ///< all but the entries
  bool exact = false;    ///< whole names, not what names begin with
  std::vector<HcaPort> entries = {};

  /// Does an entry mean this port?
  bool fits(const HcaPort& entry, std::string_view device, uint8_t port) const;
  /// An empty list means every device.
  bool has(std::string_view device, uint8_t port) const;
  /// Does it name what it wants? Otherwise whatever is usable will do.
  bool names() const { return !others && !lenient && !entries.empty(); }
};

Result<HcaList> parse_hca_list(std::string_view text);

/// What MSCCLC_IB_HCA says. nullopt: reported (bad-variable).
[[nodiscard]] std::optional<HcaList> read_hca_list(const std::string& text,
                                                   Diagnostics& diagnostics);

}  // namespace mscclc
