#include "executor/cost/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/cost/model.h"

namespace mscclc::cost {

std::optional<Machine> machine_for(const Program& program, const std::string& name_or_path,
                                   Diagnostics& diagnostics) {
  if (!name_or_path.empty()) return find_machine(name_or_path, diagnostics);
  std::vector<Machine> machines = builtin_machines();
  std::ranges::stable_sort(machines, {},
                           [](const Machine& m) { return std::pair(m.ranks(), m.nodes); });
  Diagnostics unheard;
  for (const Machine& machine : machines) {
    if (fits(program, machine, unheard)) return machine;
  }
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  for (Machine machine : machines) {
    if (machine.nodes > 1) continue;
    resize(machine, ranks);
    if (fits(program, machine, unheard)) return machine;
  }
  if (ranks > machines.back().ranks()) resize(machines.back(), ranks);
  return machines.back();
}

void resize(Machine& machine, uint32_t ranks) {
  const uint32_t before = machine.ranks();
  if (machine.nodes == 1) {
    machine.gpus = ranks;
  } else {
    machine.nodes = std::max(1u, (ranks + machine.gpus - 1) / machine.gpus);
  }
  if (machine.ranks() != before) {
    machine.name += fmt::format(" with {} GPUs", machine.ranks());
  }
}

}  // namespace mscclc::cost
