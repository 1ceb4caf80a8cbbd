// How far network devices are from GPUs, and which one each GPU takes, in made-up machines.
#include "runtime/network/verbs/port/pci.h"

#include <catch2/catch.hpp>

#include "runtime/network/verbs/port/nic_map.h"
#include "tests/helpers/verbs/made_up_pci.h"

namespace mscclc::verbs {
namespace {

using testing::MadeUpPci;
using Reach = PciDistance::Reach;

/// Two sockets; on the first one two switches below one port, and a third below another port.
struct Machine : MadeUpPci {
  Machine() {
    add_gpu("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", 0);
    add_gpu("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0", 0);
    add_gpu("pci0000:80/0000:80:01.0/0000:81:00.0", 1);
    add_network_device("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:02.0/0000:15:00.0",
                       0);
    add_network_device("mlx5_1", "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:03.0/0000:16:00.0",
                       0);
    add_network_device(
        "mlx5_2", "pci0000:10/0000:10:01.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0/0000:1d:00.0", 0);
    add_network_device("mlx5_3", "pci0000:10/0000:10:02.0/0000:20:00.0", 0);
    add_network_device("mlx5_4", "pci0000:40/0000:40:01.0/0000:41:00.0", 0);
    add_network_device("mlx5_5", "pci0000:80/0000:80:02.0/0000:82:00.0", 1);
    add_network_device("rxe0", "", -1, "4: ACTIVE", "Ethernet");
  }
};

constexpr const char* kGpus[] = {"0000:13:00.0", "0000:14:00.0", "0000:81:00.0"};

TEST_CASE("distances in the tree of PCI devices") {
  const Machine machine;
  const PciTree tree(machine.sysfs());
  const auto reach = [&](const char* gpu, const char* device) {
    return tree.distance(gpu, device).reach;
  };
  CHECK(reach(kGpus[0], "mlx5_0") == Reach::one_switch);
  CHECK(reach(kGpus[0], "mlx5_2") == Reach::switches);
  CHECK(reach(kGpus[0], "mlx5_3") == Reach::host_bridge);
  CHECK(reach(kGpus[0], "mlx5_4") == Reach::numa_node);
  CHECK(reach(kGpus[0], "mlx5_5") == Reach::machine);
  CHECK(reach(kGpus[0], "rxe0") == Reach::unknown);
  CHECK(reach(kGpus[0], "no_such") == Reach::unknown);
  CHECK(reach("0000:99:00.0", "mlx5_0") == Reach::unknown);
  CHECK(reach(kGpus[2], "mlx5_5") == Reach::host_bridge);
  CHECK(tree.distance(kGpus[0], "mlx5_0") < tree.distance(kGpus[0], "mlx5_2"));
  CHECK(tree.distance(kGpus[0], "mlx5_5") < tree.distance(kGpus[0], "rxe0"));
  CHECK(tree.gpus() == std::vector<std::string>(std::begin(kGpus), std::end(kGpus)));
}

TEST_CASE("numbers of GPUs are known in capitals, too") {
  const MadeUpPci machine;
  machine.add_gpu("pci0000:a0/0000:a0:01.0/0000:ab:00.0", 0);
  machine.add_network_device("mlx5_0", "pci0000:a0/0000:a0:01.0/0000:ab:00.1", 0);
  CHECK(PciTree(machine.sysfs()).distance("0000:AB:00.0", "mlx5_0").reach == Reach::one_switch);
}

TEST_CASE("without a NUMA node nothing is on the same one") {
  const MadeUpPci machine;
  machine.add_gpu("pci0000:00/0000:00:01.0/0000:01:00.0", -1);
  machine.add_network_device("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.0", -1);
  CHECK(PciTree(machine.sysfs()).distance("0000:01:00.0", "mlx5_0").reach == Reach::machine);
}

TEST_CASE("GPUs that are equally near take turns") {
  const Machine machine;
  const PciTree tree(machine.sysfs());
  const std::vector<std::string> all = {"mlx5_5", "mlx5_4", "mlx5_0", "mlx5_1"};
  CHECK(all[take_nearest(tree, kGpus[0], all)] == "mlx5_0");
  CHECK(all[take_nearest(tree, kGpus[1], all)] == "mlx5_1");
  CHECK(all[take_nearest(tree, kGpus[2], all)] == "mlx5_5");
  const std::vector<std::string> few = {"mlx5_3", "mlx5_1"};
  for (const char* gpu : {kGpus[0], kGpus[1]}) CHECK(take_nearest(tree, gpu, few) == 1);
  const std::vector<std::string> unknown = {"rxe0", "rxe1"};
  for (size_t i = 0; i < 3; ++i) CHECK(take_nearest(tree, kGpus[i], unknown) == i % 2);
}

TEST_CASE("the map of GPUs and network ports") {
  const MadeUpPci machine;
  const PciTree tree(machine.sysfs());
  CHECK(nic_map(tree, {}) ==
        "This machine has no GPU of NVIDIA's.\n"
        "This machine has no InfiniBand or RoCE device.\n");
  machine.add_gpu("pci0000:10/0000:10:01.0/0000:11:00.0", 0);
  machine.add_gpu("pci0000:80/0000:80:01.0/0000:81:00.0", 1);
  CHECK(nic_map(tree, {}) ==
        "This machine has no InfiniBand or RoCE device.\n# GPU\n0000:11:00.0\n0000:81:00.0\n");
  machine.add_network_device("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.1", 0, "1: DOWN");
  machine.add_network_device("mlx5_1", "pci0000:10/0000:10:02.0/0000:12:00.0", 0);
  machine.add_network_device("mlx5_2", "pci0000:80/0000:80:01.0/0000:82:00.0", 1, "4: ACTIVE",
                             "Ethernet");
  CHECK(nic_map(tree, {}) ==
        "# GPU         port          joined by     link\n"
        "0000:11:00.0  mlx5_0:1      one switch    InfiniBand  not active\n"
        "              mlx5_1:1      host bridge   InfiniBand  lanes use it\n"
        "              mlx5_2:1      machine       Ethernet\n"
        "0000:81:00.0  mlx5_0:1      machine       InfiniBand  not active\n"
        "              mlx5_1:1      machine       InfiniBand\n"
        "              mlx5_2:1      one switch    Ethernet    lanes use it\n");
  CHECK(nic_map(tree, *parse_hca_list("^mlx5_2")) ==
        "# GPU         port          joined by     link\n"
        "0000:11:00.0  mlx5_0:1      one switch    InfiniBand  not active\n"
        "              mlx5_1:1      host bridge   InfiniBand  lanes use it\n"
        "              mlx5_2:1      machine       Ethernet    left out by MSCCLC_IB_HCA\n"
        "0000:81:00.0  mlx5_0:1      machine       InfiniBand  not active\n"
        "              mlx5_1:1      machine       InfiniBand  lanes use it\n"
        "              mlx5_2:1      one switch    Ethernet    left out by MSCCLC_IB_HCA\n");
}

TEST_CASE("ports of a machine without GPUs") {
  const MadeUpPci machine;
  machine.add_network_device("mlx5_0", "pci0000:10/0000:10:01.0/0000:11:00.1", 0, "1: DOWN");
  machine.add_network_device("mlx5_1", "pci0000:10/0000:10:02.0/0000:12:00.0", 0);
  machine.add_network_device("rxe0", "", -1, "4: ACTIVE", "Ethernet");
  CHECK(nic_map(PciTree(machine.sysfs()), {}) ==
        "This machine has no GPU of NVIDIA's.\n"
        "# port        link\n"
        "mlx5_0:1      InfiniBand  not active\n"
        "mlx5_1:1      InfiniBand  lanes use it\n"
        "rxe0:1        Ethernet\n");
  CHECK(nic_map(PciTree(machine.sysfs()), *parse_hca_list("rxe0")) ==
        "This machine has no GPU of NVIDIA's.\n"
        "# port        link\n"
        "mlx5_0:1      InfiniBand  left out by MSCCLC_IB_HCA\n"
        "mlx5_1:1      InfiniBand  left out by MSCCLC_IB_HCA\n"
        "rxe0:1        Ethernet    lanes use it\n");
}

}  // namespace
}  // namespace mscclc::verbs
