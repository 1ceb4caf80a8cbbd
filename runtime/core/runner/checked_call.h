// One rank's call of a collective with test values: fills its input, launches it, and checks its
// output against the collective's definition. What tests on any device are made of: they launch
// calls eagerly or in graphs, one after the other or several at once.
//
//   auto memory = CallerMemory::make(communicator, plan, {.max_bytes = 1 << 20}, diagnostics);
//   CheckedCall call(communicator, *executable, *memory, spec);
//   call.bind(diagnostics);
//   call.fill(7, diagnostics);               // data of call 7
//   call.launch(stream, diagnostics);        // then wait for the stream
//   call.compare(7, diagnostics);            // call.wrong() elements were wrong so far
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/oracle/output_check.h"
#include "executor/oracle/row_check.h"
#include "executor/simulator/run_spec.h"
#include "ir/program/program.h"
#include "runtime/api/bootstrap.h"
#include "runtime/api/communicator.h"
#include "runtime/api/device.h"
#include "runtime/core/runner/early_flags.h"

namespace mscclc {

struct CallerMemoryOptions {
  uint64_t max_bytes = 0;  ///< the largest message
  /// How far into its allocation a buffer begins; may differ between ranks.
  uint64_t input_offset = 0, output_offset = 0;
  bool registered = false;  ///< lets peers map it: making it is collective
};

/// Input, output, externals and flags of one rank in memory of its device, and what they hold as
/// the host sees them. With flags it is for one executable.
class CallerMemory {
 public:
  /// The communicator must outlive it. nullptr: reported.
  [[nodiscard]] static std::unique_ptr<CallerMemory> make(Communicator& communicator,
                                                          const Program& plan,
                                                          const CallerMemoryOptions& options,
                                                          Diagnostics& diagnostics);

  uint8_t* device(uint32_t side) const { return sides_[side].memory->data() + sides_[side].offset; }
  uint8_t* mirror(uint32_t side) { return sides_[side].mirror.data(); }
  uint8_t* device_external(uint32_t e) const { return externals_[e].memory->data(); }
  std::vector<uint8_t>& mirror_external(uint32_t e) { return externals_[e].mirror; }
  EarlyFlags& flags() { return *flags_; }

 private:
  struct Buffer {
    std::unique_ptr<Memory> memory;
    std::unique_ptr<RegisteredBuffer> registered;
    uint64_t offset = 0;
    std::vector<uint8_t> mirror;
  };
  bool make_externals(Communicator& communicator, const Program& plan, uint64_t max_bytes,
                      Diagnostics& diagnostics);

  Buffer sides_[2];
  std::vector<Buffer> externals_;  ///< by external of the plan
  std::optional<EarlyFlags> flags_;
};

class CheckedCall {
 public:
  /// `spec`: size, type, reduction, accumulation and placement of the call. All that is given must
  /// outlive it; calls that share memory must not run at once.
  CheckedCall(Communicator& communicator, Executable& executable, CallerMemory& memory,
              const RunSpec& spec);
  CheckedCall(const CheckedCall&) = delete;
  CheckedCall& operator=(const CheckedCall&) = delete;

  /// Collective if the executable's binds are. Before all else.
  [[nodiscard]] bool bind(Diagnostics& diagnostics);
  /// Writes the input of call `number` and poisons the output; waits.
  [[nodiscard]] bool fill(uint64_t number, Diagnostics& diagnostics);
  [[nodiscard]] bool launch(StreamHandle stream, Diagnostics& diagnostics);
  /// Reads the output of call `number`, which has ended, and counts what is wrong. False: it could
  /// not be read.
  [[nodiscard]] bool compare(uint64_t number, Diagnostics& diagnostics);

  /// Copies between host memory and the device: what a call reads, and what it has written, with
  /// other data than fill() gives. `from` and `to` hold bytes() of that side.
  [[nodiscard]] bool write_input(const uint8_t* from, Diagnostics& diagnostics);
  [[nodiscard]] bool read_output(uint8_t* to, Diagnostics& diagnostics);
  uint64_t bytes(uint32_t side) const { return bytes_[side]; }

  uint64_t wrong() const { return check_->wrong() + (rows_ ? rows_->wrong() : 0); }
  /// Adds an error if elements were wrong.
  void report(Diagnostics& diagnostics) const {
    check_->report(diagnostics);
    if (rows_) rows_->report(diagnostics, "");
  }
  /// BoundCall::has_compiled_kernel().
  bool has_compiled_kernel() const { return binding_.has_compiled_kernel(); }
  uint64_t message_bytes() const { return message_bytes_; }
  bool in_place() const { return in_place_; }

 private:
  void place();
  void place_externals();
  bool has_flags() const;
  bool copy_externals(bool to_device, Diagnostics& diagnostics);

  Communicator& communicator_;
  Executable& executable_;
  CallerMemory& memory_;
  const RunSpec spec_;
  uint64_t message_bytes_ = 0;
  bool in_place_ = false;
  bool shared_ = false;      ///< one buffer lies in the other ...
  uint32_t outer_ = kInput;  ///< ... which is this one
  uint8_t* mirror_[2] = {};
  uint8_t* device_[2] = {};
  uint64_t bytes_[2] = {};
  std::unique_ptr<TestValues> values_;
  std::unique_ptr<OutputCheck> check_;
  std::unique_ptr<RowCheck> rows_;  ///< of a collective of rows, with its externals
  std::vector<CallExternal> externals_;
  std::vector<uint8_t*> external_mirrors_;
  BoundCall binding_;
};

}  // namespace mscclc
