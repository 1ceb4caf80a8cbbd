#include "tests/fakes/cuda/fake_driver.h"

#include <fmt/format.h>

#include <mutex>
#include <stdexcept>

namespace mscclc::cuda {
namespace {

FakeDriver* the_fake = nullptr;

}  // namespace

FakeDriver::FakeDriver(const FakeOptions& options) : FakeCore(options) {
  if (the_fake != nullptr) throw std::logic_error("there is a fake driver already");
  the_fake = this;
  new_thread();
#define FUNCTION(name, version, need, parameters)                     \
  driver_.name = [](auto... arguments) -> abi::Result {               \
    FakeDriver& fake = active();                                      \
    return fake.call(#name, [&] { return fake.name(arguments...); }); \
  };
#include "runtime/devices/cuda/driver/functions.def"
#undef FUNCTION
}

FakeDriver::~FakeDriver() {
  destroy_user_objects();
  new_thread();
  the_fake = nullptr;
}

FakeDriver& FakeDriver::active() {
  if (the_fake == nullptr) throw std::logic_error("the fake driver is gone");
  return *the_fake;
}

std::vector<std::string> FakeDriver::leaks() {
  const std::lock_guard lock(mutex());
  std::vector<std::string> found;
  for (const auto& [id, p] : processes()) {
    const auto note = [&, id = id](const std::string& what) {
      found.push_back(fmt::format("process {}: {}", id, what));
    };
    for (const auto& [device, count] : p->contexts) {
      note(fmt::format("the context of cuda:{} is retained {} times", device, count));
    }
    for (const auto& [handle, entry] : p->handles) {
      if (entry.references > 0) {
        note(fmt::format("handle {} has {} references", handle, entry.references));
      }
    }
    for (const auto& [at, bytes] : p->reservations) note(fmt::format("{:#x} is reserved", at));
    for (const auto& [at, entry] : p->mappings) note(fmt::format("{:#x} is mapped", at));
    for (const auto& [at, entry] : p->plain) note(fmt::format("{:#x} is allocated", at));
    for (const auto& [at, entry] : p->ipc) note(fmt::format("{:#x} is an open ipc handle", at));
    for (const auto& [at, entry] : p->host) note(fmt::format("{} is host memory", at));
    for (const auto& [stream, entry] : p->streams) {
      note(fmt::format("a stream of cuda:{}", entry.device));
    }
    for (const auto& [module, entry] : p->modules) {
      note(fmt::format("a module of cuda:{}", entry.device));
    }
    for (const auto& [event, entry] : p->events) {
      note(fmt::format("an event of cuda:{}", entry.device));
    }
    if (const Contexts& stack = contexts_of(id); !stack.empty()) {
      note(fmt::format("{} contexts are on this thread's stack", stack.size()));
    }
    if (capture_mode_of(id) != 0) note("this thread's capture mode is not what it was");
  }
  for (const uint64_t bytes : kept_by_descriptors()) {
    found.push_back(fmt::format("descriptors of {} bytes are open", bytes));
  }
  return found;
}

}  // namespace mscclc::cuda
