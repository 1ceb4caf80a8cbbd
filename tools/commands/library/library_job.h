// What a job does for a call by a library alone: as a whole, or in pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_registry.h"
#include "tools/io/library.h"

namespace mscclc {

/// A choice, and the bytes of the messages that are made of it; fewer than the call's: it is made
/// of pieces.
struct LibraryPick {
  const LibraryChoice* choice = nullptr;
  uint64_t bytes = 0;
};

/// Calls of so many bytes for which a job does the same.
struct PickedRange {
  uint64_t min = 0, max = 0;  ///< both included
  const LibraryChoice* choice = nullptr;
  std::optional<uint64_t> piece;  ///< bytes; nullopt: they are done as a whole
};

/// What it picks for messages that no plan cuts it reads from the table; for others it needs the
/// plans, and so compiles them, as a job does.
class LibraryJob {
 public:
  /// `library` must outlive it.
  explicit LibraryJob(const Library& library) : library_(library) {}

  /// No choice: there is none. nullopt: reported. Errors: those of PlanProvider::pick().
  std::optional<LibraryPick> pick(const LibraryCall& call, Diagnostics& diagnostics);
  /// The same for all sizes of such a call, smallest first.
  std::optional<std::vector<PickedRange>> ranges(LibraryCall call, Diagnostics& diagnostics);

 private:
  const LibraryChoice* choice_of(LibraryCall call, const PickedPlan& picked) const;

  const Library& library_;
  std::shared_ptr<PlanRegistry> registry_;  ///< made when it is first needed
};

}  // namespace mscclc
