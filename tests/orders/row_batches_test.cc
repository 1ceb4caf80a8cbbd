// A row of a batch has the same bits in batches of 1 to 512 rows, and all ranks get them: by name,
// under each contract, on the host device.
#include "tests/orders/row_batches.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "ir/support/sanitized.h"
#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::RowBatches;

/// "" if every batch had the bits of the row alone.
std::string rows_of(uint32_t ranks, SumOrder order, const RowBatches& rows) {
  return testing::run_threads(ranks, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = Collectives::create(communicator, testing::compiled_in_library(),
                                          {.order = order}, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    const auto at_once = [](StreamHandle, const auto& calls, Diagnostics& problems) {
      return calls(problems);
    };
    uint64_t batches = 0;
    const std::string fault = testing::check_rows(*made, rows, at_once, batches);
    const uint64_t wanted = (rows.most_rows - 1) / rows.step + 1;
    return fault.empty() && batches != wanted ? "batches are missing" : fault;
  });
}

constexpr SumOrder kSameForAllBatches[] = {SumOrder::ranks, SumOrder::tree, SumOrder::exact};

// Every number at up to four ranks; at more with --config=thorough.
TEST_CASE("a row has the same bits in batches of every number of rows, from 1 to 512") {
  constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3};
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    for (const SumOrder order : kSameForAllBatches) {
      INFO(ranks << " ranks, " << name(order));
      const Dtype dtype = kTypes[ranks % 4];
      const uint64_t step = ranks <= 4 || testing::kThorough ? 1 : 73;
      if (order == SumOrder::exact) {  // slow: at few ranks in short rows, and some long ones
        CHECK(rows_of(ranks, order, {.dtype = dtype, .hidden = 40, .step = step}) == "");
        CHECK(rows_of(ranks, order, {.dtype = dtype, .hidden = 360, .step = 73}) == "");
      } else {
        CHECK(rows_of(ranks, order, {.dtype = dtype, .hidden = 360, .step = step}) == "");
      }
    }
  }
}

TEST_CASE("a row has the same bits in batches of up to 64 MiB") {
  for (const SumOrder order : kSameForAllBatches) {
    INFO(name(order));
    CHECK(rows_of(3, order, {.hidden = 1 << 16, .most_rows = 512, .step = 73}) == "");
  }
}

/// Calls of one rank in its own memory, as many equal parts of `part` elements as there are ranks.
class CallsOfRank {
 public:
  CallsOfRank(Collectives& collectives, Dtype dtype, uint64_t part)
      : collectives_(collectives),
        dtype_(dtype),
        bytes_(part * collectives.communicator().size() * info(dtype).bytes) {}
  ~CallsOfRank() {
    if (stream_ != nullptr) device().destroy_stream(stream_);
  }
  CallsOfRank(const CallsOfRank&) = delete;
  CallsOfRank& operator=(const CallsOfRank&) = delete;

  bool make(Diagnostics& diagnostics) {
    const uint32_t element = info(dtype_).bytes;
    const auto given =
        testing::random_floats(bytes_ / element, element, 30 + communicator().rank());
    memory_ = device().allocate(4 * bytes_, "parts", diagnostics);
    stream_ = device().create_stream(diagnostics);
    return memory_ != nullptr && stream_ != nullptr &&
           device().write(at(0), given.data(), bytes_, diagnostics);
  }
  /// Places are whole messages.
  bool call(CollectiveKind kind, uint64_t count, uint32_t from, uint32_t to,
            Diagnostics& diagnostics) {
    const CollectiveCall call{
        .kind = kind, .count = count, .dtype = dtype_, .input = at(from), .output = at(to)};
    return collectives_.call(call, stream_, diagnostics) &&
           communicator().synchronize(stream_, diagnostics);
  }
  bool write(uint32_t place, const void* data, Diagnostics& diagnostics) {
    return device().write(at(place), data, bytes_, diagnostics);
  }
  bool alike(uint32_t a, uint32_t b) const { return std::memcmp(at(a), at(b), bytes_) == 0; }

 private:
  Communicator& communicator() const { return collectives_.communicator(); }
  Device& device() const { return communicator().device(); }
  uint8_t* at(uint32_t place) const { return memory_->data() + place * bytes_; }

  Collectives& collectives_;
  const Dtype dtype_;
  const uint64_t bytes_;
  std::unique_ptr<Memory> memory_;
  StreamHandle stream_ = nullptr;
};

/// An all-reduce, and the same by two programs that calls by name get. "": their bits are the same.
std::string sums_differ(Collectives& collectives, Dtype dtype, uint64_t part) {
  CallsOfRank calls(collectives, dtype, part);
  Diagnostics diagnostics;
  const uint64_t all = part * collectives.communicator().size();
  using enum CollectiveKind;
  if (!calls.make(diagnostics) || !calls.call(allreduce, all, 0, 1, diagnostics) ||
      !calls.call(reducescatter, part, 0, 2, diagnostics) ||
      !calls.call(allgather, part, 2, 3, diagnostics)) {
    return testing::text(diagnostics);
  }
  if (!calls.alike(1, 3)) return "a reduce-scatter and an all-gather give other bits";
  if (!calls.call(reduce, all, 0, 2, diagnostics) ||
      !calls.call(broadcast, all, 2, 3, diagnostics)) {
    return testing::text(diagnostics);
  }
  return calls.alike(1, 3) ? "" : "a reduce and a broadcast give other bits";
}

TEST_CASE("an all-reduce has the bits of a reduce-scatter and an all-gather, and of a reduce") {
  for (const uint32_t ranks : {2u, 3u, 4u, 6u, 8u}) {
    for (const SumOrder order : kSameForAllBatches) {
      INFO(ranks << " ranks, " << name(order));
      const auto body = [&](Communicator& communicator) -> std::string {
        Diagnostics diagnostics;
        const auto made = Collectives::create(communicator, testing::compiled_in_library(),
                                              {.order = order}, diagnostics);
        if (made == nullptr) return testing::text(diagnostics);
        for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::e4m3}) {
          for (const uint64_t part : {uint64_t{16}, uint64_t{4096}, uint64_t{1} << 15}) {
            const std::string said = sums_differ(*made, dtype, part);
            if (!said.empty()) return fmt::format("{}, {}: {}", info(dtype).name, part, said);
          }
        }
        return "";
      };
      CHECK(testing::run_threads(ranks, body) == "");
    }
  }
}

/// Of eight parts of a sum the tree over those from `begin` on, as a GEMM that splits K would give
/// it.
std::vector<float> part_of_tree(uint32_t begin, uint32_t parts, uint64_t count) {
  if (parts == 1) {
    const auto bytes = testing::random_floats(count, sizeof(float), 60 + begin);
    std::vector<float> values(count);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<float> sum = part_of_tree(begin, parts / 2, count);
  const std::vector<float> right = part_of_tree(begin + parts / 2, parts / 2, count);
  for (uint64_t i = 0; i < count; ++i) sum[i] += right[i];
  return sum;
}

TEST_CASE("along the tree two, four and eight ranks give the bits of one") {
  constexpr uint32_t kParts = 8;
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    const auto body = [&](Communicator& communicator) -> std::string {
      Diagnostics diagnostics;
      const auto made = Collectives::create(communicator, testing::compiled_in_library(),
                                            {.order = SumOrder::tree}, diagnostics);
      if (made == nullptr) return testing::text(diagnostics);
      for (const uint64_t part : {16, 4096, 1 << 16}) {
        const uint64_t all = part * ranks;
        CallsOfRank calls(*made, Dtype::f32, part);
        const uint32_t each = kParts / ranks;
        const auto own = part_of_tree(communicator.rank() * each, each, all);
        const auto whole = part_of_tree(0, kParts, all);
        if (!calls.make(diagnostics) || !calls.write(0, own.data(), diagnostics) ||
            !calls.write(2, whole.data(), diagnostics) ||
            !calls.call(CollectiveKind::allreduce, all, 0, 1, diagnostics)) {
          return testing::text(diagnostics);
        }
        if (!calls.alike(1, 2)) return fmt::format("{} elements: other bits", all);
      }
      return "";
    };
    INFO(ranks << " ranks");
    CHECK(testing::run_threads(ranks, body) == "");
  }
}

}  // namespace
}  // namespace mscclc
