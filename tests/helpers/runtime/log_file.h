// For tests: the runtime's log, in a file.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "ir/support/read_file.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/log.h"

namespace mscclc::testing {

/// A log that goes to a file as long as this lives, and not where the environment says.
class LogFile {
 public:
  explicit LogFile(Environment::Values values) {
    const char* folder = std::getenv("TEST_TMPDIR");
    pattern_ = (folder == nullptr ? std::string("/tmp") : std::string(folder)) + "/log-%h-%p";
    values["MSCCLC_DEBUG_FILE"] = pattern_;
    reset_log();  // of communicators before it
    started_ = start_log(Environment(std::move(values)), diagnostics_);
  }
  ~LogFile() {
    reset_log();
    ::unlink(name().c_str());
  }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  bool started() const { return started_; }
  /// Why it has not started.
  std::string error() const {
    return diagnostics_.all().empty() ? "" : diagnostics_.all()[0].message;
  }
  std::string name() const { return expand_file_name(pattern_, std::nullopt); }
  /// All that was logged so far.
  std::string text() const { return read_file(name()).value_or(""); }
  /// How many lines end like this.
  size_t lines(const std::string& end) const {
    const std::string all = text(), line = end + "\n";
    size_t count = 0;
    for (size_t at = all.find(line); at != std::string::npos; at = all.find(line, at + 1)) ++count;
    return count;
  }

 private:
  std::string pattern_;
  Diagnostics diagnostics_;
  bool started_ = false;
};

}  // namespace mscclc::testing
