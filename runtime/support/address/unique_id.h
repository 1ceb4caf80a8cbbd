// What a job's ranks must know to meet: where, and a secret that keeps strangers out.
//
//   mscclc1/10.0.0.1/24123/5f0c7a3e9d6b48a1b2c3d4e5f6071829
//   version  address  port  secret: 32 hexadecimal digits
//
//   mscclc1/local/0/5f0c7a3e9d6b48a1b2c3d4e5f6071829       ranks of one machine: a unix socket
//
// One line that needs no shell quoting. The process that makes an id runs the job's hub (hub.h),
// and passes the text to all ranks by any channel it has.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/address/address.h"

namespace mscclc {

class Environment;

/// A key of 128 bits. Known to the ranks of one job.
using Secret = std::array<uint8_t, 16>;

struct UniqueId {
  static constexpr uint64_t kMaxText = 128;  ///< text() is shorter
  Address address;
  Secret secret{};
  bool local = false;  ///< ranks meet at a unix socket, whose name is derived from the secret

  std::string text() const;
  /// Reads exactly what text() writes. Errors (bad-unique-id): which part is wrong. They do not
  /// show the secret.
  [[nodiscard]] static std::optional<UniqueId> parse(std::string_view text,
                                                     Diagnostics& diagnostics);
  /// MSCCLC_ID, which is set. Errors (bad-variable): it is not allowed, or no id. They do not show
  /// it.
  [[nodiscard]] static std::optional<UniqueId> of_variable(const Environment& environment,
                                                           Diagnostics& diagnostics);
};

}  // namespace mscclc
