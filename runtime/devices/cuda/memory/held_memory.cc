#include "runtime/devices/cuda/memory/held_memory.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "runtime/devices/cuda/driver/stream.h"

namespace mscclc::cuda {
namespace {

/// What the driver knows an allocation by. Of virtual memory management the handle, which is
/// another one for another allocation as long as a reference to the first is held. Of all others
/// the buffer's id, which comes only once in a process.
struct Identity {
  HandleReference first, last;  ///< of the first and last byte; empty: no mapping
  uint64_t buffer = 0;

  bool is(const Identity& other) const {
    if (first || other.first) {
      return first && other.first && first.get() == other.first.get() && last && other.last &&
             last.get() == other.last.get();
    }
    return buffer == other.buffer;
  }
};

std::optional<Identity> identify(const SharedContext& context, abi::Address address, uint64_t bytes,
                                 Diagnostics& diagnostics) {
  const CurrentContext current(*context);
  const OutsideCapture outside(context->driver());
  Identity found;
  if (!current.is_set(diagnostics)) return std::nullopt;
  if (context->attribute(abi::kVirtualMemoryManagementSupported) != 0 &&
      (!HandleReference::retain(context, address, found.first, diagnostics) ||
       !HandleReference::retain(context, address + bytes - 1, found.last, diagnostics))) {
    return std::nullopt;
  }
  if (found.first) return found;
  if (!context->ok(
          context->driver().PointerGetAttribute(&found.buffer, abi::kBufferId, address),
          [&] { return fmt::format("find the allocation at {:#x}", address); }, diagnostics)) {
    return std::nullopt;
  }
  return found;
}

class CudaHeldMemory final : public HeldMemory {
 public:
  CudaHeldMemory(SharedContext context, abi::Address address, uint64_t bytes, Identity identity)
      : context_(std::move(context)),
        address_(address),
        bytes_(bytes),
        identity_(std::move(identity)) {}

  bool is_there() const override {
    Diagnostics nothing_is_there;
    const auto now = identify(context_, address_, bytes_, nothing_is_there);
    return now && now->is(identity_);
  }

 private:
  const SharedContext context_;
  const abi::Address address_;
  const uint64_t bytes_;
  const Identity identity_;
};

}  // namespace

std::unique_ptr<HeldMemory> hold_memory(const SharedContext& context, const void* address,
                                        uint64_t bytes, Diagnostics& diagnostics) {
  if (bytes > std::numeric_limits<abi::Address>::max() - address_of(address)) {
    diagnostics
        .error("bad-call", {},
               fmt::format("there is no memory of {} bytes at {:#x}: it would end after the last "
                           "address",
                           bytes, address_of(address)))
        .notes.push_back(
            {"pass the buffer's size in bytes; a negative number becomes one as large"});
    return nullptr;
  }
  auto identity = identify(context, address_of(address), bytes, diagnostics);
  if (!identity) return nullptr;
  return std::make_unique<CudaHeldMemory>(context, address_of(address), bytes,
                                          *std::move(identity));
}

}  // namespace mscclc::cuda
