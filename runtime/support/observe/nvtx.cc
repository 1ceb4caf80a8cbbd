#include "runtime/support/observe/nvtx.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "runtime/support/process/open_library.h"

namespace mscclc {
namespace {

// The binary interface of NVTX 3, as nvToolsExt.h and nvtxDetail/nvtxTypes.h have it.
constexpr uint32_t kVersion = 3;
constexpr uint32_t kCallbacksTable = 1, kVersionTable = 3;  // NvtxExportTableID
constexpr int kCore2 = 5, kModules = 7;                     // NvtxCallbackModule
constexpr size_t kFunctions[kModules] = {0, 16, 9, 15, 7, 16, 7};
constexpr size_t kMaxFunctions = 16;
/// Functions of the module kCore2.
enum Core2 : uint8_t { kPush = 4, kPop = 5, kCreateDomain = 12 };
constexpr int32_t kNoPayload = 0, kUint64Payload = 1, kAsciiMessage = 1;

using Function = void (*)();
using GetExportTable = const void* (*)(uint32_t table);
using Initialize = int (*)(GetExportTable);

struct CallbacksTable {
  size_t bytes;
  int (*functions_of)(int module, Function*** table, unsigned* size);
};
struct VersionTable {
  size_t bytes;
  uint32_t version, reserved;
  void (*set_version_of_tool)(uint32_t version);
};
struct EventAttributes {
  uint16_t version = kVersion, bytes = sizeof(EventAttributes);
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = kNoPayload, reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = kAsciiMessage;
  const char* message;
};
static_assert(sizeof(EventAttributes) == 48);

/// What the profiler wants to be called, by module and number; nullptr: it does not.
struct Functions {
  Function made[kModules][kMaxFunctions] = {};
  Function* places[kModules][kMaxFunctions] = {};
};
Functions functions;

int functions_of(int module, Function*** table, unsigned* size) {
  if (module <= 0 || module >= kModules) return 0;
  for (size_t f = 1; f < kFunctions[module]; ++f) {
    functions.places[module][f] = &functions.made[module][f];
  }
  if (table != nullptr) *table = functions.places[module];
  if (size != nullptr) *size = static_cast<unsigned>(kFunctions[module]);
  return 1;
}

const void* export_table(uint32_t table) {
  static constexpr CallbacksTable kCallbacks = {sizeof(CallbacksTable), functions_of};
  static constexpr VersionTable kVersions = {sizeof(VersionTable), kVersion, 0, [](uint32_t) {}};
  if (table == kCallbacksTable) return &kCallbacks;
  return table == kVersionTable ? &kVersions : nullptr;
}

/// Never destroyed: threads log until the process ends. nullptr: nothing has looked, or all is
/// well.
std::atomic<const Error*> problem{nullptr};

bool has_problem(std::string why) {
  problem = new Error{"NVTX_INJECTION64_PATH: no profiler is loaded: " + std::move(why)};
  return false;
}

/// False: there is no profiler, or it declines.
bool find_profiler() {
  const char* const path = std::getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr) return false;
  if (is_no_file(path)) return has_problem(std::string(path) + " is not a file");
  void* const library = ::dlopen(path, RTLD_LAZY);
  if (library == nullptr) return has_problem(::dlerror());
  auto* const initialize =
      reinterpret_cast<Initialize>(::dlsym(library, "InitializeInjectionNvtx2"));
  if (initialize != nullptr && initialize(export_table) != 0) return true;
  ::dlclose(library);
  return has_problem(std::string(path) + (initialize == nullptr
                                              ? " has no InitializeInjectionNvtx2()"
                                              : " does not want to see calls"));
}

template <class Signature>
Signature* wanted(Core2 function) {
  return reinterpret_cast<Signature*>(functions.made[kCore2][function]);
}

}  // namespace

NvtxDomain::NvtxDomain(const char* name) {
  static const bool found = find_profiler();
  auto* const create = wanted<void*(const char*)>(kCreateDomain);
  if (found && create != nullptr && wanted<int(void*, const EventAttributes*)>(kPush) != nullptr &&
      wanted<int(void*)>(kPop) != nullptr) {
    handle_ = create(name);
  }
}

std::optional<Error> nvtx_problem() {
  const Error* const found = problem;
  return found == nullptr ? std::nullopt : std::optional(*found);
}

void NvtxRange::push(const char* name, std::optional<uint64_t> bytes) const {
  EventAttributes attributes{.message = name};
  attributes.payload_type = bytes ? kUint64Payload : kNoPayload;
  attributes.payload = bytes.value_or(0);
  wanted<int(void*, const EventAttributes*)>(kPush)(domain_, &attributes);
}

void NvtxRange::pop() const { wanted<int(void*)>(kPop)(domain_); }

}  // namespace mscclc
