// What the benchmark measures: plain data that is printed, written to files and read back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mscclc::bench {

/// What a contender is in a comparison.
enum class Role : uint8_t {
  plan,        ///< ours, run by the interpreter
  baseline,    ///< another library: plans are compared with the fastest
  floor,       ///< moves what the collective must move at least, and waits for no rank
  handwritten  ///< the algorithm of a plan as one kernel
};

/// Microseconds of one call. All are of the slowest rank.
struct Times {
  double time = 0;           ///< median over repeats of the mean of a batch of calls back to back
  double p50 = 0;            ///< of units, a few calls each, timed one by one ...
  double p99 = 0;            ///< ... mean of a unit's calls
  double between = 0;        ///< what a call costs between other kernels; 0: not measured
  double between_early = 0;  ///< ... between such that let the next launch begin early
  uint64_t wrong = 0;
  bool checked = false;
};

/// The largest size: beyond it tables and plots would be of no use.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 60;

/// What one contender did at one size.
struct Result {
  std::string collective, dtype, op;  ///< op: "none" where nothing is reduced
  int64_t root = -1;                  ///< -1: the collective has none
  std::string mode;                   ///< "graph" or "eager"
  uint64_t bytes = 0, count = 0, offset = 0;
  uint32_t ranks = 0;
  std::string who;
  Role role = Role::plan;
  std::string ordered_by;  ///< what orders two calls
  std::string between;     ///< the other kernels of Times::between: "2 us"; "": none
  double bus_factor = 1;   ///< bus bandwidth / algorithm bandwidth
  std::optional<Times> out_of_place, in_place;

  bool is_wrong() const {
    return (out_of_place && out_of_place->wrong > 0) || (in_place && in_place->wrong > 0);
  }
  /// The time that the contender is compared by; nothing if it was not measured or is wrong.
  std::optional<double> time(bool in_place_table = false) const {
    const std::optional<Times>& times = in_place_table ? in_place : out_of_place;
    if (!times || times->time <= 0 || times->wrong > 0) return std::nullopt;
    return times->time;
  }
};

/// A contender that does not take part, or no longer.
struct LeftOut {
  std::string who, collective, why;
};

/// A time of starting up, ms, or a size of a file, bytes.
struct StartUp {
  std::string what;
  double milliseconds = 0;
  uint64_t bytes = 0;
};

/// All that one run of the benchmark has found out.
struct Record {
  std::string machine;  ///< "4 x NVIDIA H200"
  std::vector<Result> results;
  std::vector<LeftOut> left_out;
  std::vector<StartUp> start_up;
};

std::string_view name(Role role);
std::optional<Role> find_role(std::string_view name);

/// GB/s (10^9) of bytes in microseconds.
inline double gigabytes_per_second(uint64_t bytes, double microseconds) {
  return microseconds > 0 ? static_cast<double>(bytes) / microseconds / 1e3 : 0;
}

}  // namespace mscclc::bench
