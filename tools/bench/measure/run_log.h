// What a run reports while it goes on: lines on standard output and in the record, by rank 0 only.
#pragma once

#include <cstdint>
#include <string>

#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "tools/bench/measure/contender.h"

namespace mscclc::bench {

class RunLog {
 public:
  /// Lines of record.h are appended to `record_file`. `gpus`: that the ranks have in all.
  RunLog(const Communicator& communicator, uint32_t gpus, int record_file)
      : communicator_(communicator), gpus_(gpus), record_file_(record_file) {}

  /// machine_text()
  std::string machine() const;
  void print(const std::string& text) const;
  void append(const std::string& line) const;
  void start_up(const std::string& what, double milliseconds, bool show = true) const;
  void file_size(const std::string& what, const std::string& path) const;
  /// `at`: the calls in which `who` takes no part; nullptr: none at all.
  void leave_out(const std::string& who, const std::string& collective, const std::string& why,
                 const Workload* at = nullptr) const;

 private:
  const Communicator& communicator_;
  const uint32_t gpus_;
  const int record_file_;
};

/// Collective: the sum over all ranks. False: reported.
[[nodiscard]] bool sum_over_ranks(Communicator& communicator, uint64_t& value,
                                  Diagnostics& diagnostics);
/// Collective: time by time the largest of all ranks. False: reported.
[[nodiscard]] bool slowest_of_ranks(Communicator& communicator, std::vector<double>& times,
                                    Diagnostics& diagnostics);

}  // namespace mscclc::bench
