// Provides lanes over verbs to devices that have none of their own (runtime/network/rdma): those of
// the host. A GPU's are in runtime/devices/cuda/internode.
#include <algorithm>

#include "runtime/network/rdma/rdma.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/verbs_end.h"
#include "runtime/network/verbs/verbs_lane.h"

namespace mscclc::verbs {
namespace {

/// Registrations live as long as the allocation: for reading it, of all of it; for writing it, of
/// the pieces that were shared. They keep the device's context and domain, so nothing else comes to
/// lie there.
class RdmaOverVerbs final : public net::Rdma {
 public:
  explicit RdmaOverVerbs(std::shared_ptr<Adapter> adapter) : adapter_(std::move(adapter)) {}

  std::optional<DeviceKey> expose(const net::Allocation& allocation, uint8_t* data, uint64_t bytes,
                                  Diagnostics& diagnostics) const override {
    const auto offset = static_cast<uint64_t>(data - allocation.data);
    const void* const context = adapter_->port().context.get();
    const auto made = allocation.attached->get(context, offset, bytes, [&] {
      return adapter_->expose(data, std::max<uint64_t>(bytes, 1), diagnostics);
    });
    if (made == nullptr) return std::nullopt;
    return DeviceKey{.address = reinterpret_cast<uint64_t>(data),
                     .key = static_cast<const MemoryRegion*>(made.get())->remote_key()};
  }

  std::unique_ptr<LaneEnd> await_lane(const LanePeer& peer,
                                      std::shared_ptr<ExposedMemory> memory) const override {
    return await_verbs_lane(peer.rank, adapter_, std::move(memory), peer.failed, {}, peer.noted);
  }

  std::unique_ptr<Lane> open_lane(const LanePeer& peer, net::FindAllocation find,
                                  std::chrono::milliseconds timeout,
                                  Diagnostics& diagnostics) const override {
    const auto find_source = [adapter = adapter_, find = std::move(find)](const void* from,
                                                                          uint64_t bytes) {
      const auto allocation = find(from, bytes);
      return allocation ? source_in(*adapter, *allocation) : Source{};
    };
    return open_verbs_lane(peer, adapter_, find_source, timeout, diagnostics);
  }

 private:
  static Source source_in(const Adapter& adapter, const net::Allocation& allocation) {
    Source source;
    const void* const domain = adapter.domain().get();
    using Region = std::shared_ptr<const MemoryRegion>;
    const auto made = allocation.attached->get(domain, 0, allocation.bytes, [&]() -> Region {
      auto region = adapter.read_from(allocation.data, allocation.bytes);
      if (region) return *std::move(region);
      source.error = region.error().text();
      return nullptr;
    });
    if (made != nullptr) source.key = static_cast<const MemoryRegion*>(made.get())->local_key();
    return source;
  }

  const std::shared_ptr<Adapter> adapter_;
};

}  // namespace
}  // namespace mscclc::verbs

namespace mscclc::net {

std::shared_ptr<const Rdma> start_linked_rdma(uint32_t prefer, std::shared_ptr<SocketNet> net,
                                              Diagnostics& diagnostics) {
  auto options = verbs::read_verbs_options(diagnostics);
  if (!options) return nullptr;
  options->prefer = prefer;
  auto adapter = verbs::Adapter::start(*options, std::move(net), diagnostics);
  return adapter == nullptr ? nullptr : std::make_shared<verbs::RdmaOverVerbs>(std::move(adapter));
}

}  // namespace mscclc::net
