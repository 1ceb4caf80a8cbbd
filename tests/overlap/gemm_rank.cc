#include "tests/overlap/gemm_rank.h"

#include <fmt/format.h>

#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

/// The programs of a process, compiled once for all ranks and cases.
std::shared_ptr<OverlapPrograms> programs() {
  static const std::shared_ptr<OverlapPrograms> made = builtin_overlap_programs();
  return made;
}

/// What a test owns, for an owner that shares.
template <class T>
std::shared_ptr<T> borrowed(T& of) {
  return std::shared_ptr<T>(&of, [](T*) {});
}

std::string describe(const GemmRuns& runs, uint32_t ranks) {
  const OverlapConfig& c = runs.config;
  return fmt::format(
      "{} {} of {} ranks: m = {}, k = {}, n = {}, {} to {}, chunks = {}, budget = {}", c.backend,
      name(c.kind), ranks, c.m, c.k, c.n.front(), info(c.a_dtype).name, info(c.out_dtype).name,
      c.chunks, c.budget);
}

class LentCollectives final : public OtherCollectives {
 public:
  explicit LentCollectives(std::shared_ptr<Collectives> collectives)
      : collectives_(std::move(collectives)) {}
  bool call(const CollectiveCall& call, StreamHandle stream, Diagnostics& diagnostics) override {
    return collectives_->call(call, stream, diagnostics);
  }
  void abort() override {}

 private:
  const std::shared_ptr<Collectives> collectives_;
};

}  // namespace

GemmRank::GemmRank(Communicator& communicator) : communicator_(communicator) {
  Diagnostics diagnostics;
  owner_.device = borrowed(communicator.device());
  owner_.communicator = borrowed(communicator);
  owner_.collectives = Collectives::create(communicator, compiled_in_library(), {}, diagnostics);
  owner_.turns = make_overlap_turns();
  options_.programs = programs();
  stream_ = communicator.device().create_stream(diagnostics);
}

void GemmRank::lend_collectives() {
  const auto make = [of = owner_.collectives](Communicator&, Diagnostics&) {
    return std::make_unique<LentCollectives>(of);
  };
  options_.nccl = {.make = make, .missing = ""};
}

GemmRank::~GemmRank() { communicator_.device().destroy_stream(stream_); }

std::unique_ptr<Overlap> GemmRank::make(const OverlapConfig& config, Diagnostics& diagnostics) {
  return Overlap::create(owner_, config, options_, diagnostics);
}

/// A rank's matrices in memory of the device.
struct GemmRank::Placed {
  std::vector<std::unique_ptr<Memory>> memory;
  Device& device;
  Diagnostics& diagnostics;

  void* add(const void* bytes, uint64_t count) {
    memory.push_back(device.allocate(count, "a matrix", diagnostics));
    if (bytes != nullptr) (void)device.write(memory.back()->data(), bytes, count, diagnostics);
    return memory.back()->data();
  }
  void* add(const MatrixBytes& bytes) { return add(bytes.data(), bytes.size()); }
  const float* add(float value) { return static_cast<const float*>(add(&value, sizeof value)); }
};

std::string GemmRank::run_once(Overlap& object, const GemmRuns& runs, uint32_t run,
                               std::vector<MatrixBytes>* outputs, Diagnostics& diagnostics) {
  const OverlapConfig& config = runs.config;
  const uint32_t rank = communicator_.rank();
  const GemmWorld world(config, communicator_.size(), runs.values);
  const RankMatrices given = world.matrices(rank, run);
  Placed placed{{}, communicator_.device(), diagnostics};
  OverlapCall call{.a = placed.add(given.a)};
  const bool scaled = info(config.a_dtype).bytes == 1;
  if (scaled) call.a_scale = placed.add(given.a_scale);
  std::vector<uint64_t> sizes;
  for (size_t w = 0; w < config.n.size(); ++w) {
    sizes.push_back(world.out_rows() * config.n[w] * info(config.out_dtype).bytes);
    call.b.push_back(placed.add(given.b[w]));
    call.out.push_back(placed.add(nullptr, sizes.back()));
    if (config.bias) call.bias.push_back(placed.add(given.bias[w]));
    if (runs.gives_before) call.pre_activation.push_back(placed.add(nullptr, sizes.back()));
    if (scaled) call.b_scale.push_back(placed.add(given.b_scale[w]));
  }
  const MatrixBytes gathered = world.gathered(rank, run);
  if (runs.gives_gathered) call.gathered = placed.add(nullptr, gathered.size());
  if (!config.own_workspace) {
    call.workspace_bytes = object.workspace_bytes();
    call.workspace = placed.add(nullptr, call.workspace_bytes + 1);
  }
  if (!object.run(call, stream_, diagnostics) || !communicator_.synchronize(stream_, diagnostics)) {
    Diagnostics ignored;  // what the stream has left of a failed run still uses the matrices
    (void)communicator_.device().drain(ignored);
    return "the run failed";
  }
  for (size_t w = 0; w < config.n.size(); ++w) {
    MatrixBytes out(sizes[w]);
    if (!communicator_.device().read(out.data(), call.out[w], out.size(), diagnostics))
      return "out";
    const bool exact = runs.values == MatrixValues::small;
    if (exact && out != world.expected(rank, run, w)) {
      return fmt::format("run {} gives a wrong out[{}]", run, w);
    }
    if (runs.gives_before) {
      MatrixBytes before(sizes[w]);
      (void)communicator_.device().read(before.data(), call.pre_activation[w], sizes[w],
                                        diagnostics);
      if (exact && before != world.before_activation(rank, run, w)) {
        return fmt::format("run {} gives a wrong pre_activation[{}]", run, w);
      }
    }
    if (outputs != nullptr) outputs->push_back(std::move(out));
  }
  MatrixBytes came(gathered.size());
  if (!runs.gives_gathered) return "";
  (void)communicator_.device().read(came.data(), call.gathered, came.size(), diagnostics);
  return came == gathered ? "" : "what was gathered is wrong";
}

std::string GemmRank::run(const GemmRuns& runs, std::vector<MatrixBytes>* outputs) {
  Diagnostics diagnostics;
  const auto object = make(runs.config, diagnostics);
  std::string said = object == nullptr ? "not made" : "";
  for (uint32_t i = 0; i < runs.runs && said.empty(); ++i) {
    said = run_once(*object, runs, i, outputs, diagnostics);
  }
  if (said.empty()) return "";
  return fmt::format("{}: {}\n{}", describe(runs, communicator_.size()), said, text(diagnostics));
}

}  // namespace mscclc::testing
