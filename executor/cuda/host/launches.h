// What runs on a GPU without a GPU (grid.h): launches, their blocks, and threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "executor/cpu/fiber.h"
#include "executor/cuda/host/late_stores.h"

namespace mscclc::cuda::host {

struct Block;
struct Launch;

/// A copy to shared memory that a thread has asked for.
struct AsyncCopy {
  uint64_t* to;
  const uint64_t* from;
};

struct Thread {
  enum class State : uint8_t { ready, polling, at_block, at_cluster, at_warp, ended };
  Block* block = nullptr;
  uint32_t index = 0;
  State state = State::ready;
  uint32_t mask = 0, vote = 0, ballot = 0;  ///< of its meeting with others of its warp
  uint64_t seen = 0;                        ///< Gpu::changes() when it last polled in vain
  uint64_t priority = 0;
  std::function<void()> access;  ///< that it makes with others of its warp
  Fiber* fiber = nullptr;
  std::vector<AsyncCopy> copies;
};

/// What `__shared__` names is, of one type in each kernel.
struct SharedVariable {
  const void* key;
  std::unique_ptr<uint8_t[]> bytes;
};

struct Block {
  Launch* launch = nullptr;
  uint32_t index = 0;
  std::deque<Thread> threads;
  uint32_t live = 0, arrived = 0;  ///< threads that have not ended; that are at the meeting
  uint32_t at_cluster = 0;         ///< that are at the meeting of the cluster
  bool frees_next = false;
  std::unique_ptr<uint8_t[]> dynamic;  ///< shared memory that the launch asks for
  std::vector<SharedVariable> variables;
  LateStores late;
};

struct Shape {
  uint32_t blocks = 0, threads = 0, shared_bytes = 0;
  bool early = false;    ///< it may begin before the launch ahead has ended
  uint32_t cluster = 1;  ///< blocks of a cluster
};

struct Launch {
  Shape shape;
  std::function<void()> kernel;
  std::shared_ptr<Launch> ahead;  ///< on its stream, while that runs
  std::deque<Block> blocks;
  uint32_t live_blocks = 0, freed_blocks = 0;
  bool begun = false, ended = false;
};

using Stream = std::deque<std::shared_ptr<Launch>>;

}  // namespace mscclc::cuda::host
