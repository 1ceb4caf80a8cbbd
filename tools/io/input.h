// What subcommands that read a program have in common: FILE, -D and --diagnostics, the three kinds
// of input, and the printing of diagnostics.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/fix/fix.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "plans/format/proof_record.h"
#include "tools/io/command_line.h"
#include "tools/io/library.h"

namespace mscclc {

struct InputOptions {
  std::string file;
  std::vector<std::string> defines;
  std::string diagnostics = "text";
  std::optional<uint64_t> columns = {};  ///< of a row: what --columns says
  const CommandLine* line = nullptr;     ///< which says what is written; nullptr: nothing

  /// Gives a parameter what an option says: `option` is that, "--ranks", and `what` of what it is a
  /// number. "--ranks and -D R=4 both say how many ranks there are", if -D gives it, too.
  std::optional<Error> define(const std::string& parameter, uint64_t value, const char* option,
                              const char* what);
};

/// Declares FILE, -D and --diagnostics.
void add_input_options(CommandLine& line, CLI::App& app, InputOptions& options);
/// Declares -D alone.
void add_define_option(CommandLine& line, CLI::App& app, InputOptions& options);
/// Declares --columns, which load() keeps to.
void add_columns_option(CommandLine& line, CLI::App& app, InputOptions& options);
/// Declares --diagnostics alone.
void add_diagnostics_option(CommandLine& line, CLI::App& app, std::string& format);

/// Declares --target; `without` says what it means to leave it out, `what` what its limits are for.
void add_target_option(CommandLine& line, CLI::App& app, std::string& target, const char* without,
                       const char* what = "whose limits the plan must keep");

/// Declares --order, one of the contracts about the bits of sums; `what` says what it does.
void add_order_option(CommandLine& line, CLI::App& app, std::string& order, const char* what);

enum class InputKind { program, ir, plan };

/// One input on its way to IR, with the text and the diagnostics that belong to it.
class Input {
 public:
  explicit Input(const InputOptions& options) : options_(options) {}

  /// Reads the file (a program, IR text, or a plan: JSON begins with '{') and brings it to IR;
  /// programs go through `passes`. Returns kFine, or prints why not and returns the exit code.
  [[nodiscard]] int load(const PassOptions& passes) { return load(passes, false, nullptr); }
  /// The same of what is to be written: the program names its files relative to its folder, and a
  /// plan must pass the gate, if there is one.
  [[nodiscard]] int load_to_write(const PassOptions& passes, ProofGate* gate) {
    return load(passes, true, gate);
  }
  /// Prints diagnostics that came since the last call, to standard error: as JSON with a patch of
  /// the program, if there is one.
  void report();
  /// Looks for a patch of the program that load() has read. REQUIRES: it is one.
  FixResult find_fix() const;
  /// The first error that has been printed; empty if there is none.
  const std::string& first_error() const { return first_error_; }
  /// report() adds to `text` instead, which must outlive this.
  void report_into(std::string& text) { report_into_ = &text; }
  /// Prints "mscclc: <message>" and returns kUsage.
  static int usage(const std::string& message);
  static int usage(const Error& error) { return usage(error.text()); }
  /// kFine; or, if that was not done, what usage() does.
  static int code_of(const Result<void>& done) { return done ? kFine : usage(done.error()); }

  Program program;
  std::optional<ProofRecord> record;  ///< of a plan: what it claims of itself
  InputKind kind = InputKind::program;
  Sources sources;
  Diagnostics diagnostics;

 private:
  [[nodiscard]] int load(const PassOptions& passes, bool relative_names, ProofGate* gate);
  static Result<void> split_defines(const std::vector<std::string>& defines,
                                    FrontEndOptions& front);
  int unusable(const std::string& message);
  int load_plan(std::string_view json, const FrontEndOptions& front, const PassOptions& passes,
                ProofGate* gate);
  int load_text(NamedText input, const FrontEndOptions& front, const PassOptions& passes,
                ProofGate* gate);

  int fix_columns();
  void offer_patches();

  const InputOptions& options_;
  FrontEndOptions front_;  ///< with which a program has been read, and the passes
  PassOptions passes_;
  std::string first_error_;
  std::string* report_into_ = nullptr;
};

/// The text of diagnostics in the format that --diagnostics chose.
std::string diagnostics_text(const Diagnostics& diagnostics, const Sources& sources,
                             const std::string& format);

/// Prints such a text to standard error, on a terminal with colours.
void put_diagnostics(const std::string& text, const std::string& format);

/// Prints `diagnostics` to standard error in the format that --diagnostics chose.
void print_diagnostics(const Diagnostics& diagnostics, const Sources& sources,
                       const std::string& format);

}  // namespace mscclc
