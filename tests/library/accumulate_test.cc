// How exact sums are, of every AllReduce of the library: those taken in f32 are no worse than those
// in f16, and those no worse than those in the data type itself.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/interpreter/numbers.h"
#include "executor/simulator/cluster.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

constexpr uint32_t kElements = 3000;
/// Sums of one op that are as exact in either type differ by chance where several ops follow one
/// another.
constexpr double kChance = 1.01;

/// Elements of T, random numbers up to `most`.
template <Dtype T>
class Inputs : public CallHooks {
 public:
  using Bits = typename device::Element<T>::Bits;

  Inputs(Cluster& cluster, float most) : cluster_(cluster), exact_(kElements) {
    Dice dice(1);
    rows_.resize(cluster.program().contract.ranks);
    for (std::vector<Bits>& row : rows_) {
      for (uint32_t i = 0; i < kElements; ++i) {
        const float random = static_cast<float>(dice.below(1 << 20)) / (1 << 19) - 1;
        row.push_back(device::narrow<T>(most * random));
        exact_[i] += device::Element<T>::read(row.back());
      }
    }
  }
  void before(uint32_t rank, uint64_t) override {
    std::memcpy(cluster_.data(rank, kInput), rows_[rank].data(), kElements * sizeof(Bits));
  }
  void after(uint32_t rank, uint64_t) override {
    const uint8_t* output = cluster_.data(rank, kOutput);
    for (uint32_t i = 0; i < kElements; ++i) {
      Bits bits;
      std::memcpy(&bits, output + i * sizeof bits, sizeof bits);
      error_ += std::abs(double{device::Element<T>::read(bits)} - exact_[i]);
      ++seen_;
    }
  }
  /// How far results are off, mean.
  double error() const { return error_ / static_cast<double>(seen_); }

 private:
  Cluster& cluster_;
  std::vector<std::vector<Bits>> rows_;
  std::vector<double> exact_;
  double error_ = 0;
  uint64_t seen_ = 0;
};

template <Dtype T>
double error_of(const Program& program, Dtype accumulate, float most) {
  Cluster cluster(program);
  Diagnostics diagnostics;
  const Call call{.part_bytes = kElements * info(T).bytes, .dtype = T, .accumulate = accumulate};
  REQUIRE(cluster.build(diagnostics));
  REQUIRE(cluster.prepare(call, false, true, diagnostics));
  Inputs<T> inputs(cluster, most);
  REQUIRE(cluster.run(1, 0, inputs, diagnostics));
  return inputs.error();
}

/// `most`: such that no sum of ranks is beyond the type.
template <Dtype T>
void compare(const Program& program, float most) {
  INFO(info(T).name);
  const double in_f32 = error_of<T>(program, Dtype::f32, most);
  const double in_f16 = error_of<T>(program, Dtype::f16, most);
  const double in_own = error_of<T>(program, T, most);
  CHECK(in_f32 > 0);
  CHECK(in_f32 <= in_f16 * kChance);
  CHECK(in_f16 <= in_own * kChance);
}

/// Of 8 ranks, or of the largest world below.
const Defines& world_of(const LibraryProgram& program) {
  const auto ranks = [](const Defines& defines) {
    for (const auto& [key, value] : defines) {
      if (key == "R" || key == "world") return std::stoi(value);
    }
    return 0;
  };
  const Defines* best = &program.worlds.front();
  for (const Defines& world : program.worlds) {
    if (ranks(world) <= 8 && ranks(world) > ranks(*best)) best = &world;
  }
  return *best;
}

TEST_CASE("sums in f32 are no worse than in f16, nor those than in the data type") {
  uint32_t programs = 0;
  for (const LibraryProgram& entry : library()) {
    if (!entry.name.starts_with("allreduce")) continue;
    const CompiledWorld compiled(entry.name, world_of(entry));
    INFO(entry.name << " " << text(world_of(entry)));
    REQUIRE(compiled.errors() == "");
    ++programs;
    compare<Dtype::f16>(compiled.program(), 1);
    compare<Dtype::e4m3>(compiled.program(), 4);
    compare<Dtype::e5m2>(compiled.program(), 4);
    compare<Dtype::e4m3b15>(compiled.program(), 0.1f);
  }
  CHECK(programs >= 13);
}

TEST_CASE("of many ranks in one op f32 is far better, and f16 is for fp8") {
  // One op adds up all ranks: nothing is rounded in between but the sum.
  const CompiledWorld compiled("allreduce_1shot_ordered", {{"R", "16"}});
  REQUIRE(compiled.errors() == "");
  const Program& program = compiled.program();
  CHECK(error_of<Dtype::f16>(program, Dtype::f32, 1) * 1.5 <
        error_of<Dtype::f16>(program, Dtype::f16, 1));
  for (const Dtype sums : {Dtype::f32, Dtype::f16}) {
    CHECK(error_of<Dtype::e4m3>(program, sums, 4) * 1.5 <
          error_of<Dtype::e4m3>(program, Dtype::e4m3, 4));
  }
}

}  // namespace
}  // namespace mscclc
