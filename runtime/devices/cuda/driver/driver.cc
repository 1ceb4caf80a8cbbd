#include "runtime/devices/cuda/driver/driver.h"

#include <dlfcn.h>

#include <mutex>

#include "runtime/support/process/per_process.h"

namespace mscclc::cuda {
namespace {

// cuGetProcAddress as of CUDA 12.0, the oldest driver that is taken.
using GetProcAddress = abi::Result (*)(const char* symbol, void** function, int version,
                                       uint64_t flags, int* why_not);

enum class Need { always, multicast, green, dma_buf };

void* open_library(Diagnostics& diagnostics) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    diagnostics
        .error("no-cuda-driver", {},
               std::string("cannot load the CUDA driver: ") + (why != nullptr ? why : "no reason"))
        .notes.push_back({"is this a machine with a GPU, and does the container see it? "
                          "(docker: --gpus all; nvidia-smi must work)"});
  }
  return library;
}

bool fill(void* library, Driver& driver, Diagnostics& diagnostics) {
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (find == nullptr) {
    diagnostics.error("cuda-driver-too-old", {},
                      "the CUDA driver is too old: CUDA 12.0 (R525) or later is needed");
    return false;
  }
#define FUNCTION(name, version, need, parameters)                                              \
  {                                                                                            \
    void* function = nullptr;                                                                  \
    int why_not = 0;                                                                           \
    if (find("cu" #name, &function, version, abi::kLegacyStream, &why_not) != abi::kSuccess) { \
      function = nullptr;                                                                      \
    }                                                                                          \
    if (function == nullptr && Need::need == Need::always) {                                   \
      diagnostics.error("cuda-driver-too-old", {},                                             \
                        "the CUDA driver has no cu" #name " of version " #version              \
                        ": CUDA 12.0 (R525) or later is needed");                              \
      return false;                                                                            \
    }                                                                                          \
    driver.name = reinterpret_cast<decltype(driver.name)>(function);                           \
  }
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION
  return true;
}

/// The driver says of a child of fork() whose parent has used it that it is not initialised, and
/// never will be.
bool initialise(const Driver& driver, Diagnostics& diagnostics) {
  const abi::Result result = driver.Init(0);
  if (result == abi::kNotInitialized) {
    diagnostics
        .error("after-fork", {},
               "this process was forked by one that uses CUDA, whose driver then does not work "
               "here: " +
                   text_of(driver, result))
        .notes.push_back({"fork before the parent uses a GPU, or start the child afresh (Python: "
                          "multiprocessing.set_start_method('spawn'))"});
    return false;
  }
  return succeeded(driver, result, "initialise the CUDA driver", diagnostics);
}

/// Never unloaded: memory may be freed by destructors that run when the process ends.
struct DriverOfProcess {
  /// False: reported.
  bool find(Diagnostics& diagnostics) {
    if (found) return true;
    void* const library = open_library(diagnostics);
    found = library != nullptr && fill(library, driver, diagnostics);
    return found;
  }

  std::mutex mutex;
  Driver driver;
  bool found = false, initialised = false;
};

}  // namespace

bool Driver::has_multicast() const {
  return MulticastGetGranularity != nullptr && MulticastCreate != nullptr &&
         MulticastAddDevice != nullptr && MulticastBindMem != nullptr && MulticastUnbind != nullptr;
}

bool Driver::has_green_contexts() const {
  return StreamGetGreenCtx != nullptr && GreenCtxGetDevResource != nullptr;
}

const Driver* find_driver(Diagnostics& diagnostics) {
  auto& here = process_wide<DriverOfProcess>();
  const std::lock_guard lock(here.mutex);
  return here.find(diagnostics) ? &here.driver : nullptr;
}

const Driver* load_driver(Diagnostics& diagnostics) {
  auto& here = process_wide<DriverOfProcess>();
  const std::lock_guard lock(here.mutex);
  here.initialised =
      here.initialised || (here.find(diagnostics) && initialise(here.driver, diagnostics));
  return here.initialised ? &here.driver : nullptr;
}

std::string text_of(const Driver& driver, abi::Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.GetErrorName(result, &name) != abi::kSuccess || name == nullptr) {
    return "error " + std::to_string(static_cast<int>(result)) + " of the CUDA driver";
  }
  if (driver.GetErrorString(result, &text) != abi::kSuccess || text == nullptr) return name;
  return std::string(text) + " (" + name + ")";
}

bool succeeded(const Driver& driver, abi::Result result, const std::string& attempt,
               Diagnostics& diagnostics) {
  if (result == abi::kSuccess) return true;
  diagnostics.error("cuda", {}, "cannot " + attempt + ": " + text_of(driver, result));
  return false;
}

}  // namespace mscclc::cuda
