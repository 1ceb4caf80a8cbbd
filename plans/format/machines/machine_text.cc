// Writes machine files.
#include <nlohmann/json.hpp>

#include "plans/format/machines/machine.h"

namespace mscclc {

std::string machine_text(const Machine& machine) {
  nlohmann::ordered_json file = {{"name", machine.name},
                                 {"description", machine.description},
                                 {"origin", machine.measured ? "measured" : "published"},
                                 {"sources", machine.sources},
                                 {"nodes", machine.nodes},
                                 {"gpus", machine.gpus},
                                 {"links", name(machine.links)}};
  for (const MachineField& field : machine_fields()) {
    file[std::string(field.group)][std::string(field.name)] = machine.*field.value;
  }
  return file.dump(2) + "\n";
}

}  // namespace mscclc
