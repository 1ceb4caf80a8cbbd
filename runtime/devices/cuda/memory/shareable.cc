#include "runtime/devices/cuda/memory/shareable.h"

#include <cstring>

namespace mscclc::cuda {
namespace {

HandleReference import_fd(const SharedContext& context, const Exchange& exchange,
                          const MemoryRange& wanted, const Offer& offer, Diagnostics& diagnostics) {
  const Fd fd = exchange.fetch(offer.bytes, wanted, exchange.wait, diagnostics);
  if (!fd.valid()) return {};
  abi::Handle handle = 0;
  void* shareable = reinterpret_cast<void*>(static_cast<uintptr_t>(fd.get()));
  if (!context->ok(
          context->driver().MemImportFromShareableHandle(&handle, shareable, abi::kPosixFd),
          "import a file descriptor", diagnostics)) {
    return {};
  }
  return {context, handle};
}

// The handle that the import gives is this process's own and is released here; the exporter's
// reference, which keeps the allocation alive until then, is not ours.
HandleReference import_fabric(const SharedContext& context, const Offer& offer,
                              Diagnostics& diagnostics) {
  abi::FabricHandle fabric = {};
  if (offer.bytes.size() != sizeof fabric.data) {
    diagnostics.error("bad-handle", {}, "the offer is damaged");
    return {};
  }
  std::memcpy(fabric.data, offer.bytes.data(), sizeof fabric.data);
  abi::Handle handle = 0;
  if (!context->ok(context->driver().MemImportFromShareableHandle(&handle, &fabric, abi::kFabric),
                   "import a fabric handle", diagnostics)) {
    return {};
  }
  return {context, handle};
}

void offer_fabric(abi::Handle exported, const SharedContext& context, MemoryHandle& handle,
                  Diagnostics& refused) {
  abi::FabricHandle fabric = {};
  if (!context->ok(context->driver().MemExportToShareableHandle(&fabric, exported, abi::kFabric, 0),
                   "export it as a fabric handle", refused)) {
    return;
  }
  handle.offers.push_back(
      {HandleKind::cuda_fabric, {fabric.data, fabric.data + sizeof fabric.data}});
}

}  // namespace

KeptOffers::~KeptOffers() {
  if (!ticket_.empty()) server_->withdraw(ticket_);
}

void KeptOffers::offer(const HandleReference& reference, int types, const SharedContext& context,
                       const Exchange& exchange, MemoryHandle& handle, Diagnostics& refused) {
  if ((types & abi::kPosixFd) != 0) {
    offer_fd(reference.get(), context, exchange, handle, refused);
  }
  if ((types & abi::kFabric) != 0) offer_fabric(reference.get(), context, handle, refused);
}

void KeptOffers::offer_fd(abi::Handle exported, const SharedContext& context,
                          const Exchange& exchange, MemoryHandle& handle, Diagnostics& refused) {
  int fd = -1;
  if (!context->ok(context->driver().MemExportToShareableHandle(&fd, exported, abi::kPosixFd, 0),
                   "export it as a file descriptor", refused)) {
    return;
  }
  std::vector<uint8_t> ticket = lend(Fd(fd), exchange, handle.range(), refused);
  if (!ticket.empty()) handle.offers.push_back({HandleKind::cuda_fd, std::move(ticket)});
}

std::vector<uint8_t> KeptOffers::lend(const Fd& fd, const Exchange& exchange,
                                      const MemoryRange& range, Diagnostics& refused) {
  if (!fd.valid()) return {};
  if (exchange.server == nullptr) {
    refused.error("cannot-share", {}, "there is no server for file descriptors");
    return {};
  }
  ticket_ = exchange.server->offer(fd.get(), range, refused);
  server_ = exchange.server;
  return ticket_;
}

HandleReference import_reference(const SharedContext& context, const Exchange& exchange,
                                 const MemoryHandle& handle, const Offer& offer,
                                 Diagnostics& diagnostics) {
  if (offer.kind == HandleKind::cuda_fd) {
    return import_fd(context, exchange, handle.range(), offer, diagnostics);
  }
  return import_fabric(context, offer, diagnostics);
}

}  // namespace mscclc::cuda
