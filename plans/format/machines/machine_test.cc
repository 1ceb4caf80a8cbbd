#include "plans/format/machines/machine.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

namespace mscclc {
namespace {

Machine any_machine() { return builtin_machines().front(); }

/// The message about a machine file in which `from` is replaced.
std::string refused_machine(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
  Diagnostics diagnostics;
  CHECK_FALSE(read_machine(text, "m.json", diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  return diagnostics.all()[0].path + ": " + diagnostics.all()[0].message;
}

}  // namespace

TEST_CASE("the built-in machines, each with its sources") {
  std::string names;
  for (const Machine& machine : builtin_machines()) {
    names += machine.name + (machine.measured ? " measured, " : " published, ");
    CHECK_FALSE(machine.sources.empty());
  }
  CHECK(names ==
        "2x8xH100 published, 2xH100 measured, 2xH200 measured, 4x8xH100 published, 4xH200 "
        "measured, 8xH100 published, 8xH200 published, ");
}

TEST_CASE("a machine's text gives the machine back") {
  for (const Machine& machine : builtin_machines()) {
    Diagnostics diagnostics;
    const auto read = read_machine(machine_text(machine), "m.json", diagnostics);
    REQUIRE(read);
    CHECK(machine_text(*read) == machine_text(machine));
    CHECK(read->ranks() == machine.nodes * machine.gpus);
  }
}

TEST_CASE("a file is a machine, by its path") {
  const char* folder = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/machine.json";
  Machine machine = any_machine();
  machine.name = "mine";
  machine.nvlink_latency_ns = 1234;
  std::ofstream(path) << machine_text(machine);
  Diagnostics diagnostics;
  const auto found = find_machine(path, diagnostics);
  REQUIRE(found);
  CHECK(found->name == "mine");
  CHECK(found->nvlink_latency_ns == 1234);
}

TEST_CASE("a machine that is not there") {
  Diagnostics diagnostics;
  CHECK_FALSE(find_machine("4xH20", diagnostics));
  const std::string text = render_text(diagnostics, Sources());
  CHECK(text.find("'4xH20' is no built-in machine and no file that can be read") !=
        std::string::npos);
  CHECK(text.find("did you mean '4xH200'?") != std::string::npos);
}

TEST_CASE("what is wrong with a machine file is said with its place") {
  Machine machine = any_machine();
  machine.name = "mine";
  machine.nodes = machine.gpus = 7;
  machine.step_sync_ns = 55;
  machine.switch_latency_ns = 333;
  machine.memory_mb_per_s = 77;
  const std::string text = machine_text(machine);
  CHECK(refused_machine(text, "\"mine\"", "\"\"") == "m.json: name: it must not be empty");
  CHECK(refused_machine(text, "\"nodes\": 7", "\"nodes\": 0") ==
        "m.json: nodes: 0 is too small; at least 1");
  CHECK(refused_machine(text, "\"nodes\": 7", "\"nodes\": 65537") ==
        "m.json: nodes: 65537 is too large; at most 65536");
  CHECK(refused_machine(text, "\"nodes\": 7", "\"nodes\": 1.5") ==
        "m.json: nodes: expected a number, found a real number");
  CHECK(refused_machine(text, "\"nodes\": 7,", "") == "m.json: 'nodes' is missing");
  CHECK(refused_machine(text, "\"nodes\"", "\"nodse\": 1, \"nodes\"") ==
        "m.json: a machine has no 'nodse' here; did you mean 'nodes'?");
  CHECK(refused_machine(text, "\"links\": \"", "\"links\": \"x") ==
        "m.json: links: expected \"nvlink\" or \"pcie\"");
  CHECK(refused_machine(text, "\"origin\": \"", "\"origin\": \"x") ==
        "m.json: origin: expected \"measured\" or \"published\"");
  CHECK(refused_machine(text, "\"sync_ns\": 55", "\"sync_ns\": -1") ==
        "m.json: step.sync_ns: expected a number, found a negative number");
  CHECK(refused_machine(text, "\"sync_ns\": 55", "\"sync\": 55") ==
        "m.json: step: 'sync_ns' is missing");
  CHECK(refused_machine(text, "\"latency_ns\": 333", "\"latency_ns\": 333, \"x\": 1") ==
        "m.json: switch: a machine has no 'x' here");
  CHECK(refused_machine(text, "\"mb_per_s\": 77", "\"mb_per_s\": 0") ==
        "m.json: memory.mb_per_s: 0 is too small; at least 1");
  CHECK(refused_machine(text, text, "[]") == "m.json: expected an object, found an array");
}

}  // namespace mscclc
