// Predicts the measured calls with each of several machine files, for tests/cost/fit.py:
//
//   predict TABLES PLANS NAME[,NAME...] MACHINE_FILE...
//
// Takes the rows of the built-in machines that are named, whose numbers of nodes and GPUs hold for
// them, and prints a line for each: what was measured, and what each file's figures make of it.
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>

#include "tests/cost/measured.h"

namespace mscclc::testing {
namespace {

int run(int argc, char** argv) {
  const std::filesystem::path folder = argv[1], plans = argv[2];
  Diagnostics diagnostics;
  std::map<std::string, Machine> places;
  std::istringstream names(argv[3]);
  for (std::string name; std::getline(names, name, ',');) {
    places[name] = find_machine(name, diagnostics).value();
  }
  std::vector<Machine> machines;
  for (int i = 4; i < argc; ++i) machines.push_back(find_machine(argv[i], diagnostics).value());
  std::map<std::string, std::unique_ptr<MeasuredPlan>> compiled;
  for (const MeasuredCall& call : read_measured(folder / "measured.csv")) {
    const auto place = places.find(call.machine);
    if (place == places.end()) continue;
    auto& plan = compiled[call.program];
    if (plan == nullptr) plan = std::make_unique<MeasuredPlan>(plans, call.program);
    std::printf("%s %s %llu %s\t%.3f", call.machine.c_str(), call.collective.c_str(),
                static_cast<unsigned long long>(call.bytes), call.program.c_str(), call.us);
    for (Machine& machine : machines) {
      machine.nodes = place->second.nodes;
      machine.gpus = place->second.gpus;
      std::printf("\t%.3f", plan->predict(call.bytes, machine));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace mscclc::testing

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: predict TABLES PLANS NAME[,NAME...] MACHINE_FILE...\n", stderr);
    return 2;
  }
  return mscclc::testing::run(argc, argv);
}
