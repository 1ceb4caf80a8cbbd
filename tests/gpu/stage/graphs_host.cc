#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

class HostGraph final : public Graph {
 public:
  explicit HostGraph(Work work) : work_(std::move(work)) {}
  bool launch(StreamHandle, Diagnostics& diagnostics) override { return work_(diagnostics); }

 private:
  Work work_;
};

class HostGraphs final : public Graphs {
 public:
  explicit HostGraphs(Device& device) : device_(device) {}
  std::unique_ptr<Graph> capture(StreamHandle, const Work& work, Diagnostics&) override {
    return std::make_unique<HostGraph>(work);
  }
  bool order(StreamHandle from, StreamHandle, Diagnostics& diagnostics) override {
    return device_.synchronize(from, diagnostics);
  }
  std::optional<uint64_t> free_bytes() override { return std::nullopt; }

 private:
  Device& device_;
};

}  // namespace

std::unique_ptr<Graphs> host_graphs(Device& device) { return std::make_unique<HostGraphs>(device); }

}  // namespace mscclc::testing
