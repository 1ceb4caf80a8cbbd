// For tests: an address of this machine that looks as if it were another machine's.
#pragma once

#include <string_view>

namespace mscclc::testing {

/// On the loopback interface, so that a socket that listens at all addresses is reached there.
inline constexpr std::string_view kFarAddress = "127.0.0.77";

/// While one lives, no thread of this process can bind a socket to kFarAddress (EADDRNOTAVAIL).
class FarAddress {
 public:
  FarAddress();
  ~FarAddress();
  FarAddress(const FarAddress&) = delete;
  FarAddress& operator=(const FarAddress&) = delete;
};

}  // namespace mscclc::testing
