// Ranks of a test that one thread drives.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/api/host_device.h"
#include "runtime/api/in_process.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {

/// Ranks that have met, for one thread.
struct RanksOfOneThread {
  std::vector<std::unique_ptr<Communicator>> communicators;
  std::vector<std::unique_ptr<Collectives>> collectives;
  std::vector<StreamHandle> streams;
  Diagnostics diagnostics;

  explicit RanksOfOneThread(uint32_t ranks,
                            const std::shared_ptr<PlanProvider>& plans = compiled_in_library())
      : communicators(ranks), collectives(ranks) {
    auto bootstraps = make_in_process_bootstraps(ranks, kPatience);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        Diagnostics said;
        communicators[r] =
            Communicator::create(std::move(bootstraps[r]), make_host_device(said), {}, said);
        if (communicators[r] == nullptr) return;
        collectives[r] = Collectives::create(*communicators[r], plans, {}, said);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (uint32_t r = 0; r < ranks; ++r) {
      REQUIRE(collectives[r] != nullptr);
      streams.push_back(communicators[r]->device().create_stream(diagnostics));
    }
  }
  ~RanksOfOneThread() {
    for (size_t r = 0; r < streams.size(); ++r) {
      communicators[r]->device().destroy_stream(streams[r]);
    }
  }
};

}  // namespace mscclc::testing
