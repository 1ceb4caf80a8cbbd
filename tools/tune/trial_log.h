// What was measured so far, in a file with a line for each trial: a run that was ended goes on from
// there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/support/result.h"
#include "plans/format/library_call.h"

namespace mscclc::tune {

/// A plan for a call, timed once.
struct Trial {
  double ns = 0;         ///< of a call; 0: it could not be made, or was wrong
  uint64_t wrong = 0;    ///< elements
  std::string why = {};  ///< it could not be made: the first error
  bool good() const { return ns > 0 && wrong == 0; }
};

class TrialLog {
 public:
  /// Opens a file, or begins it. `about`: what trials depend on besides the call, such as the
  /// machine and the version; a file that is about something else is refused, and so is one that
  /// holds something else. A last line that was cut off is dropped.
  static Result<TrialLog> open(const std::string& path, const std::string& about);

  /// `pass`: 0 while looking for the fastest, then the number of a comparison.
  const Trial* find(const LibraryCall& call, const std::string& plan, uint32_t pass) const;
  /// Adds a line. False: it could not be written.
  [[nodiscard]] bool add(const LibraryCall& call, const std::string& plan, uint32_t pass,
                         const Trial& trial);
  /// Why a line could not be written; nullopt: all were.
  const std::optional<Error>& error() const { return error_; }
  size_t size() const { return trials_.size(); }

 private:
  std::string path_;
  std::optional<Error> error_;
  std::map<std::string, Trial> trials_;
};

}  // namespace mscclc::tune
