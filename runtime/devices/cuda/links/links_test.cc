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
  CHECK(joined([](const abi::Uuid&, const abi::Uuid&) { return std::nullopt; }) ==
        "pcie, no atomics: " + pair + ": the link between them is unknown");
  CHECK(said ==
        "unknown-link: the link between " + pair +
            " is unknown: PCIe is assumed\n"
            "  CUDA_VISIBLE_DEVICES hides the other one from this process: let each see all "
            "GPUs, or install NVML (libnvidia-ml.so.1)\n");
}

TEST_CASE("cuda: memory of another machine comes by fabric, which is NVLink") {
  World world({.fabric = true});
  {
    const auto device = world.open(0, 0);
    Diagnostics diagnostics;
    auto name = device->link_name(diagnostics);
    REQUIRE(name);
    name->front() ^= 1;
    const auto link = device->link_to(*name, diagnostics);
    REQUIRE(link);
    CHECK(describe(*link) == "nvlink: it is elsewhere, and its memory comes by fabric");
  }
  world.check_clean();
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
