// By a fake libcuda, and without any driver, where the machine has none.
#include "runtime/devices/cuda/driver/seen_gpus.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "runtime/devices/cuda/driver/driver.h"
#include "tests/helpers/files/made_up_folder.h"
#include "tests/helpers/runtime/processes.h"

namespace mscclc::cuda {
namespace {

/// The files of a machine.
struct MachineFiles : testing::MadeUpFolder {
  std::optional<size_t> gpus(const char* visible = nullptr) const {
    return most_gpus(path(), visible);
  }
};

TEST_CASE("seen GPUs: those that the driver lists, or files open, or that cannot be known") {
  const MachineFiles root;
  CHECK(root.gpus() == std::nullopt);
  root.write("dev/null");
  root.write("dev/nvidiactl");
  root.write("dev/nvidia-uvm");
  CHECK(root.gpus() == std::nullopt);
  CHECK(root.gpus("") == std::nullopt);
  for (const char* gpu : {"dev/nvidia0", "dev/nvidia1", "dev/nvidia10"}) root.write(gpu);
  CHECK(root.gpus() == 3);
  root.write("proc/driver/nvidia/gpus/0000:01:00.0/information");
  CHECK(root.gpus() == 1);
  root.write("proc/driver/nvidia/gpus/0000:02:00.0/information");
  CHECK(root.gpus() == 2);
}

TEST_CASE("seen GPUs: no more than CUDA_VISIBLE_DEVICES chooses, up to what is none") {
  const MachineFiles root;
  for (const char* gpu : {"0000:01:00.0", "0000:02:00.0", "0000:03:00.0"}) {
    root.write(std::string("proc/driver/nvidia/gpus/") + gpu + "/information");
  }
  CHECK(root.gpus("0") == 1);
  CHECK(root.gpus("2, 0") == 2);
  CHECK(root.gpus("0,1,2,0,1") == 3);
  CHECK(root.gpus("0,3,1") == 1);
  CHECK(root.gpus("1,-1,0") == 1);
  CHECK(root.gpus("") == 0);
  CHECK(root.gpus(",0") == 0);
  CHECK(root.gpus("NoDevFiles") == 0);
  CHECK(root.gpus("GPU-8932f937,1") == 2);
  CHECK(root.gpus("MIG-8932f937") == std::nullopt);
}

TEST_CASE("seen GPUs: a query initialises no driver, and says what is there") {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    CHECK(why_not_seen(0).find("cannot load the CUDA driver: ") == 0);
    CHECK(why_not_seen(99).find("cannot load the CUDA driver: ") == 0);
    return;
  }
  const auto initialised = reinterpret_cast<bool (*)()>(::dlsym(driver, "fakeCudaInitialised"));
  if (initialised == nullptr) return;  // NVIDIA's, whose GPUs are the machine's
  (void)why_not_seen(0);
  CHECK_FALSE(initialised());
  testing::Processes processes;
  processes.start([] {
    Diagnostics ignored;
    return load_driver(ignored) != nullptr && why_not_seen(1).empty() ? 0 : 1;
  });
  CHECK(processes.wait(0, std::chrono::minutes(5)) == 0);
  Diagnostics problems;
  REQUIRE(load_driver(problems) != nullptr);
  CHECK(why_not_seen(1) == "");
  CHECK(why_not_seen(99) == "there is no cuda:99: this process sees 2 GPUs");
}

}  // namespace
}  // namespace mscclc::cuda
