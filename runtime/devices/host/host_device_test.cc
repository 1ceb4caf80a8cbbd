#include "runtime/api/host_device.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "executor/launch.h"
#include "runtime/support/memory/fd_socket.h"
#include "runtime/support/memory/handle.h"

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

TEST_CASE("a handle can name nothing that was not offered") {
  Diagnostics diagnostics;
  const auto exporter = make_host_device(diagnostics), importer = make_host_device(diagnostics);
  REQUIRE((exporter != nullptr && importer != nullptr));
  const auto memory = exporter->allocate(4096, "a buffer", diagnostics);
  const auto handle = exporter->export_memory(memory->data() + 64, 100, diagnostics);
  REQUIRE(handle);
  const auto mapped = importer->import_memory(*handle, diagnostics);
  REQUIRE(mapped != nullptr);
  CHECK(mapped->data() == memory->data() + 64);
  const auto refused = [&](MemoryHandle forged) {
    Diagnostics problems;
    CHECK(importer->import_memory(forged, problems) == nullptr);
    return problems.all().front().message;
  };
  const std::string range = "its owner lets others map 100 bytes at 64 of it, the handle is for ";
  MemoryHandle whole = *handle;
  whole.offset = 0;
  whole.bytes = 4096;
  CHECK(refused(whole) ==
        "cannot map 4096 bytes of a peer's memory (same_process: " + range +
            "4096 bytes at 0; host_fd: cannot fetch a descriptor from a peer's process: " + range +
            "4096 bytes at 0); memory that other processes map is made by mscclc "
            "(Device::allocate, mscclc_memory_create, Communicator.allocate in Python)");
  // An address instead of a ticket, as old versions sent it.
  MemoryHandle address = *handle;
  address.offers.resize(1);
  address.offers[0].bytes.resize(32);
  CHECK_THAT(refused(address), Catch::Contains("same_process: it is memory of another process"));
  MemoryHandle guessed = *handle;
  guessed.offers.resize(1);
  guessed.offers[0].bytes.back() ^= 1;
  CHECK_THAT(refused(guessed), Catch::Contains("this process does not offer it (any more)"));
}

TEST_CASE("a kind of lanes that there is not") {
  for (const std::string name : {"socket", "ib", "InfiniBand"}) {
    ::setenv("MSCCLC_LANE", name.c_str(), 1);
    Diagnostics refused;
    CHECK(make_host_device(refused) == nullptr);
    CHECK(render_text(refused, Sources(), 100) ==
          "error: MSCCLC_LANE is '" + name + "'; allowed is 'sockets' or 'verbs'\n");
  }
  Diagnostics diagnostics;
  // Where the program says it, the variable is not read.
  CHECK(make_host_device(diagnostics, {}, HostLanes::copies, {}, FarLanes::sockets) != nullptr);
  ::unsetenv("MSCCLC_LANE");
}

}  // namespace
}  // namespace mscclc
