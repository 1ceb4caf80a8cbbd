// mscclc ops: prints the op table, one line an op; more about single ops; or the page docs/ops.md.
#include "ir/ops/ops.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/ops_doc.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kOpsExamples = R"(  mscclc ops
  mscclc ops put reduce_send
  mscclc ops --format=markdown > docs/ops.md)";

struct OpsOptions {
  std::vector<std::string> names;
  std::string format = "text";
};

std::vector<std::string_view> known_ops() {
  std::vector<std::string_view> names;
  for (const OpInfo& op : op_table()) names.push_back(op.name);
  return names;
}

int run_ops(const OpsOptions& options) {
  std::vector<OpKind> ops;
  for (const std::string& name : options.names) {
    const auto kind = find_op(name);
    if (!kind) {
      const std::string near = nearest(name, known_ops());
      put_error(fmt::format("mscclc ops: unknown op '{}'{}\n", name,
                            near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
      return kUsage;
    }
    ops.push_back(*kind);
  }
  if (options.format == "markdown") {
    put(ops_reference());
  } else if (ops.empty()) {
    put(ops_table_text());
  } else {
    put(ops_text(ops));
  }
  return kFine;
}

void ops_options(CommandLine& line, CLI::App& app, OpsOptions& options) {
  const std::vector<std::string_view> names = known_ops();
  line.takes(
      app.add_option("OP", options.names, "show everything about these ops")->type_name("OP"),
      {names.begin(), names.end()});
  const std::vector<std::string> formats = {"text", "markdown"};
  line.takes(app.add_option("--format", options.format,
                            "text (default), or markdown: the whole reference page")
                 ->type_name("FORMAT")
                 ->check(CLI::IsMember(formats)),
             formats);
}

}  // namespace

void add_ops(CommandLine& line) {
  line.add("ops", "show the table of ops, or single ops", kOpsExamples, ops_options, run_ops);
}

}  // namespace mscclc
