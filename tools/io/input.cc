#include "tools/io/input.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>
#include <new>
#include <sstream>

#include "ir/verify/row_faults.h"
#include "plans/format/plan_json.h"
#include "runtime/support/environment/environment.h"
#include "tools/io/colours.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

bool looks_like_json(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  return at != std::string_view::npos && text[at] == '{';
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

/// Cuts the parameters off a plan's name as explain and tune write it: of
/// "allreduce_push:R=4,F=LL128" leaves "allreduce_push", and gives "R=4" and "F=LL128". A value may
/// be a list: "counts=1,0,2".
std::vector<std::string> take_parameters(std::string& name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view rest = std::string_view(name).substr(std::min(colon + 1, name.size()));
  if (!is_word(name.substr(0, colon)) || !is_word(rest.substr(0, rest.find('=')))) return {};
  std::vector<std::string> found;
  std::istringstream in{std::string(rest)};
  for (std::string part; std::getline(in, part, ',');) {
    if (part.find('=') == part.npos && !found.empty()) {
      found.back() += "," + part;
    } else {
      found.push_back(part);
    }
  }
  name.resize(colon);
  return found;
}

}  // namespace

std::optional<Error> InputOptions::define(const std::string& parameter, uint64_t value,
                                          const char* option, const char* what) {
  for (const std::string& define : defines) {
    if (!define.starts_with(parameter + "=")) continue;
    return Error{fmt::format("{} and -D {} both say how many {} there are", option, define, what)};
  }
  defines.push_back(fmt::format("{}={}", parameter, value));
  return std::nullopt;
}

void add_diagnostics_option(CommandLine& line, CLI::App& app, std::string& format) {
  const std::vector<std::string> formats = {"text", "json"};
  line.takes(app.add_option("--diagnostics", format,
                            "how errors and warnings are shown on standard error: text (default), "
                            "or json, one object per line")
                 ->type_name("FORMAT")
                 ->check(CLI::IsMember(formats)),
             formats);
}

void add_define_option(CommandLine& line, CLI::App& app, InputOptions& options) {
  options.line = &line;
  line.takes_text(app.add_option("-D", options.defines,
                                 "set a parameter of the program, as in -D R=16 or "
                                 "-D counts=1,0,2; may be repeated")
                      ->type_name("NAME=VALUE")
                      ->allow_extra_args(false));
}

void add_columns_option(CommandLine& line, CLI::App& app, InputOptions& options) {
  line.takes_number<uint64_t>(
      app.add_option(
             "--columns", options.columns,
             "of a row: -D N=..., where the program has N, or any multiple of some where it "
             "says 'columns: 64..'")
          ->type_name("N"));
}

void add_target_option(CommandLine& line, CLI::App& app, std::string& target, const char* without,
                       const char* what) {
  std::vector<std::string> names;
  for (const Target& t : builtin_targets()) names.push_back(t.name);
  line.takes(app.add_option("--target", target,
                            fmt::format("{}: {}, or a target file (default: {})", what,
                                        fmt::join(names, ", "), without))
                 ->type_name("TARGET"),
             names);
}

void add_order_option(CommandLine& line, CLI::App& app, std::string& order, const char* what) {
  const std::vector<std::string> names = {
#define ORDER(name, summary) #name,
#include "ir/contract/orders.def"
#undef ORDER
  };
  line.takes(app.add_option("--order", order, fmt::format("{}: {}", what, sum_order_names()))
                 ->type_name("ORDER")
                 ->check(CLI::IsMember(names)),
             names);
}

void add_input_options(CommandLine& line, CLI::App& app, InputOptions& options) {
  app.add_option("FILE", options.file,
                 "a program (.mscl), IR text or a plan (.json); the name of a program of the "
                 "library, also with parameters, as in allreduce_push:R=4,B=32; '-' reads "
                 "standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options);
  add_diagnostics_option(line, app, options.diagnostics);
}

namespace {

/// Is nothing wrong but what -D says?
bool only_defines_are_wrong(const Diagnostics& diagnostics, const Sources& sources) {
  return std::ranges::all_of(diagnostics.all(), [&](const Diagnostic& d) {
    const bool in_define = d.span.valid() && d.span.file < sources.size() &&
                           sources.file(d.span.file).name.starts_with("-D ");
    return d.severity == Severity::warning || d.code == "define" || in_define;
  });
}

/// A program that is to be written names its files as seen from its folder; errors about it name
/// them as the caller does.
Diagnostics with_folder(const Diagnostics& diagnostics, const Sources& sources) {
  const std::string main = sources.size() == 0 ? "" : sources.file(0).name;
  const std::string folder = main.substr(0, main.rfind('/') + 1);
  const auto rename = [&](std::string& file) {
    for (FileId id = 0; id < sources.size() && !file.empty(); ++id) {
      if (sources.file(id).name != folder + file) continue;
      file = sources.file(id).name;
      return;
    }
  };
  Diagnostics named;
  for (Diagnostic d : diagnostics.all()) {
    rename(d.file);
    for (Note& note : d.notes) rename(note.file);
    named.add(std::move(d));
  }
  return named;
}

}  // namespace

std::string diagnostics_text(const Diagnostics& diagnostics, const Sources& sources,
                             const std::string& format) {
  if (diagnostics.all().empty()) return "";
  return format == "json" ? render_json(diagnostics, sources) : render_text(diagnostics, sources);
}

void print_diagnostics(const Diagnostics& diagnostics, const Sources& sources,
                       const std::string& format) {
  put_diagnostics(diagnostics_text(diagnostics, sources, format), format);
}

void put_diagnostics(const std::string& text, const std::string& format) {
  put_error(format == "json" || !terminal_has_colours() ? text : with_colours(text));
}

int Input::usage(const std::string& message) {
  put_error(fmt::format("mscclc: {}\n", message));
  return kUsage;
}

/// A usage() that is remembered.
int Input::unusable(const std::string& message) {
  first_error_ = message;
  return usage(message);
}

void Input::report() {
  if (kind == InputKind::program) diagnostics = with_folder(diagnostics, sources);
  for (const Diagnostic& d : diagnostics.all()) {
    if (first_error_.empty() && d.severity == Severity::error) first_error_ = d.message;
  }
  if (options_.diagnostics == "json") offer_patches();
  const std::string text = diagnostics_text(diagnostics, sources, options_.diagnostics);
  diagnostics = Diagnostics();
  if (report_into_ == nullptr) {
    put_diagnostics(text, options_.diagnostics);
  } else {
    *report_into_ += text;
  }
}

void Input::offer_patches() {
  const bool is_text = kind == InputKind::program && sources.size() > 0;
  if (is_text && diagnostics.has_errors()) {
    offer_patch(diagnostics, sources, 0, front_, passes_);
  }
}

FixResult Input::find_fix() const {
  const SourceFile& source = sources.file(0);
  return mscclc::find_fix(source.name, source.text, front_, passes_);
}

Result<void> Input::split_defines(const std::vector<std::string>& defines, FrontEndOptions& front) {
  for (const std::string& define : defines) {
    const size_t at = define.find('=');
    if (at == std::string::npos || at == 0) {
      return Error{fmt::format("-D '{}' is not of the form NAME=VALUE", define)};
    }
    const std::string name = define.substr(0, at);
    const auto same = [&](const auto& given) { return given.first == name; };
    if (std::ranges::any_of(front.defines, same)) {
      return Error{fmt::format("-D sets '{}' twice", name)};
    }
    front.defines.emplace_back(name, define.substr(at + 1));
  }
  return {};
}

int Input::load(const PassOptions& passes, bool relative_names, ProofGate* gate) {
  FrontEndOptions front;
  front.relative_names = relative_names;
  std::string file = options_.file;
  std::vector<std::string> defines = take_parameters(file);
  InputOptions given = options_;
  const std::string parameter = options_.columns ? columns_parameter(options_.file) : "";
  if (!parameter.empty()) {
    const auto twice = given.define(parameter, *options_.columns, "--columns", "columns");
    if (twice) return unusable(twice->text());
  }
  defines.insert(defines.end(), given.defines.begin(), given.defines.end());
  if (const auto split = split_defines(defines, front); !split) {
    return unusable(split.error().text());
  }
  auto input = read_program(file);
  if (!input) return unusable(input.error().text());
  front.read_file = reader_of_imports(*input);
  if (looks_like_json(input->text)) {
    kind = InputKind::plan;
    if (!front.defines.empty()) return unusable("the parameters and ranks of a plan are fixed");
  }
  warn_of_unknown_once(Environment::of_process(), diagnostics);
  int code = kWrongProgram;
  try {
    code = kind == InputKind::plan ? load_plan(input->text, front, passes, gate)
                                   : load_text(*std::move(input), front, passes, gate);
  } catch (const std::bad_alloc&) {
    diagnostics.error("memory", {},
                      fmt::format("'{}' takes more memory to compile than there is; fewer ranks, "
                                  "thread blocks or instances take less",
                                  options_.file));
  }
  // A parameter that does not exist is no fault of the program.
  if (code == kWrongProgram && only_defines_are_wrong(diagnostics, sources)) code = kUsage;
  report();
  if (code == kFine) code = fix_columns();
  if (options_.line == nullptr || code != kFine) return code;
  std::vector<std::string> read = {options_.file};
  for (FileId id = 0; id < sources.size(); ++id) read.push_back(sources.file(id).name);
  const auto error = options_.line->overwrites(read);
  return error ? unusable(error->text()) : code;
}

/// As many as --columns says, where the program takes any multiple of some.
int Input::fix_columns() {
  const Contract& c = program.contract;
  if (!options_.columns || (!c.any_columns && *options_.columns == c.columns)) return kFine;
  const auto fault = mscclc::fix_columns(program, *options_.columns);
  return fault ? unusable("--columns: " + fault->message) : kFine;
}

int Input::load_plan(std::string_view json, const FrontEndOptions& front, const PassOptions& passes,
                     ProofGate* gate) {
  auto loaded = read_plan(json, options_.file, diagnostics, &record);
  if (!loaded) return kWrongProgram;
  program = std::move(*loaded);
  if (!passes.only.empty() && !run_passes(program, passes, diagnostics)) return kWrongProgram;
  if (gate != nullptr && !gate->pass(program, diagnostics)) return kWrongProgram;
  if (front.relative_names) make_names_relative(program, options_.file);
  return kFine;
}

int Input::load_text(NamedText input, const FrontEndOptions& front, const PassOptions& passes,
                     ProofGate* gate) {
  front_ = front;
  passes_ = passes;
  const FileId file = sources.add(std::move(input.name), std::move(input.text));
  auto compiled = compile(sources, file, front, passes, diagnostics, gate);
  if (!compiled) return kWrongProgram;
  program = std::move(*compiled);
  return kFine;
}

}  // namespace mscclc
