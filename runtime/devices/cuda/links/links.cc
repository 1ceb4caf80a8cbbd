#include "runtime/devices/cuda/links/links.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/support/bytes.h"

namespace mscclc::cuda {
namespace {

bool read_uuid(const PrimaryContext& context, abi::Ordinal ordinal, abi::Uuid& uuid,
               Diagnostics& diagnostics) {
  return context.ok(context.driver().DeviceGetUuid(&uuid, ordinal),
                    fmt::format("get the UUID of cuda:{}", ordinal), diagnostics);
}

/// The ordinal of a GPU here, or -1. False: reported.
bool find_ordinal(const PrimaryContext& context, const abi::Uuid& wanted, int& found,
                  Diagnostics& diagnostics) {
  int count = 0;
  found = -1;
  if (!context.ok(context.driver().DeviceGetCount(&count), "count GPUs", diagnostics)) return false;
  for (int i = 0; i < count && found < 0; ++i) {
    abi::Uuid uuid{};
    if (!read_uuid(context, i, uuid, diagnostics)) return false;
    if (uuid == wanted) found = i;
  }
  return true;
}

/// By the driver, of a GPU that it shows this process.
std::optional<Link> ask_driver(const PrimaryContext& context, int peer, Diagnostics& diagnostics) {
  const int own = context.ordinal();
  const auto has = [&](abi::P2PAttribute attribute, bool& value) {
    int number = 0;
    const abi::Result result =
        context.driver().DeviceGetP2PAttribute(&number, attribute, own, peer);
    value = number != 0;
    return context.ok(result, fmt::format("ask what joins cuda:{} and cuda:{}", own, peer),
                      diagnostics);
  };
  Link link;
  if (!has(abi::kAccessSupported, link.access) || !has(abi::kNativeAtomicSupported, link.atomics)) {
    return std::nullopt;
  }
  link.kind = link.atomics ? LinkKind::nvlink : LinkKind::pcie;
  link.why = fmt::format("cuda:{} and cuda:{} have {}", own, peer,
                         !link.access    ? "no peer access"
                         : !link.atomics ? "no native atomics between them, so no NVLink"
                                         : "native atomics between them");
  return link;
}

/// By NVML, of a GPU that this process does not see.
Link ask_nvml_for(const abi::Uuid& own, const abi::Uuid& peer, const AskNvml& nvml,
                  Diagnostics& diagnostics) {
  const std::string pair = fmt::format("{} and {}", text_of(own), text_of(peer));
  const std::optional<NvmlLink> known = nvml(own, peer);
  if (!known) {
    diagnostics
        .warning("unknown-link", {},
                 fmt::format("the link between {} is unknown: PCIe is assumed", pair))
        .notes.push_back(
            {"CUDA_VISIBLE_DEVICES hides the other one from this process: let each see "
             "all GPUs, or install NVML (libnvidia-ml.so.1)"});
    return {LinkKind::pcie, true, false, pair + ": the link between them is unknown"};
  }
  const char* const what = known->instance  ? "a MIG instance reaches no other"
                           : !known->access ? "no peer access"
                           : known->nvlink  ? "NVLink"
                                            : "no NVLink";
  return {known->nvlink ? LinkKind::nvlink : LinkKind::pcie, known->access,
          known->atomics || known->nvlink, fmt::format("{}, says NVML: {}", pair, what)};
}

}  // namespace

std::optional<GpuName> name_of(const PrimaryContext& context, Diagnostics& diagnostics) {
  const std::optional<HostPlace> place = this_host_place(diagnostics);
  if (!place) return std::nullopt;
  GpuName name{.place = *place, .uuid = {}};
  if (!read_uuid(context, context.ordinal(), name.uuid, diagnostics)) return std::nullopt;
  return name;
}

std::vector<uint8_t> encode(const GpuName& name) {
  std::vector<uint8_t> bytes;
  ByteWriter(bytes)
      .bytes(name.place.boot)
      .number(name.place.device)
      .number(name.place.inode)
      .bytes(name.uuid.bytes)
      .number(name.node)
      .number(static_cast<uint8_t>(name.fabric.made))
      .number(static_cast<uint8_t>(name.fabric.joined.has_value()))
      .bytes(name.fabric.joined.value_or(Fabric{}).cluster.bytes)
      .number(name.fabric.joined.value_or(Fabric{}).clique);
  return bytes;
}

std::optional<GpuName> decode_name(std::span<const uint8_t> from) {
  GpuName name{};
  ByteReader reader(from);
  const auto boot = reader.bytes(name.place.boot.size());
  name.place.device = reader.number<uint64_t>();
  name.place.inode = reader.number<uint64_t>();
  const auto uuid = reader.bytes(sizeof name.uuid.bytes);
  name.node = reader.number<uint32_t>();
  name.fabric.made = reader.number<uint8_t>() != 0;
  const bool joined = reader.number<uint8_t>() != 0;
  Fabric fabric;
  const auto cluster = reader.bytes(sizeof fabric.cluster.bytes);
  fabric.clique = reader.number<uint32_t>();
  if (!reader.ended()) return std::nullopt;
  std::ranges::copy(boot, name.place.boot.begin());
  std::ranges::copy(uuid, name.uuid.bytes);
  std::ranges::copy(cluster, fabric.cluster.bytes);
  if (joined) name.fabric.joined = fabric;
  return name;
}

std::string text_of(const abi::Uuid& uuid, std::string_view kind) {
  std::string text(kind);
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "", uuid.bytes[i]);
  }
  return text;
}

// That both make handles says nothing of what joins them: machines do so, too, that only networks
// join. Containers of one machine share what joins its GPUs.
bool are_far(const GpuName& own, const GpuName& peer) {
  if (own.place == peer.place) return own.node != peer.node;
  const FabricHandles& ours = own.fabric;
  if (!ours.made || !peer.fabric.made || ours.joined != peer.fabric.joined) return true;
  return !ours.joined && own.place.boot != peer.place.boot;
}

std::optional<Link> find_link(const PrimaryContext& context, const GpuName& own,
                              const GpuName& peer, const AskNvml& nvml, Diagnostics& diagnostics) {
  if (are_far(own, peer)) {
    const bool unjoined = own.place != peer.place && own.fabric.made && peer.fabric.made;
    return Link{.kind = LinkKind::pcie,
                .access = false,
                .atomics = false,
                .why = unjoined ? "it is on another node, and NVML names no fabric of both"
                                : "it is on another node",
                .lanes = true};
  }
  if (own.place != peer.place) {
    return Link{LinkKind::nvlink, true, true, "it is elsewhere, and its memory comes by fabric"};
  }
  if (own.uuid == peer.uuid) return Link{LinkKind::own, true, true, "the same GPU"};
  int ordinal = -1;
  if (!find_ordinal(context, peer.uuid, ordinal, diagnostics)) return std::nullopt;
  if (ordinal >= 0) return ask_driver(context, ordinal, diagnostics);
  return ask_nvml_for(own.uuid, peer.uuid, nvml, diagnostics);
}

}  // namespace mscclc::cuda
