// mscclc doctor: looks for what keeps jobs on this machine from running, or from running fast.
#include <CLI/App.hpp>

#include "tools/doctor/checks.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kDoctorExamples = R"(  mscclc doctor
  mscclc doctor --json | jq '.findings[] | select(.level == "problem")')";

/// Exit codes are those of the checks: 1, as for a wrong program, if there are problems.
int run_doctor(bool json) {
  const doctor::Findings findings = doctor::examine(doctor::this_machine());
  put(json ? doctor::findings_json(findings) : doctor::findings_text(findings));
  return findings.has_problems() ? kWrongProgram : kFine;
}

void doctor_options(CommandLine&, CLI::App& app, bool& json) {
  app.add_flag(
      "--json", json,
      "print one JSON object; the exit code is 1 if there are problems, with it and without");
}

}  // namespace

void add_doctor(CommandLine& line) {
  line.add("doctor", "check this machine: GPUs, containers, limits, network, settings",
           kDoctorExamples, doctor_options, run_doctor);
}

}  // namespace mscclc
