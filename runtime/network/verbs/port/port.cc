#include "runtime/network/verbs/port/port.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/network/verbs/port/pci.h"

namespace mscclc::verbs {
namespace {

/// The devices of this machine, until it ends.
class DeviceList {
 public:
  explicit DeviceList(const Library& library) : library_(library) {
    devices_ = library.get_device_list(&count_);
  }
  ~DeviceList() {
    if (devices_ != nullptr) library_.free_device_list(devices_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  std::span<ibv_device*> all() const {
    return {devices_, devices_ == nullptr ? 0 : static_cast<size_t>(count_)};
  }

 private:
  const Library& library_;
  int count_ = 0;
  ibv_device** devices_ = nullptr;
};

std::string port_text(const Context& context, uint8_t port) {
  return fmt::format("port {} of {}", port, context.name());
}

/// Why a port in this state takes nothing.
std::optional<Error> state_problem(const ibv_port_attr& attributes) {
  const bool roce = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  switch (attributes.state) {
    case IBV_PORT_ACTIVE:
      return std::nullopt;
    case IBV_PORT_DOWN:
      return Error{roce ? "is down: its cable, or the network interface below it (ip link)"
                        : "is down: its cable, or the switch"};
    case IBV_PORT_INIT:
    case IBV_PORT_ARMED:
      return Error{"is not active: no subnet manager has set it up"};
    default:
      return Error{fmt::format("is in state {}, not active", static_cast<int>(attributes.state))};
  }
}

std::string gid_text(const ibv_gid_entry& entry) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, entry.gid.raw, text, sizeof text);
  const char* const type = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
                           : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                                    : "InfiniBand";
  return fmt::format("{} {} ({})", entry.gid_index, text, type);
}

/// Which of several RoCE v2 addresses: most networks carry IPv4; link-local ones reach no further
/// than the next router.
int rank_of(const ibv_gid_entry& entry) {
  if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) return 0;
  const uint8_t* const raw = entry.gid.raw;
  if (is_ipv4(raw)) return 3;
  const bool link_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
  return link_local ? 1 : 2;
}

/// What is in a port's table.
std::vector<ibv_gid_entry> read_gids(const Context& context, uint8_t port,
                                     const ibv_port_attr& attributes) {
  std::vector<ibv_gid_entry> gids;
  constexpr ibv_gid kNone{};
  for (int i = 0; i < attributes.gid_tbl_len; ++i) {
    ibv_gid_entry entry{};
    const int error = context.library().query_gid_ex(context.get(), port, static_cast<uint32_t>(i),
                                                     &entry, 0, sizeof entry);
    if (error != 0 || std::equal(kNone.raw, kNone.raw + sizeof kNone.raw, entry.gid.raw)) continue;
    gids.push_back(entry);
  }
  return gids;
}

Result<ibv_gid_entry> choose_gid(const Port& port, const VerbsOptions& options) {
  const auto gids = read_gids(*port.context, port.number, port.attributes);
  std::string all;
  for (const ibv_gid_entry& entry : gids) all += (all.empty() ? "" : ", ") + gid_text(entry);
  if (all.empty()) all = "nothing";
  if (options.gid_index) {
    const auto named = std::ranges::find(gids, *options.gid_index, &ibv_gid_entry::gid_index);
    if (named != gids.end()) return *named;
    return Error{fmt::format("has no GID {}: its table has {}", *options.gid_index, all)};
  }
  if (!port.is_roce()) {
    if (!gids.empty()) return gids.front();
    return Error{"has no GID"};
  }
  const auto best = std::ranges::max_element(gids, {}, rank_of);
  if (best != gids.end() && rank_of(*best) != 0) return *best;
  return Error{fmt::format(
      "has no address of RoCE v2 (its table has {}): give its network interface an address, or "
      "set MSCCLC_IB_GID_INDEX",
      all)};
}

/// Fails where the port is of no use.
Result<Port> examine(const std::shared_ptr<Context>& context, uint8_t number,
                     const ibv_device_attr& device, const VerbsOptions& options) {
  Port port{.context = context, .number = number};
  if (const int error =
          context->library().query_port_attributes(context->get(), number, port.attributes);
      error != 0) {
    return Error{"cannot be asked: " + error_text(error)};
  }
  if (auto problem = state_problem(port.attributes)) return *std::move(problem);
  if (port.attributes.link_layer != IBV_LINK_LAYER_INFINIBAND && !port.is_roce()) {
    return Error{fmt::format("has link layer {}, which is neither InfiniBand nor Ethernet",
                             port.attributes.link_layer)};
  }
  if (!port.is_roce() && port.attributes.lid == 0) {
    return Error{"has no LID: no subnet manager has given it one"};
  }
  const auto gid = choose_gid(port, options);
  if (!gid) return gid.error();
  port.gid = *gid;
  port.atomics = device.atomic_cap != IBV_ATOMIC_NONE && device.max_qp_rd_atom > 0 &&
                 device.max_qp_init_rd_atom > 0;
  port.most_orders = static_cast<uint32_t>(std::max(device.max_qp_wr, 1));
  port.most_atomics = static_cast<uint8_t>(std::clamp(device.max_qp_rd_atom, 0, 16));
  port.most_begun = static_cast<uint8_t>(std::clamp(device.max_qp_init_rd_atom, 0, 16));
  return port;
}

/// What there is, as far as the options ask for it.
struct Found {
  std::vector<Port> usable;
  std::vector<std::string> not_usable;  ///< with why
  std::vector<std::string> not_asked_for;
  std::vector<std::pair<std::string, uint8_t>> all;  ///< devices and their ports

  bool has(const HcaList& list, const HcaList::HcaPort& entry) const {
    return std::ranges::any_of(
        all, [&](const auto& port) { return list.fits(entry, port.first, port.second); });
  }
};

/// Of what a list names, what there is not; "": all is there.
std::string missing(const HcaList& list, const Found& found) {
  std::string names;
  for (const HcaList::HcaPort& entry : list.entries) {
    if (!list.names() || found.has(list, entry)) continue;
    names += (names.empty() ? "" : ", ") +
             (entry.port == 0 ? entry.name : fmt::format("{}:{}", entry.name, entry.port));
  }
  return names;
}

void examine_device(const Library& library, ibv_device* device, const VerbsOptions& options,
                    Found& found) {
  const auto leave_out = [&](const std::string& why) {
    found.all.emplace_back(library.get_device_name(device), 1);
    if (options.devices.has(library.get_device_name(device), 1)) found.not_usable.push_back(why);
  };
  const auto opened = Context::open(library, device);
  if (!opened) return leave_out(opened.error().text());
  const std::shared_ptr<Context>& context = *opened;
  ibv_device_attr attributes{};
  if (const int error = library.query_device(context->get(), &attributes); error != 0) {
    return leave_out(fmt::format("{} cannot be asked: {}", context->name(), error_text(error)));
  }
  for (uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    found.all.emplace_back(context->name(), number);
    if (!options.devices.has(context->name(), number)) {
      found.not_asked_for.push_back(port_text(*context, number));
      continue;
    }
    auto port = examine(context, number, attributes, options);
    if (port) {
      found.usable.push_back(*std::move(port));
    } else {
      found.not_usable.push_back(port_text(*context, number) + " " + port.error().text());
    }
  }
}

/// Which of several: a GPU's lanes use a port that is near.
const Port& choose(const std::vector<Port>& usable, const VerbsOptions& options) {
  if (options.gpu.empty()) return usable[options.prefer % usable.size()];
  std::vector<std::string> devices;
  for (const Port& port : usable) devices.push_back(port.context->name());
  return usable[take_nearest(PciTree(options.sysfs), options.gpu, devices)];
}

}  // namespace

bool is_ipv4(const uint8_t* gid) {
  constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), gid);
}

std::string Port::text() const { return port_text(*context, number); }

std::optional<Error> Port::problem() const {
  ibv_port_attr now{};
  const int error = context->library().query_port_attributes(context->get(), number, now);
  if (error != 0) return Error{"cannot be asked: " + error_text(error)};
  return state_problem(now);
}

Result<Port> choose_port(const Library& library, const VerbsOptions& options) {
  const DeviceList devices(library);
  Found found;
  for (ibv_device* device : devices.all()) examine_device(library, device, options, found);
  const std::string not_there = missing(options.devices, found);
  const bool all_named_are_usable =
      !options.devices.names() || (found.not_usable.empty() && not_there.empty());
  if (!found.usable.empty() && all_named_are_usable) {
    return choose(found.usable, options);
  }
  if (devices.all().empty()) {
    return Error{"this machine has no InfiniBand or RoCE device (ibv_devices lists them)"};
  }
  if (!found.not_usable.empty()) {
    return Error{fmt::format("{}", fmt::join(found.not_usable, "; "))};
  }
  if (!found.usable.empty()) {
    return Error{
        fmt::format("MSCCLC_IB_HCA names {}, which this machine does not have", not_there)};
  }
  return Error{
      fmt::format("MSCCLC_IB_HCA leaves none of {}", fmt::join(found.not_asked_for, ", "))};
}

}  // namespace mscclc::verbs
