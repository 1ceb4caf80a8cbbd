// What may serve a call: rows of the library, and the same programs with other parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/cost/model.h"
#include "plans/format/library_table.h"
#include "plans/format/machines/machine.h"

namespace mscclc::tune {

/// "allreduce_push:B=128,T=512"
std::string text_of(const LibraryChoice& choice);

/// What candidates depend on besides the call.
struct Limits {
  uint32_t max_blocks = 0;  ///< thread blocks of a rank; 0: any number
  bool lines = true;        ///< packets of 128 bytes arrive whole: NVLink
};

/// The row with each of its parameters changed in turn: halved and doubled numbers of blocks,
/// threads and pieces, other formats of packets. Some may not compile. `fine`: numbers that are
/// nearer, too.
std::vector<LibraryRow> neighbours(const LibraryRow& row, const LibraryCall& call,
                                   const Limits& limits, bool fine = false);

/// The row with a parameter more, of those that it does not name. Most do not compile.
std::vector<LibraryRow> extended(const LibraryRow& row);

/// The types and links that a row's choice is for, by the format of its packets, if it has one.
void restrict_by_format(LibraryRow& row);

/// The text of a program of the library; nullopt: there is none.
using ProgramText = std::function<std::optional<std::string>(const std::string& program)>;

/// Plans of candidates, compiled once, and what the model says that they take.
class Plans {
 public:
  Plans(ProgramText read, Machine prior, const Limits& limits)
      : read_(std::move(read)), prior_(std::move(prior)), limits_(limits) {}

  struct Plan {
    std::shared_ptr<const Program> program;  ///< nullptr: it cannot serve the call
    std::shared_ptr<cost::Model> model;
    using Predicted = std::map<std::pair<uint64_t, Dtype>, std::optional<double>>;
    std::shared_ptr<Predicted> predicted;  ///< so far, by bytes
  };
  const Plan& of(const LibraryChoice& choice, const LibraryCall& call);
  /// Nanoseconds of a call, as predicted; nullopt: it cannot serve the call.
  std::optional<double> predict(const LibraryChoice& choice, const LibraryCall& call);

 private:
  Plan compiled(const LibraryChoice& choice, const LibraryCall& call) const;

  const ProgramText read_;
  const Machine prior_;
  const Limits limits_;
  std::map<std::string, Plan> plans_;
};

}  // namespace mscclc::tune
