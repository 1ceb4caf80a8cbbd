// What a user may choose of lanes over verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/settings/hca_list.h"

namespace mscclc::verbs {

/// How a signal is given to a peer.
enum class SignalMode : uint8_t {
  host,           ///< the device adds to the count (RDMA atomic)
  host_no_atomic  ///< a write with immediate, which the peer's processor carries out
};
/// "host", "host-no-atomic"
std::string_view name(SignalMode mode);

constexpr uint32_t kMaxQueues = 16;

struct VerbsOptions {
  std::string library = "libibverbs.so.1";
  HcaList devices = {};
  std::optional<uint32_t> gid_index = {};  ///< nullopt: it is found
  std::optional<SignalMode> mode = {};     ///< nullopt: host where both devices have atomics
  uint32_t queues = 1;                     ///< queue pairs of each lane, up to kMaxQueues
  uint8_t timeout = 18;                    ///< an answer is waited for 4.096 us * 2^timeout
  uint8_t retries = 7;                     ///< so often it is asked for again
  uint8_t service_level = 0;               ///< of InfiniBand, up to 15
  uint8_t traffic_class = 0;               ///< of packets with a global header
  uint16_t partition = 0;                  ///< an index of the port's table of keys
  uint32_t prefer = 0;  ///< which of several ports that fit: their number modulo how many there are
  std::string mlx5_library = "libmlx5.so.1";
  bool data_direct = false;    ///< memory is a GPU's: data-direct functions are looked for
  std::string gpu = {};        ///< whose lanes: its PCI number; the nearest port is taken
  std::string sysfs = "/sys";  ///< where the system shows what is near
};

/// As the process's environment says. nullopt: reported (bad-variable).
[[nodiscard]] std::optional<VerbsOptions> read_verbs_options(Diagnostics& diagnostics);

}  // namespace mscclc::verbs
