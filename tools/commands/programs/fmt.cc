// mscclc fmt: prints programs in canonical form, rewrites them, or checks them.
#include <fmt/format.h>

#include <CLI/App.hpp>

#include "compiler/format/format.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"

namespace mscclc {
namespace {

constexpr const char* kFmtExamples = R"(  mscclc fmt ring.mscl
  mscclc fmt -i mine/*.mscl
  mscclc fmt --check plans/*.mscl
  mscclc fmt - < ring.mscl)";

struct FmtOptions {
  std::vector<std::string> files;
  std::string diagnostics = "text";
  bool check = false, in_place = false;
};

int complain(const std::string& message) {
  put_error(fmt::format("mscclc fmt: {}\n", message));
  return kUsage;
}

int format_file(const std::string& name, const FmtOptions& options) {
  const auto text = read_input(name);
  if (!text) return complain(text.error().text());
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(name, *text);
  const auto formatted = format_program(sources, file, diagnostics);
  print_diagnostics(diagnostics, sources, options.diagnostics);
  if (!formatted) return kWrongProgram;
  if (options.check) {
    if (*formatted == *text) return kFine;
    put(fmt::format("{} is not in canonical form\n", name));
    return kWrongProgram;
  }
  const bool rewrites = options.in_place && name != "-";
  if (rewrites && *formatted == *text) return kFine;
  const auto written = write_file(rewrites ? name : "-", *formatted);
  return written ? kFine : complain(written.error().text());
}

int run_fmt(const FmtOptions& options) {
  if (options.check && options.in_place) return complain("--check changes nothing; leave out -i");
  int worst = kFine;
  for (const std::string& name : options.files) {
    worst = std::max(worst, format_file(name, options));
  }
  return worst;
}

void fmt_options(CommandLine& line, CLI::App& app, FmtOptions& options) {
  app.add_option("FILE", options.files, "programs; '-' reads standard input")
      ->type_name("FILE")
      ->required();
  app.add_flag("--check", options.check,
               "write nothing; name the files that would change, and fail if there are any");
  app.add_flag("-i,--in-place", options.in_place, "rewrite the files");
  add_diagnostics_option(line, app, options.diagnostics);
}

}  // namespace

void add_fmt(CommandLine& line) {
  line.add("fmt", "print programs in canonical form, or rewrite them", kFmtExamples, fmt_options,
           run_fmt);
}

}  // namespace mscclc
