#include "tests/overlap/beside_gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "executor/cpu/dice.h"
#include "executor/simulator/cluster.h"
#include "tests/overlap/copied_gemm.h"
#include "tests/overlap/gemm_side.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

using Bytes = KnownCalls::Bytes;

struct NoCallHooks final : CallHooks {
  void before(uint32_t, uint64_t) override {}
  void after(uint32_t, uint64_t) override {}
};

Bytes some_floats(uint64_t bytes, uint64_t seed) {
  Dice dice(seed);
  std::vector<float> values(bytes / sizeof(float));
  for (float& value : values) value = (static_cast<float>(dice.below(65536)) - 32000.0f) / 3.0f;
  Bytes data(bytes);
  std::memcpy(data.data(), values.data(), values.size() * sizeof(float));
  return data;
}

/// Memory of a rank that its peers reach.
struct ReachedBuffer {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<RegisteredBuffer> registered;
  bool make(Communicator& communicator, uint64_t bytes, Diagnostics& diagnostics) {
    memory = communicator.device().allocate(bytes, "a buffer", diagnostics);
    if (memory == nullptr) return false;
    registered = communicator.register_buffer(memory->data(), bytes, diagnostics);
    return registered != nullptr;
  }
};

/// All calls of a rank.
class BesideGemm {
 public:
  BesideGemm(Communicator& communicator, const std::shared_ptr<const Program>& plan, GemmBy by)
      : communicator_(communicator),
        device_(communicator.device()),
        plan_(plan),
        by_(by),
        flags_(*plan),
        copied_(*plan, communicator.rank(), communicator.device()) {}

  std::string run(const std::vector<KnownCalls>& sizes) {
    Diagnostics d;
    const std::string said = run(sizes, d);
    return said.empty() ? "" : said + "\n" + text(d);
  }

 private:
  std::string run(const std::vector<KnownCalls>& sizes, Diagnostics& d) {
    uint64_t most = 0;
    for (const KnownCalls& known : sizes) most = std::max(most, known.bytes);
    executable_ = communicator_.load(
        plan_, {.max_bytes = most, .zero_copy = true, .proof = ProofPolicy::skip}, d);
    if (executable_ == nullptr) return "not loaded";
    for (ReachedBuffer& buffer : buffers_) {
      if (!buffer.make(communicator_, most, d)) return "no buffer";
    }
    stream_ = device_.create_stream(d);
    if (stream_ == nullptr || !copied_.allocate(d)) return "no stream, or no flags";
    std::string said;
    for (const KnownCalls& known : sizes) {
      for (size_t c = 0; c < known.inputs.size() && said.empty(); ++c, ++number_) {
        said = call(known, c, d);
      }
    }
    device_.destroy_stream(stream_);
    return said;
  }

  std::string call(const KnownCalls& known, size_t c, Diagnostics& d) {
    const uint32_t rank = communicator_.rank();
    const Chunking chunking(plan_->contract, known.part, plan_->granule(Dtype::f32));
    const CallerBuffers callers = caller_buffers(plan_->contract, chunking, rank, known.in_place);
    uint8_t* at[2] = {buffers_[kInput].memory->data(), buffers_[kOutput].memory->data()};
    if (callers.shared) at[1 - callers.outer] = at[callers.outer] + callers.inner_offset;
    const Bytes& input = known.inputs[c][rank];
    // Where no flags say so, it is there before.
    if (!device_.write(at[kInput], input.data(), input.size(), d)) return "no input";
    const auto& given = by_ == GemmBy::thread ? flags_.given() : copied_.given();
    const BoundCall bound = executable_->bind({.bytes = known.bytes,
                                               .input = at[kInput],
                                               .output = at[kOutput],
                                               .flags = given,
                                               .launch_order = LaunchOrder::plan_first},
                                              d);
    if (!bound) return "not bound";
    Bytes output(known.outputs[c][rank].size());
    const std::string said = by_ == GemmBy::thread
                                 ? beside_thread(bound, chunking, at, input, d)
                                 : beside_copies(bound, chunking, at, input, output, d);
    if (!said.empty()) return said;
    if (!device_.read(output.data(), at[kOutput], output.size(), d)) return "no output";
    if (keeps_promises(chunking, output, known.outputs[c][rank])) return "";
    return fmt::format("call {} of {} bytes gives other bits than the simulator", number_,
                       known.bytes);
  }

  /// Chunks that nothing is promised of may hold anything.
  bool keeps_promises(const Chunking& chunking, const Bytes& output, const Bytes& known) const {
    const Contract& contract = plan_->contract;
    const uint32_t rank = communicator_.rank();
    for (uint32_t c = 0; c < contract.chunk_count(Side::output, rank); ++c) {
      const auto first = static_cast<ptrdiff_t>(chunking.offset(Side::output, rank, c));
      const auto bytes = static_cast<ptrdiff_t>(chunking.length(Side::output, rank, c));
      if (contract.promise(rank, c) &&
          !std::equal(output.begin() + first, output.begin() + first + bytes,
                      known.begin() + first)) {
        return false;
      }
    }
    return true;
  }

  std::string beside_thread(const BoundCall& bound, const Chunking& chunking, uint8_t* const* at,
                            const Bytes& input, Diagnostics& d) {
    const uint32_t rank = communicator_.rank();
    GemmSide gemm(*plan_, rank, flags_,
                  {.number = number_,
                   .chunking = chunking,
                   .input = at[kInput],
                   .output = at[kOutput],
                   .made = input.data(),
                   .seed = number_ * 16 + rank});
    if (!executable_->launch(bound, stream_, d) || !communicator_.synchronize(stream_, d)) {
      std::fputs(text(d).c_str(), stderr);
      std::abort();
    }
    return gemm.end();
  }

  std::string beside_copies(const BoundCall& bound, const Chunking& chunking, uint8_t* const* at,
                            const Bytes& input, Bytes& output, Diagnostics& d) {
    const CopiedGemm::CopiedCall call{.number = number_,
                                      .chunking = chunking,
                                      .input = at[kInput],
                                      .output = at[kOutput],
                                      .made = input,
                                      .seed = number_ * 16 + communicator_.rank()};
    if (!copied_.spoil(call, d) || !executable_->launch(bound, stream_, d) ||
        !copied_.serve(call, d) || !communicator_.synchronize(stream_, d) ||
        !device_.read(output.data(), at[kOutput], output.size(), d)) {
      return "the call failed";
    }
    return copied_.compare(call, output);
  }

  Communicator& communicator_;
  Device& device_;
  const std::shared_ptr<const Program>& plan_;
  const GemmBy by_;
  FlagMemory flags_;
  CopiedGemm copied_;
  ReachedBuffer buffers_[2];
  std::unique_ptr<Executable> executable_;
  StreamHandle stream_ = nullptr;
  uint64_t number_ = 0;
};

}  // namespace

std::optional<KnownCalls> known_calls(const Program& plan, uint64_t message, bool in_place,
                                      uint64_t calls, Diagnostics& diagnostics) {
  KnownCalls known;
  known.in_place = in_place;
  known.part = Chunking::part_for_message(plan.contract, message, sizeof(float));
  known.bytes = known.part * Chunking::parts_of_message(plan.contract);
  Cluster cluster(plan);
  NoCallHooks hooks;
  Call call{.part_bytes = known.part, .dtype = Dtype::f32};
  if (!cluster.build(diagnostics) || !check_call(plan, call, diagnostics) ||
      !cluster.prepare(call, in_place, true, diagnostics)) {
    return std::nullopt;
  }
  for (uint64_t c = 0; c < calls; ++c) {
    std::vector<Bytes>& inputs = known.inputs.emplace_back();
    std::vector<Bytes>& outputs = known.outputs.emplace_back();
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      inputs.push_back(some_floats(cluster.bytes(r, kInput), 1 + r + 100 * c));
      std::ranges::copy(inputs.back(), cluster.data(r, kInput));
    }
    if (!cluster.run(1, 0, hooks, diagnostics)) return std::nullopt;
    for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
      const uint8_t* const data = cluster.data(r, kOutput);
      outputs.emplace_back(data, data + cluster.bytes(r, kOutput));
    }
  }
  return known;
}

std::string run_beside_gemm(Communicator& communicator, const std::shared_ptr<const Program>& plan,
                            const std::vector<KnownCalls>& sizes, GemmBy by) {
  return BesideGemm(communicator, plan, by).run(sizes);
}

}  // namespace mscclc::testing
