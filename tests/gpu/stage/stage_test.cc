// How gpu_check's parts go through their items, on ranks without GPUs.
#include "tests/gpu/stage/stage.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/helpers/runtime/longer_times.h"
#include "tests/helpers/runtime/shared_value.h"

namespace mscclc::testing {
namespace {

using Failed = std::vector<std::pair<size_t, std::string>>;

StageOptions options_with(bool threads) {
  StageOptions options;
  options.threads = threads;
  options.host = true;
  return options;
}

}  // namespace

TEST_CASE("gpu_check goes on with new ranks after an item that goes wrong on one of them") {
  for (const bool threads : {false, true}) {
    INFO(threads);
    SharedValue done;
    Failed failed;
    const Tally tally = run_series(
        options_with(threads), 6,
        [&](Communicator& communicator, size_t item) -> std::string {
          ++done.at();
          return item % 3 == 1 && communicator.rank() == 1 ? "no" : "";
        },
        [&](size_t item, const std::string& fault) { failed.emplace_back(item, fault); });
    CHECK(tally.right == 4);
    CHECK(tally.wrong == 2);
    CHECK(tally.late == 0);
    CHECK(done.at() == 12);  // each item once on both ranks
    REQUIRE(failed.size() == 2);
    CHECK(failed[0].first == 1);
    CHECK(failed[1].first == 4);
    CHECK(failed[1].second.find("rank 1: no") != std::string::npos);
  }
}

TEST_CASE("gpu_check names the item in which a rank dies") {
  Failed failed;
  const Tally tally = run_series(
      options_with(false), 3,
      [](Communicator& communicator, size_t item) -> std::string {
        if (item == 1 && communicator.rank() == 0) raise(SIGKILL);
        return "";
      },
      [&](size_t item, const std::string& fault) { failed.emplace_back(item, fault); });
  CHECK(tally.right == 2);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].first == 1);
  CHECK(failed[0].second.find("killed by signal 9") != std::string::npos);
}

TEST_CASE("gpu_check begins no item when its time is over") {
  const auto begins_some = [](int factor) {
    StageOptions options = options_with(true);
    options.seconds = factor;
    const Tally tally = run_series(
        options, 1000,
        [&](Communicator&, size_t) -> std::string {
          std::this_thread::sleep_for(factor * std::chrono::milliseconds(300));
          return "";
        },
        [](size_t, const std::string&) {});
    CHECK(tally.right < 10);
    CHECK(tally.wrong == 0);
    CHECK(tally.right + tally.late == 1000);
    return tally.right >= 1;
  };
  CHECK(right_in_longer_times(begins_some));
}

}  // namespace mscclc::testing
