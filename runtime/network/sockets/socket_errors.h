// Why a connection of a lane has ended, in words.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "runtime/support/fd.h"

namespace mscclc::net {

/// `error`: of the system; 0: the other end has closed it. `dead`: SocketOptions::dead.
inline std::string connection_error_text(int error, std::chrono::seconds dead) {
  if (error == 0) return "its process has ended, or has closed the connection";
  if (error == ETIMEDOUT) {
    return fmt::format(
        "nothing has been heard from its machine for {} s: the machine is down, its "
        "process is stopped, or the network between is cut",
        dead.count());
  }
  return "its connection broke: " + error_text(error);
}

}  // namespace mscclc::net
