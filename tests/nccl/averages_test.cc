// Averages of floats, as NCCL's: scaled before they are added up; and sums of 8-bit floats beyond
// the largest.
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/doors/nccl/comm/comm.h"
#include "tests/helpers/runtime/forwarding_device.h"
#include "tests/helpers/runtime/short_of_memory.h"
#include "tests/nccl/test_ranks.h"

namespace mscclc::nccl::testing {
namespace {

constexpr int kAvg = 4, kHalf = 6, kBfloat = 9, kE4m3 = 10, kE5m2 = 11;

/// The elements that all ranks get when each gives `values[rank]`.
template <typename T>
std::vector<std::vector<T>> all_reduced(Ranks& ranks, int type, int op,
                                        const std::vector<T>& values, bool in_place) {
  constexpr size_t kElements = 100;
  std::vector<std::vector<T>> from, to(values.size(), std::vector<T>(kElements));
  for (const T value : values) from.emplace_back(kElements, value);
  const auto sent = from;
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclAllReduce(from[r].data(), in_place ? from[r].data() : to[r].data(), kElements, type,
                         op, comm, nullptr);
  }) == ncclSuccess);
  if (in_place) return from;
  CHECK(from == sent);
  return to;
}

template <typename T>
void check_all_reduced(Ranks& ranks, int type, int op, const std::vector<T>& values, T wanted) {
  for (const bool in_place : {false, true}) {
    INFO("type " << type << ", in place " << in_place);
    for (const auto& row : all_reduced(ranks, type, op, values, in_place)) {
      CHECK(row == std::vector<T>(row.size(), wanted));
    }
  }
}

TEST_CASE("averages of the largest numbers are finite") {
  const ServedBy served(nullptr, true);
  Ranks ranks(4);
  const auto four = [](auto value) { return std::vector<decltype(value)>(4, value); };
  check_all_reduced(ranks, kFloat, kAvg, four(3e38f), 3e38f);
  check_all_reduced(ranks, kDouble, kAvg, four(1.7e308), 1.7e308);
  check_all_reduced(ranks, kBfloat, kAvg, four(uint16_t{0x7f7f}), uint16_t{0x7f7f});
  check_all_reduced(ranks, kHalf, kAvg, four(uint16_t{0x7bff}), uint16_t{0x7bff});
  check_all_reduced(ranks, kE4m3, kAvg, four(uint8_t{0x7e}), uint8_t{0x7e});
  check_all_reduced(ranks, kE5m2, kAvg, four(uint8_t{0x7b}), uint8_t{0x7b});
  check_all_reduced<float>(ranks, kFloat, kAvg, {1, 2, 3, 4}, 2.5f);
  // Of integers the sum is divided, as with NCCL.
  check_all_reduced<int>(ranks, kInt32, kAvg, {1, 1, 1, 1}, 1);
  check_all_reduced<int>(ranks, kInt32, kAvg, {3, 3, 3, 2}, 2);
}

TEST_CASE("averages of other numbers of ranks, and of one rank") {
  const ServedBy served(nullptr, true);
  const float third = static_cast<float>(1.0 / 3);
  Ranks three(3);
  check_all_reduced<float>(three, kFloat, kAvg, {3, 6, 9}, 3 * third + 6 * third + 9 * third);
  Ranks one(1);
  check_all_reduced<float>(one, kFloat, kAvg, {3e38f}, 3e38f);
}

/// Every rank's input is as long as the ranks' outputs together.
void check_scattered(Ranks& ranks, bool in_place) {
  const auto n = static_cast<size_t>(ranks.size());
  constexpr size_t kPart = 7;
  std::vector<std::vector<float>> from, to(n, std::vector<float>(kPart));
  for (size_t r = 0; r < n; ++r) from.emplace_back(n * kPart, 1e38f * static_cast<float>(r));
  const auto output = [&](int r) {
    return in_place ? from[r].data() + static_cast<size_t>(r) * kPart : to[r].data();
  };
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclReduceScatter(from[r].data(), output(r), kPart, kFloat, kAvg, comm, nullptr);
  }) == ncclSuccess);
  const float mean = 0.25f * 1e38f + 0.25f * 2e38f + 0.25f * 3e38f;
  for (int r = 0; r < ranks.size(); ++r) {
    for (size_t i = 0; i < kPart; ++i) CHECK(output(r)[i] == Approx(mean));
    if (!in_place) CHECK(from[r] == std::vector<float>(n * kPart, 1e38f * static_cast<float>(r)));
  }
}

TEST_CASE("averages by reduce-scatters and reduces leave inputs as they are") {
  const ServedBy served(nullptr, true);
  Ranks ranks(4);
  check_scattered(ranks, false);
  check_scattered(ranks, true);
  std::vector<std::vector<float>> from;
  for (int r = 0; r < 4; ++r) from.emplace_back(50, 3e38f);
  std::vector<float> mean(50);
  REQUIRE(ranks.together([&](int r, ncclComm_t comm) {
    return ncclReduce(from[r].data(), r == 2 ? mean.data() : nullptr, 50, kFloat, kAvg, 2, comm,
                      nullptr);
  }) == ncclSuccess);
  CHECK(mean == std::vector<float>(50, 3e38f));
  for (const auto& row : from) CHECK(row == std::vector<float>(50, 3e38f));
}

TEST_CASE("several averages in one group, of growing sizes") {
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  constexpr size_t kCalls = 4;
  std::vector<std::vector<float>> from(2 * kCalls), to(2 * kCalls);
  ncclGroupStart();
  for (size_t call = 0; call < kCalls; ++call) {
    const size_t part = size_t{1} << (3 * call);
    for (int r = 0; r < 2; ++r) {
      auto& input = from[2 * call + r];
      input.assign(2 * part, static_cast<float>(2 * call + 2 * r));
      to[2 * call + r].assign(part, -1);
      CHECK(ncclReduceScatter(input.data(), to[2 * call + r].data(), part, kFloat, kAvg,
                              ranks.comms[r], nullptr) == ncclSuccess);
    }
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (size_t i = 0; i < to.size(); ++i) {
    CHECK(to[i] == std::vector<float>(to[i].size(), static_cast<float>(2 * (i / 2) + 1)));
  }
}

/// A device that scales nothing.
class Unscaled final : public mscclc::testing::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  bool scale(const Scaling&, StreamHandle, Diagnostics& diagnostics) override {
    diagnostics.error("cuda", {}, "nothing is scaled");
    return false;
  }
};

/// What two ranks hear of an average, for which rank 1 has the device that `change` gives.
std::vector<std::string> said_of_average(
    const std::function<std::shared_ptr<Device>(std::shared_ptr<Device>)>& change) {
  // Buffers end after the ranks: what a stream still does with them ends with its rank.
  std::vector<std::vector<float>> from(2, std::vector<float>(8, 1)), to(2, std::vector<float>(4));
  Ranks ranks(2);
  const auto call = [&](int r, int op) {
    return ncclReduceScatter(from[r].data(), to[r].data(), 4, kFloat, op, ranks.comms[r], nullptr);
  };
  REQUIRE(ranks.together([&](int r, ncclComm_t) { return call(r, kSum); }) ==
          ncclSuccess);  // the plan is loaded
  {
    const CommPointer second = find_comm(ranks.comms[1]);
    const std::lock_guard lock(second->mutex);
    second->device = change(second->device);
  }
  std::vector<std::string> said(2);
  on_threads(2, [&](int r) {
    ncclResult_t error = call(r, kAvg);
    while (error == ncclSuccess) (void)ncclCommGetAsyncError(ranks.comms[r], &error);
    said[r] = said_of_failure(ranks.comms[r]);
  });
  return said;
}

TEST_CASE("an average that fails on one rank ends the call on all ranks") {
  const ServedBy served(nullptr, true);
  const std::string what = "scaled inputs of averages";
  const auto memory = said_of_average([&](std::shared_ptr<Device> device) {
    return std::make_shared<mscclc::testing::ShortOfMemory>(std::move(device), what);
  });
  for (const std::string& text : memory) {
    CHECK_THAT(text, Catch::Contains("there is no memory for " + what));
  }
  const auto scale = said_of_average(
      [](std::shared_ptr<Device> device) { return std::make_shared<Unscaled>(std::move(device)); });
  for (const std::string& text : scale) CHECK_THAT(text, Catch::Contains("nothing is scaled"));
}

TEST_CASE("averages with buffers that are wrong") {
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  float data[2][16] = {};
  const auto result = [&](const float* (*input)(float*), float* (*output)(float*)) {
    return ranks.together([&](int r, ncclComm_t comm) {
      return ncclAllReduce(input(data[r]), output(data[r]), 8, kFloat, kAvg, comm, nullptr);
    });
  };
  const auto own = [](float* at) { return at; };
  CHECK(result([](float*) -> const float* { return nullptr; }, own) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("an input, but gives nullptr"));
  CHECK(result([](float* at) -> const float* { return at; },
               [](float*) -> float* { return nullptr; }) == ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("an output, but gives nullptr"));
  CHECK(result([](float* at) -> const float* { return at; }, [](float* at) { return at + 3; }) ==
        ncclInvalidArgument);
  CHECK_THAT(ncclGetLastError(nullptr), Catch::Contains("overlap"));
  CHECK(ranks.together([&](int, ncclComm_t comm) {
    return ncclAllReduce(nullptr, nullptr, 0, kFloat, kAvg, comm, nullptr);
  }) == ncclSuccess);
}

TEST_CASE("sums of 8-bit floats beyond the largest are the largest") {
  const ServedBy served(nullptr, true);
  Ranks ranks(2);
  check_all_reduced<uint8_t>(ranks, kE4m3, kSum, {0x7e, 0x59}, 0x7e);  // 448 + 18
  check_all_reduced<uint8_t>(ranks, kE5m2, kSum, {0x7b, 0x70}, 0x7b);  // 57344 + 8192
  check_all_reduced<uint8_t>(ranks, kE5m2, kSum, {0x7b, 0x7b}, 0x7b);
  check_all_reduced<uint8_t>(ranks, kE5m2, kSum, {0xfb, 0xfb}, 0xfb);
}

}  // namespace
}  // namespace mscclc::nccl::testing
