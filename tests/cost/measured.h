// What calls of the library were measured to take (measured.csv, from docs/performance.md), and
// plans that were measured against one another (pairs.csv), as plans that can be predicted.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/cost/model.h"
#include "ir/program/program.h"

namespace mscclc::testing {

/// A measured call.
struct MeasuredCall {
  std::string machine, collective, program;  ///< program: "allreduce_push:R=4 B=128"
  uint64_t bytes = 0;
  double us = 0;
};
/// Two plans that were measured for one call.
struct MeasuredPair {
  MeasuredCall first, second;
};

/// A probe of `mscclc calibrate`, timed twice.
struct MeasuredProbe {
  std::string name;
  uint64_t bytes = 0;
  double first_us = 0, second_us = 0;
};

/// Reads the tables. Throws what is wrong with a line.
std::vector<MeasuredCall> read_measured(const std::filesystem::path& csv);
std::vector<MeasuredPair> read_pairs(const std::filesystem::path& csv);
std::vector<MeasuredProbe> read_probes(const std::filesystem::path& csv);

/// A program of the library with parameters, compiled, and its model.
class MeasuredPlan {
 public:
  /// Throws what is wrong with it.
  MeasuredPlan(const std::filesystem::path& plans, const std::string& program);
  /// Microseconds of a call, f32, back to back. Throws what is wrong with it.
  double predict(uint64_t bytes, const Machine& machine);
  /// All of the prediction.
  cost::Timeline timeline(uint64_t bytes, const Machine& machine);

 private:
  std::unique_ptr<Program> program_;
  std::unique_ptr<cost::Model> model_;
};

}  // namespace mscclc::testing
