#include "runtime/devices/cuda/launch/graph_end.h"

#include <memory>
#include <utility>

namespace mscclc::cuda {
namespace {

using Gone = std::function<void()>;

void end_of_graph(void* argument) {
  const std::unique_ptr<Gone> gone(static_cast<Gone*>(argument));
  if (*gone) (*gone)();
}

/// nullptr: none, or the driver does not say.
abi::Graph graph_of_capture(const Driver& driver, abi::Stream stream) {
  int status = abi::kCaptureStatusNone;
  uint64_t id = 0;
  abi::Graph graph = nullptr;
  const abi::Result known =
      driver.StreamGetCaptureInfo(stream, &status, &id, &graph, nullptr, nullptr);
  return known == abi::kSuccess && status != abi::kCaptureStatusNone ? graph : nullptr;
}

}  // namespace

bool at_end_of_graph(const PrimaryContext& context, abi::Stream stream, Gone gone) {
  const Driver& driver = context.driver();
  const OutsideCapture outside(driver);
  const abi::Graph graph = graph_of_capture(driver, stream);
  if (graph == nullptr) return false;
  auto owned = std::make_unique<Gone>(std::move(gone));
  abi::UserObject object = nullptr;
  if (driver.UserObjectCreate(&object, owned.get(), end_of_graph, 1, abi::kNoDestructorSync) !=
      abi::kSuccess) {
    return false;
  }
  Gone& held = *owned.release();  // end_of_graph() frees it
  if (driver.GraphRetainUserObject(graph, object, 1, abi::kMoveReferences) == abi::kSuccess) {
    return true;
  }
  held = nullptr;
  driver.UserObjectRelease(object, 1);
  return false;
}

}  // namespace mscclc::cuda
