// mscclc ops: prints the op table, one line an op; more about single ops; or the page docs/ops.md.
#include "ir/ops.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "ir/diagnostic.h"
#include "ir/ops_doc.h"
#include "tools/command_line.h"
#include "tools/files.h"

namespace mscclc {
namespace {

struct OpsOptions {
  std::vector<std::string> names;
  std::string format = "text";
};

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (const OpInfo& op : op_table()) names.push_back(op.name);
  return names;
}

std::string operands_of(const OpInfo& op) {
  std::string text(op.dst_text);
  if (op.srcs.count > 0) text += " <- " + std::string(op.src_text);
  return text;
}

void print_table() {
  constexpr const char* kRow = "{:<26}{:<18}{:<15}{}\n";
  put(fmt::format(kRow, "op", "operands", "wire name", "meaning"));
  for (const OpInfo& op : op_table()) {
    put(fmt::format(kRow, op.name, operands_of(op), op.wire, op.summary));
  }
}

int run_ops(const OpsOptions& options) {
  std::vector<OpKind> ops;
  for (const std::string& name : options.names) {
    const auto kind = find_op(name);
    if (!kind) {
      const std::string near = nearest(name, op_names());
      put_error(fmt::format("mscclc ops: unknown op '{}'{}\n", name,
                            near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
      return kUsage;
    }
    ops.push_back(*kind);
  }
  if (options.format == "markdown") {
    put(ops_reference());
  } else if (ops.empty()) {
    print_table();
  } else {
    put(ops_text(ops));
  }
  return kFine;
}

}  // namespace

void add_ops(CommandLine& line) {
  Command& command = line.add("ops", "show the table of ops, or single ops",
                              "  mscclc ops\n"
                              "  mscclc ops put reduce_send\n"
                              "  mscclc ops --format=markdown > docs/ops.md\n");
  auto options = std::make_shared<OpsOptions>();
  const std::vector<std::string_view> names = op_names();
  line.takes(
      command.app->add_option("OP", options->names, "tell all about these ops")->type_name("OP"),
      {names.begin(), names.end()});
  const std::vector<std::string> formats = {"text", "markdown"};
  line.takes(command.app
                 ->add_option("--format", options->format,
                              "text (default), or markdown: the whole reference page")
                 ->type_name("FORMAT")
                 ->check(CLI::IsMember(formats)),
             formats);
  command.run = [options] { return run_ops(*options); };
}

}  // namespace mscclc
