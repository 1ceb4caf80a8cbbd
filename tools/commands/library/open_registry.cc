#include "tools/commands/library/open_registry.h"

#include "runtime/api/builtin_library.h"
#include "tools/io/library.h"

namespace mscclc {

std::shared_ptr<PlanRegistry> open_registry(const std::string& folder, bool follow_environment,
                                            Diagnostics& diagnostics) {
  bool programs = folder.empty();
  if (!programs) {
    const auto library = open_library(folder, diagnostics);
    if (!library) return nullptr;
    for (const LibraryRow& row : library->table.rows()) programs |= row.choice.plan.empty();
  }
  std::shared_ptr<PlanProvider> library;
  if (programs) {
    library = builtin_library({.folder = folder}, diagnostics);
    if (library == nullptr) return nullptr;
  }
  auto registry = PlanRegistry::create(
      {.library = std::move(library), .follow_environment = follow_environment}, diagnostics);
  if (registry == nullptr || programs || registry->add_path(folder, diagnostics)) return registry;
  return nullptr;
}

}  // namespace mscclc
