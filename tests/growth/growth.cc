#include "tests/growth/growth.h"

#include "runtime/api/device.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

constexpr uint64_t kBytes = 4096;

/// A rank's executable, and memory for its input and output.
struct Loaded {
  Communicator& communicator;
  Diagnostics diagnostics;
  std::unique_ptr<Executable> executable;
  std::unique_ptr<Memory> memory;
  StreamHandle stream = nullptr;

  Loaded(Communicator& of, const std::shared_ptr<const Program>& plan, bool zero_copy)
      : communicator(of),
        executable(of.load(plan, {.max_bytes = kBytes, .zero_copy = zero_copy}, diagnostics)),
        memory(of.device().allocate(2 * kBytes, "buffers", diagnostics)),
        stream(of.device().create_stream(diagnostics)) {}
  ~Loaded() {
    if (stream != nullptr) communicator.device().destroy_stream(stream);
  }
  bool good() const { return executable != nullptr && memory != nullptr && stream != nullptr; }
  BoundCall bind() {
    return executable->bind(
        {.bytes = kBytes, .input = memory->data(), .output = memory->data() + kBytes}, diagnostics);
  }
  std::string said() const { return text(diagnostics); }
};

/// All ranks wait for each other, and one of them looks while the others stand still.
bool look_together(Loaded& of, uint64_t done, const Look& look) {
  Bootstrap& bootstrap = of.communicator.bootstrap();
  if (!bootstrap.barrier("all are here", of.diagnostics)) return false;
  if (of.communicator.rank() == 0) look(done);
  return bootstrap.barrier("go on", of.diagnostics);
}

}  // namespace

std::string launch_again(const std::shared_ptr<const Program>& plan, uint64_t launches,
                         uint64_t every, const Look& look) {
  return run_threads(2, [&](Communicator& communicator) -> std::string {
    Loaded of(communicator, plan, false);
    const BoundCall call = of.good() ? of.bind() : BoundCall();
    if (!call) return of.said();
    for (uint64_t i = 1; i <= launches; ++i) {
      if (!of.executable->launch(call, of.stream, of.diagnostics)) return of.said();
      if (i % 1000 == 0 && !communicator.synchronize(of.stream, of.diagnostics)) return of.said();
      if (i % every != 0) continue;
      if (!communicator.synchronize(of.stream, of.diagnostics)) return of.said();
      if (!look_together(of, i, look)) return of.said();
    }
    return of.said();
  });
}

std::string register_again(const std::shared_ptr<const Program>& plan, uint64_t buffers,
                           uint64_t every, const Look& look) {
  return run_threads(2, [&](Communicator& communicator) -> std::string {
    Loaded of(communicator, plan, true);
    if (!of.good()) return of.said();
    for (uint64_t i = 1; i <= buffers; ++i) {
      const auto registered =
          communicator.register_buffer(of.memory->data(), 2 * kBytes, of.diagnostics);
      if (registered == nullptr || !of.bind()) return of.said();
      if (i % every == 0 && !look_together(of, i, look)) return of.said();
    }
    return of.said();
  });
}

std::string communicate_again(const std::shared_ptr<const Program>& plan, uint64_t communicators,
                              uint64_t every, const Look& look) {
  for (uint64_t i = 1; i <= communicators; ++i) {
    const std::string said = run_threads(2, [&](Communicator& communicator) -> std::string {
      Loaded of(communicator, plan, true);
      if (!of.good()) return of.said();
      const auto registered =
          communicator.register_buffer(of.memory->data(), 2 * kBytes, of.diagnostics);
      const BoundCall call = of.bind();
      if (registered == nullptr || !call) return of.said();
      (void)of.executable->launch(call, of.stream, of.diagnostics);
      (void)communicator.synchronize(of.stream, of.diagnostics);
      return of.said();
    });
    if (!said.empty()) return said;
    if (i % every == 0) look(i);
  }
  return "";
}

}  // namespace mscclc::testing
