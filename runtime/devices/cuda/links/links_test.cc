#include "runtime/devices/cuda/links/links.h"

#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

/// What process 0, on its GPU, says joins it to process 1's. `said`: what it warned of.
Link link_of_two(World& world, int ordinal_of_1, std::string* said = nullptr) {
  Diagnostics diagnostics;
  std::optional<std::vector<uint8_t>> name;
  {
    const auto other = world.open(1, ordinal_of_1);
    name = other->link_name(diagnostics);
  }
  REQUIRE(name);
  const auto own = world.open(0, 0);
  const auto link = own->link_to(*name, diagnostics);
  INFO(text_of(diagnostics));
  REQUIRE(link);
  CHECK_FALSE(diagnostics.has_errors());
  if (said != nullptr) *said = text_of(diagnostics);
  return *link;
}

std::string describe(const Link& link) {
  return fmt::format("{}{}{}: {}", name(link.kind), link.access ? "" : ", no access",
                     link.atomics ? "" : ", no atomics", link.why);
}

TEST_CASE("cuda: what joins two GPUs is asked of the driver") {
  const auto joined = [](FakeOptions options, int ordinal_of_1) {
    World world(options);
    const std::string text = describe(link_of_two(world, ordinal_of_1));
    world.check_clean();
    return text;
  };
  CHECK(joined({}, 1) == "nvlink: cuda:0 and cuda:1 have native atomics between them");
  CHECK(joined({.atomics = false}, 1) ==
        "pcie, no atomics: cuda:0 and cuda:1 have no native atomics between them, so no NVLink");
  CHECK(joined({.peers = false}, 1) ==
        "pcie, no access, no atomics: cuda:0 and cuda:1 have no peer access");
  CHECK(joined({.atomics = false}, 0) == "own: the same GPU");
}

TEST_CASE("cuda: only NVML knows a GPU that CUDA_VISIBLE_DEVICES hides") {
  const std::string pair =
      "GPU-00000000-0000-0000-0000-000000000000 and GPU-00000000-0000-0000-0000-000000000001";
  std::string said;
  const auto joined = [&said](AskNvml nvml) {
    World world({.devices = 1, .alone = true});
    world.nvml = std::move(nvml);
    return describe(link_of_two(world, 0, &said));
  };
  const auto says = [](NvmlLink link) {
    return [link](const abi::Uuid& from, const abi::Uuid& to) -> std::optional<NvmlLink> {
      CHECK(from.bytes[15] == 0);
      CHECK(to.bytes[15] == 1);
      return link;
    };
  };
  CHECK(joined(says({true, true, true})) == "nvlink: " + pair + ", says NVML: NVLink");
  CHECK(joined(says({true, false, false})) ==
        "pcie, no atomics: " + pair + ", says NVML: no NVLink");
  CHECK(joined(says({true, true, false})) == "pcie: " + pair + ", says NVML: no NVLink");
  CHECK(joined(says({false, false, false})) ==
        "pcie, no access, no atomics: " + pair + ", says NVML: no peer access");
  CHECK(joined(says({false, false, false, true})) ==
        "pcie, no access, no atomics: " + pair + ", says NVML: a MIG instance reaches no other");
  CHECK(joined([](const abi::Uuid&, const abi::Uuid&) { return std::nullopt; }) ==
        "pcie, no atomics: " + pair + ": the link between them is unknown");
  CHECK(said ==
        "unknown-link: the link between " + pair +
            " is unknown: PCIe is assumed\n"
            "  CUDA_VISIBLE_DEVICES hides the other one from this process: let each see all "
            "GPUs, or install NVML (libnvidia-ml.so.1)\n");
}

/// GPUs of NVML that this one knows by name, in the clique of a cluster; UUIDs of tests end in a
/// number.
Nvml nvml_of_tests() {
  Nvml nvml;
  nvml.find = [](const char* uuid, Nvml::Gpu* gpu) {
    const std::string_view text(uuid);
    *gpu = reinterpret_cast<Nvml::Gpu>(uintptr_t{1});
    const bool instance = text.ends_with("8") || text.ends_with("9");
    return text.starts_with(instance ? "MIG-" : "GPU-") && !text.ends_with("7") ? 0 : 6;
  };
  nvml.status = [](Nvml::Gpu, Nvml::Gpu, int, int* status) { return *status = 0; };
  nvml.fabric = [](Nvml::Gpu, NvmlFabricInfo* info) {
    info->cluster.bytes[0] = 5;
    info->status = 0;
    info->clique = 3;
    info->state = 3;
    return 0;
  };
  return nvml;
}

abi::Uuid uuid_of(unsigned char number) {
  abi::Uuid uuid{};
  uuid.bytes[15] = number;
  return uuid;
}

TEST_CASE("cuda: a MIG instance reaches no other, says NVML, which knows it by another name") {
  const Nvml nvml = nvml_of_tests();
  const auto whole = nvml.link(uuid_of(0), uuid_of(1));
  REQUIRE(whole);
  CHECK((whole->access && whole->atomics && whole->nvlink && !whole->instance));
  for (const auto& [from, to] : {std::pair(8, 9), std::pair(0, 9), std::pair(8, 1)}) {
    const auto link = nvml.link(uuid_of(static_cast<unsigned char>(from)),
                                uuid_of(static_cast<unsigned char>(to)));
    REQUIRE(link);
    CHECK((link->instance && !link->access && !link->atomics && !link->nvlink));
  }
  CHECK_FALSE(nvml.link(uuid_of(0), uuid_of(7)));
  CHECK_FALSE(nvml.link(uuid_of(7), uuid_of(9)));
}

TEST_CASE("cuda: a fabric is a clique of a cluster that has a UUID, once NVML has completed it") {
  Nvml nvml = nvml_of_tests();
  Fabric wanted{.clique = 3};
  wanted.cluster.bytes[0] = 5;
  CHECK(nvml.fabric_of(uuid_of(0)) == wanted);
  CHECK_FALSE(nvml.fabric_of(uuid_of(7)));
  CHECK_FALSE(nvml.fabric_of(uuid_of(8)));
  nvml.fabric = [](Nvml::Gpu, NvmlFabricInfo* info) {  // of one machine
    info->state = 3;
    return 0;
  };
  CHECK_FALSE(nvml.fabric_of(uuid_of(0)));
  nvml.fabric = [](Nvml::Gpu, NvmlFabricInfo* info) {  // in progress
    info->cluster.bytes[0] = 5;
    info->state = 2;
    return 0;
  };
  CHECK_FALSE(nvml.fabric_of(uuid_of(0)));
  nvml.fabric = [](Nvml::Gpu, NvmlFabricInfo* info) { return info->version == 0x2000024 ? 3 : 0; };
  CHECK_FALSE(nvml.fabric_of(uuid_of(0)));
  nvml.fabric = nullptr;
  CHECK_FALSE(nvml.fabric_of(uuid_of(0)));
}

AskFabric says_fabric(unsigned char cluster, uint32_t clique) {
  return [=](const abi::Uuid&) { return Fabric{uuid_of(cluster), clique}; };
}

/// What this process, whose GPUs NVML says are in a fabric, says joins it to a GPU that makes
/// handles for a fabric, too, in another network namespace of its machine, or on another machine.
Link link_to_fabric(const AskFabric& own, const AskFabric& peer, bool same_machine = false) {
  World world({.fabric = true});
  std::optional<Link> link;
  {
    Diagnostics diagnostics;
    world.fabric = peer;
    const auto other = world.open(0, 1)->link_name(diagnostics);
    REQUIRE(other);
    GpuName name = *decode_name(*other);
    if (same_machine) {
      ++name.place.inode;
    } else {
      name.place.boot[0] ^= 1;
    }
    world.fabric = own;
    const auto device = world.open(0, 0);
    REQUIRE(device->link_name(diagnostics));
    link = device->link_to(encode(name), diagnostics);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
  REQUIRE(link);
  return *link;
}

constexpr auto kByFabric = "nvlink: it is elsewhere, and its memory comes by fabric";
constexpr auto kByLanes =
    "pcie, no access, no atomics: it is on another node, and NVML names no fabric of both";

TEST_CASE("cuda: memory of another machine comes by fabric, which is NVLink") {
  CHECK(describe(link_to_fabric(says_fabric(1, 2), says_fabric(1, 2))) == kByFabric);
  CHECK(describe(link_to_fabric(says_fabric(1, 2), says_fabric(1, 2), true)) == kByFabric);
}

TEST_CASE("cuda: GPUs in two fabrics, or in none, make handles that lead to no other machine") {
  const AskFabric none = [](const abi::Uuid&) { return std::nullopt; };
  const std::pair<AskFabric, AskFabric> apart[] = {{says_fabric(1, 2), says_fabric(3, 2)},
                                                   {says_fabric(1, 2), says_fabric(1, 4)},
                                                   {says_fabric(1, 2), none},
                                                   {none, says_fabric(1, 2)},
                                                   {none, none}};
  for (const auto& [own, peer] : apart) {
    const Link link = link_to_fabric(own, peer);
    CHECK(describe(link) == kByLanes);
    CHECK(link.lanes);
  }
  // Containers of one machine.
  CHECK(describe(link_to_fabric(none, none, true)) == kByFabric);
  CHECK(describe(link_to_fabric(says_fabric(1, 2), says_fabric(1, 4), true)) == kByLanes);
}

TEST_CASE("cuda: to another machine without fabric handles only lanes lead") {
  for (const FakeOptions& options :
       {FakeOptions{.fabric = false}, FakeOptions{.fabric = true, .imex = false}}) {
    World world(options);
    {
      const auto device = world.open(0, 0);
      Diagnostics diagnostics;
      auto name = device->link_name(diagnostics);
      REQUIRE(name);
      name->front() ^= 1;
      const auto link = device->link_to(*name, diagnostics);
      REQUIRE(link);
      CHECK(describe(*link) == "pcie, no access, no atomics: it is on another node");
      CHECK(link->lanes);
      CHECK(text_of(diagnostics) == "");
    }
    world.check_clean();
  }
}

TEST_CASE("cuda: a peer that names no GPU, and a driver that does not answer") {
  World world;
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    const auto name = device->link_name(diagnostics);
    REQUIRE(name);
    CHECK_FALSE(device->link_to({}, diagnostics));
    CHECK_FALSE(device->link_to(std::span(*name).first(name->size() - 1), diagnostics));
    CHECK(text_of(diagnostics) ==
          "bad-message: a peer does not name a GPU; is its device another kind?\n");
    GpuName other = *decode_name(*name);
    other.uuid.bytes[15] = 1;
    for (uint64_t call = 1; call <= 6; ++call) {  // own UUID, count, two UUIDs, two attributes
      Diagnostics problems;
      world.fake.fail_call(call);
      CHECK_FALSE(device->link_to(encode(other), problems));
      CHECK(has_code(problems, "cuda"));
    }
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
