#include "runtime/host/host_device.h"

#include <catch2/catch.hpp>

#include "runtime/memory/fd_socket.h"

namespace mscclc {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a peer that does not hand out its descriptor costs the timeout that was set") {
  FdTicket ticket;
  fill_random(ticket.socket);
  const Fd listener = listen_for_fds(ticket);
  REQUIRE(listener.valid());
  Diagnostics diagnostics;
  const auto device = make_host_device(diagnostics);
  REQUIRE(device != nullptr);
  device->set_timeout(milliseconds(100));
  MemoryHandle handle;
  handle.bytes = handle.allocation = 16;
  handle.offers = {{HandleKind::host_fd, ticket.bytes()}};
  CHECK(device->import_memory(handle, diagnostics) == nullptr);
  CHECK_THAT(diagnostics.all().front().message, Catch::Contains("no answer within 100 ms"));
}

}  // namespace
}  // namespace mscclc
