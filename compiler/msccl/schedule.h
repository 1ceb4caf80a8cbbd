// A schedule of MSCCL, as its XML says it: what each thread block of each GPU does, step by step.
// Blocks send to one GPU and receive from one, over numbered channels; messages of a connection
// come in the order in which they were sent.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/contract/collectives.h"
#include "ir/support/source.h"

namespace mscclc::msccl {

inline constexpr uint32_t kNoPeer = ~0u;

enum class StepType : uint8_t {
#define STEP(type, receives, reduces, stores, sends) type,
#include "compiler/msccl/step_kinds.def"
#undef STEP
};

/// What a step of a type does: a row of step_kinds.def.
struct StepInfo {
  std::string_view name;
  bool receives, reduces, stores, sends;
};
inline constexpr std::array kStepInfos = {
#define STEP(type, receives, reduces, stores, sends) \
  StepInfo{#type, receives != 0, reduces != 0, stores != 0, sends != 0},
#include "compiler/msccl/step_kinds.def"
#undef STEP
};

enum class Memory : uint8_t { input, output, scratch };

/// Chunks of a GPU's buffer, from `first` on.
struct ChunkPosition {
  Memory memory = Memory::input;
  uint32_t first = 0;
};

struct Step {
  StepType type = StepType::nop;
  ChunkPosition src, dst;
  uint32_t count = 0;  ///< chunks
  uint32_t after_block =
      kNoPeer;  ///< it waits for a step of this block, by index; kNoPeer: for none
  uint32_t after_step = 0;
  Span span = {};

  const StepInfo& info() const { return kStepInfos[static_cast<size_t>(type)]; }
};

struct Block {
  uint32_t send = kNoPeer, receive = kNoPeer;  ///< GPUs
  uint32_t channel = 0;
  std::vector<Step> steps;
  Span span = {};
};

struct Gpu {
  uint32_t scratch = 0;  ///< chunks
  std::vector<Block> blocks;
};

enum class Protocol : uint8_t { simple, ll, ll128 };

struct StepId {
  uint32_t gpu = 0, block = 0, step = 0;
  auto operator<=>(const StepId&) const = default;
};

struct Schedule {
  std::string name;
  CollectiveKind collective = CollectiveKind::none;
  Protocol protocol = Protocol::simple;
  uint32_t chunks = 0;               ///< of the larger of input and output
  uint32_t inputs = 0, outputs = 0;  ///< chunks of `custom`
  uint32_t root = 0;
  bool in_place = false, out_of_place = true;
  uint64_t min_bytes = 0, max_bytes = 0;  ///< of messages; 0: no limit
  std::vector<Gpu> gpus;

  const Step& step(const StepId& id) const { return gpus[id.gpu].blocks[id.block].steps[id.step]; }
  uint32_t ranks() const { return static_cast<uint32_t>(gpus.size()); }
  bool has_rows(Side side) const { return mscclc::info(collective).has_rows(side); }
  /// Chunks of a part: of a row, where one side has a row for each rank.
  uint32_t part() const {
    return has_rows(Side::input) || has_rows(Side::output) ? chunks / ranks() : chunks;
  }
};

}  // namespace mscclc::msccl
