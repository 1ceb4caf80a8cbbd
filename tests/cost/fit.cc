// Fits the figures of a machine file to measured calls, by descent along one figure at a time:
//
//   bazel run -c opt //tests/cost:fit -- $PWD/tests/cost $PWD/plans 4xH200,2xH200 sweeps [least most]
//
// Begins with the built-in machine that is named first, takes the rows of all that are named, whose
// sizes are in a range, and prints the machine file.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "tests/cost/measured.h"

namespace mscclc::testing {
namespace {

struct Row {
  MeasuredCall call;
  MeasuredPlan* plan;
  const Machine* place;  ///< nodes and GPUs are its own
};

double loss_of(const Row& row, Machine machine) {
  machine.nodes = row.place->nodes;
  machine.gpus = row.place->gpus;
  const double off = std::abs(std::log(row.plan->predict(row.call.bytes, machine) / row.call.us));
  // Rows outside of 15 % count, how far beyond 50 % hardly does.
  return std::min(off, 0.5) + (off > 0.13 ? 0.15 : 0);
}

double loss_of(const std::vector<Row>& rows, const Machine& machine) {
  double sum = 0;
  for (const Row& row : rows) sum += loss_of(row, machine);
  return sum / static_cast<double>(rows.size());
}

/// Tries larger and smaller values of one figure; true if one is better.
bool improve(const std::vector<Row>& rows, const MachineField& field, double step, Machine& machine,
             double& best) {
  const uint64_t old = machine.*field.value;
  for (const double factor : {1 + step, 1 / (1 + step)}) {
    Machine tried = machine;
    const auto value = static_cast<uint64_t>(static_cast<double>(old) * factor + 0.5);
    tried.*field.value = std::clamp(value, field.least, field.most);
    if (tried.*field.value == old) continue;
    const double loss = loss_of(rows, tried);
    if (loss >= best - 1e-5) continue;
    best = loss;
    machine = tried;
    return true;
  }
  return false;
}

void fit(const std::vector<Row>& rows, int sweeps, Machine& machine) {
  double best = loss_of(rows, machine);
  double step = 0.3;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    bool any = false;
    for (const MachineField& field : machine_fields()) {
      for (int again = 0; again < 3 && improve(rows, field, step, machine, best); ++again) {
        any = true;
      }
    }
    std::fprintf(stderr, "sweep %d: %.4f, step %.3f\n", sweep, best, step);
    if (!any) step /= 2;
  }
}

int run(int argc, char** argv) {
  const std::filesystem::path folder = argv[1], plans = argv[2];
  const uint64_t least = argc > 6 ? std::stoull(argv[5]) : 0;
  const uint64_t most = argc > 6 ? std::stoull(argv[6]) : ~uint64_t{0};
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<Machine>> places;
  std::istringstream names(argv[3]);
  for (std::string name; std::getline(names, name, ',');) {
    places.push_back(std::make_unique<Machine>(find_machine(name, diagnostics).value()));
  }
  std::map<std::string, std::unique_ptr<MeasuredPlan>> compiled;
  std::vector<Row> rows;
  for (const MeasuredCall& call : read_measured(folder / "measured.csv")) {
    for (const auto& place : places) {
      if (place->name != call.machine || call.bytes < least || call.bytes > most) continue;
      auto& plan = compiled[call.program];
      if (plan == nullptr) plan = std::make_unique<MeasuredPlan>(plans, call.program);
      rows.push_back({call, plan.get(), place.get()});
    }
  }
  Machine machine = *places.front();
  fit(rows, std::stoi(argv[4]), machine);
  for (const Row& row : rows) {
    Machine placed = machine;
    placed.nodes = row.place->nodes;
    placed.gpus = row.place->gpus;
    const auto start = std::chrono::steady_clock::now();
    const double us = row.plan->predict(row.call.bytes, placed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::fprintf(stderr, "%s %-13s %11llu %9.2f %9.2f %+6.1f %%  %s  (%.3f s)\n",
                 row.call.machine.c_str(), row.call.collective.c_str(),
                 static_cast<unsigned long long>(row.call.bytes), row.call.us, us,
                 100 * (us / row.call.us - 1), row.call.program.c_str(), took.count());
  }
  std::fputs(machine_text(machine).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace mscclc::testing

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: fit TABLES PLANS MACHINE[,MACHINE...] SWEEPS [LEAST MOST]\n", stderr);
    return 2;
  }
  return mscclc::testing::run(argc, argv);
}
