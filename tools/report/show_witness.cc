#include "tools/report/show_witness.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/simulator/schedules/witness.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/json_text.h"

namespace mscclc {
namespace {

std::vector<Suspect> suspects_of(const std::vector<Unordered>& unordered) {
  std::vector<Suspect> suspects;
  for (const Unordered& pair : unordered) {
    const auto place = [](const Unordered::OpInCall& p) {
      return Suspect::OpOfCall{p.rank, p.op, p.call};
    };
    suspects.push_back({place(pair.first), {}});
    if (pair.second) suspects.back().second = place(*pair.second);
  }
  return suspects;
}

/// One object on one line: `schedule` is JSON text, or empty if there is none.
void put_object(const ShowWitness& show, const std::string& message, std::string schedule) {
  std::replace(schedule.begin(), schedule.end(), '\n', ' ');
  const auto put_line = show.on_output ? put : put_error;
  put_line(fmt::format("{{\"severity\":\"note\",\"code\":\"{}witness\",\"message\":{}{}}}\n",
                       schedule.empty() ? "no-" : "", json_quoted(message),
                       schedule.empty() ? "" : ",\"schedule\":" + schedule));
}

bool show_found(const std::optional<Witness>& witness, const ShowWitness& show) {
  if (!witness) {
    show_no_witness("every schedule that was tried gave right results, which proves nothing", show);
    return true;
  }
  const std::string schedule = write_schedule(witness->schedule);
  const std::string message =
      fmt::format("witness: '{} --schedule {}' {}", show.replay, show.path,
                  witness->status == RunStatus::hung ? "hangs" : "gives wrong data");
  if (const auto written = write_file(show.path, schedule); !written) {
    Input::usage(written.error());
    return false;
  }
  show.json ? put_object(show, message, schedule) : put(message + "\n");
  return true;
}

}  // namespace

bool show_witness(const Program& program, const std::vector<Unordered>& unordered,
                  const ShowWitness& show) {
  return show_found(find_witness(program, suspects_of(unordered)), show);
}

bool show_witness(std::span<const PlacedPlan> plans, const RefusedCalls& refused,
                  const ShowWitness& show) {
  return show_found(find_witness(plans, refused.order, suspects_of(refused.unordered)), show);
}

void show_no_witness(const std::string& why, const ShowWitness& show) {
  const std::string message = "no witness: " + why;
  show.json ? put_object(show, message, "") : put(message + "\n");
}

}  // namespace mscclc
