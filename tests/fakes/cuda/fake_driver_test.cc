// The fake driver itself: that it notices what it is there to notice.
#include "tests/fakes/cuda/fake_driver.h"

#include <unistd.h>

#include <catch2/catch.hpp>

namespace mscclc::cuda {
namespace {

struct Raw {
  FakeDriver fake{{.devices = 2, .fabric = true, .multicast = true}};
  const Driver& driver = fake.driver();
  abi::Context context = nullptr;

  Raw() {
    FakeDriver::enter(0);
    driver.DevicePrimaryCtxRetain(&context, 0);
    driver.CtxPushCurrent(context);
  }
  abi::Handle create(uint64_t bytes) {
    abi::AllocationProperties properties = {};
    properties.type = abi::kAllocationPinned;
    properties.handle_types = abi::kPosixFd | abi::kFabric;
    properties.location = {abi::kLocationDevice, 0};
    abi::Handle handle = 0;
    CHECK(driver.MemCreate(&handle, bytes, &properties, 0) == abi::kSuccess);
    return handle;
  }
  bool noticed(const char* what) {
    for (const std::string& line : fake.misuses()) {
      if (line.find(what) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_CASE("fake driver: giving back twice") {
  Raw raw;
  const abi::Handle handle = raw.create(65536);
  CHECK(raw.fake.leaks().size() == 3);  // context, handle, stack
  CHECK(raw.driver.MemRelease(handle) == abi::kSuccess);
  CHECK(raw.driver.MemRelease(handle) != abi::kSuccess);
  CHECK(raw.noticed("releases handle"));
  CHECK(raw.driver.MemFree(123) != abi::kSuccess);
  CHECK(raw.noticed("which is not allocated"));
}

TEST_CASE("fake driver: another process's handle") {
  Raw raw;
  const abi::Handle handle = raw.create(65536);
  FakeDriver::enter(1);
  CHECK(raw.driver.MemRelease(handle) != abi::kSuccess);
  CHECK(raw.noticed("process 1: releases handle"));
}

TEST_CASE("fake driver: mapping beyond an allocation, and at an offset") {
  Raw raw;
  const abi::Handle handle = raw.create(65536);
  abi::Address address = 0;
  CHECK(raw.driver.MemAddressReserve(&address, 131072, 0, 0, 0) == abi::kSuccess);
  CHECK(raw.driver.MemMap(address, 131072, 0, handle, 0) == abi::kInvalidValue);
  CHECK(raw.driver.MemMap(address, 65536, 65536, handle, 0) == abi::kInvalidValue);
  CHECK(raw.driver.MemMap(address + 131072, 65536, 0, handle, 0) == abi::kInvalidValue);
  CHECK(raw.noticed("maps where no addresses are reserved"));
}

TEST_CASE("fake driver: use after free, and a GPU without access") {
  Raw raw;
  abi::Stream stream = nullptr;
  abi::Address address = 0;
  CHECK(raw.driver.StreamCreateWithPriority(&stream, abi::kStreamNonBlocking, 0) == abi::kSuccess);
  CHECK(raw.driver.MemAlloc(&address, 64) == abi::kSuccess);
  abi::Context other = nullptr;
  abi::Stream stream_1 = nullptr;
  raw.driver.DevicePrimaryCtxRetain(&other, 1);
  raw.driver.CtxPushCurrent(other);
  raw.driver.StreamCreateWithPriority(&stream_1, abi::kStreamNonBlocking, 0);
  CHECK(raw.driver.MemsetD8Async(address, 0, 64, stream) != abi::kSuccess);
  CHECK(raw.noticed("uses a stream of another context"));
  raw.driver.MemsetD8Async(address, 0, 64, stream_1);
  CHECK(raw.noticed("no access to that GPU"));
  raw.driver.CtxPopCurrent(&other);
  raw.driver.MemFree(address);
  raw.driver.MemsetD8Async(address, 0, 64, stream);
  CHECK(raw.noticed("nothing is there"));
}

TEST_CASE("fake driver: a fabric handle keeps nothing alive, a descriptor does") {
  Raw raw;
  const abi::Handle handle = raw.create(65536);
  abi::FabricHandle fabric = {};
  int fd = -1;
  CHECK(raw.driver.MemExportToShareableHandle(&fabric, handle, abi::kFabric, 0) == abi::kSuccess);
  CHECK(raw.driver.MemExportToShareableHandle(&fd, handle, abi::kPosixFd, 0) == abi::kSuccess);
  raw.driver.MemRelease(handle);
  CHECK(raw.fake.allocated(0) == 65536);
  close(fd);
  CHECK(raw.fake.allocated(0) == 0);
  abi::Handle imported = 0;
  CHECK(raw.driver.MemImportFromShareableHandle(&imported, &fabric, abi::kFabric) != abi::kSuccess);
  CHECK(raw.noticed("whose allocation has ended"));
}

TEST_CASE("fake driver: what waits for a context breaks its captures, as with driver 580") {
  Raw raw;
  abi::Stream stream = nullptr;
  REQUIRE(raw.driver.StreamCreateWithPriority(&stream, abi::kStreamNonBlocking, 0) ==
          abi::kSuccess);
  const auto status = [&] {
    int status = -1;
    CHECK(raw.driver.StreamIsCapturing(stream, &status) == abi::kSuccess);
    return status;
  };
  raw.fake.begin_capture(abi::kCaptureModeRelaxed, stream);
  CHECK(status() == abi::kCaptureStatusActive);
  CHECK(raw.driver.CtxSynchronize() == abi::kStreamCaptureUnsupported);
  CHECK(status() == abi::kCaptureStatusInvalidated);
  CHECK(raw.fake.end_capture() == nullptr);
  CHECK(status() == abi::kCaptureStatusNone);
  CHECK(raw.driver.CtxSynchronize() == abi::kSuccess);
  raw.fake.begin_capture(abi::kCaptureModeRelaxed, stream);
  CHECK(raw.fake.end_capture() != nullptr);
}

TEST_CASE("fake driver: multicast") {
  Raw raw;
  const abi::MulticastProperties properties = {2, 262144, abi::kPosixFd, 0};
  abi::Handle object = 0;
  abi::Address address = 0;
  const abi::Handle memory = raw.create(131072);
  CHECK(raw.driver.MulticastCreate(&object, &properties) == abi::kSuccess);
  CHECK(raw.driver.MemAddressReserve(&address, 262144, 0, 0, 0) == abi::kSuccess);
  CHECK(raw.driver.MulticastAddDevice(object, 0) == abi::kSuccess);
  CHECK(raw.driver.MulticastAddDevice(object, 0) != abi::kSuccess);
  CHECK(raw.driver.MulticastBindMem(object, 0, memory, 0, 131072, 0) != abi::kSuccess);
  CHECK(raw.driver.MemMap(address, 262144, 0, object, 0) != abi::kSuccess);
  CHECK(raw.noticed("binds memory before all devices are there"));
  CHECK(raw.noticed("maps a multicast object before all devices are there"));
  CHECK(raw.driver.MulticastAddDevice(object, 1) == abi::kSuccess);
  CHECK(raw.driver.MulticastBindMem(object, 65536, memory, 0, 131072, 0) != abi::kSuccess);
  CHECK(raw.noticed("not aligned"));
  CHECK(raw.driver.MulticastBindMem(object, 262144, memory, 0, 131072, 0) != abi::kSuccess);
  CHECK(raw.noticed("beyond the end"));
  CHECK(raw.driver.MulticastBindMem(object, 0, memory, 0, 131072, 0) == abi::kSuccess);
  CHECK(raw.driver.MulticastBindMem(object, 0, memory, 0, 131072, 0) != abi::kSuccess);
  CHECK(raw.noticed("where memory is bound"));
  CHECK(raw.driver.MulticastUnbind(object, 0, 0, 262144) != abi::kSuccess);
  CHECK(raw.noticed("was not bound so"));
  raw.driver.MemRelease(object);
  CHECK(raw.noticed("ends a multicast object with memory bound"));
}

}  // namespace
}  // namespace mscclc::cuda
