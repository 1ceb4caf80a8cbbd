#include "plans/format/machines/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ir/support/read_file.h"
#include "plans/format/json/json_read.h"

namespace mscclc {
namespace {

/// The files of this folder as string literals, in the order of their names.
constexpr std::string_view kMachineFiles[] = {
#include "plans/format/machines/builtin_machines.inc"
};

constexpr MachineField kFields[] = {
#define FIELD(group, name, least, most, summary) \
  {#group, #name, least, most, summary, &Machine::group##_##name},
#include "plans/format/machines/machine_fields.def"
#undef FIELD
};

constexpr uint64_t kMaxNodes = 65536, kMaxGpus = 1024;

constexpr const char* kCode = "not-a-machine";

/// Reads the members of an object by name. Each is asked for once; those that are left are unknown.
class Object {
 public:
  Object(const JsonReader& reader, NodeId node) : reader_(reader), node_(node) {}

  bool open() {
    if (!reader_.expect(node_, JsonType::object)) return false;
    for (NodeId m = reader_.first(node_); m != reader_.end(node_); m = reader_.next(m)) {
      left_.push_back(m);
    }
    return true;
  }
  /// The member of that name, or a report that it is missing.
  bool take(std::string_view name, NodeId& member) {
    names_.push_back(name);
    const auto at = std::ranges::find_if(left_, [&](NodeId m) { return key(m) == name; });
    if (at == left_.end()) return reader_.fail(node_, fmt::format("'{}' is missing", name));
    member = *at;
    left_.erase(at);
    return true;
  }
  /// Reports the first member that was not asked for.
  bool close() const {
    if (left_.empty()) return true;
    const std::string near = nearest(key(left_.front()), names_);
    return reader_.fail(node_,
                        fmt::format("a machine has no '{}' here{}", key(left_.front()),
                                    near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

 private:
  std::string_view key(NodeId m) const { return reader_.tape().text(reader_.tape()[m].key); }

  const JsonReader& reader_;
  const NodeId node_;
  std::vector<NodeId> left_;
  std::vector<std::string_view> names_;
};

bool read_number(const JsonReader& reader, NodeId node, uint64_t least, uint64_t most,
                 uint64_t& out) {
  if (!reader.number(node, out, most)) return false;
  if (out >= least) return true;
  return reader.fail(node, fmt::format("{} is too small; at least {}", out, least));
}

bool read_count(const JsonReader& reader, Object& root, std::string_view name, uint64_t most,
                uint32_t& out) {
  NodeId node = kNoNode;
  uint64_t count = 0;
  if (!root.take(name, node) || !read_number(reader, node, 1, most, count)) return false;
  out = static_cast<uint32_t>(count);
  return true;
}

bool read_string(const JsonReader& reader, Object& root, std::string_view name, std::string& out) {
  NodeId node = kNoNode;
  std::string_view text;
  if (!root.take(name, node) || !reader.string(node, text)) return false;
  if (text.empty()) return reader.fail(node, "it must not be empty");
  out = text;
  return true;
}

bool read_origin(const JsonReader& reader, Object& root, Machine& machine) {
  NodeId node = kNoNode;
  std::string_view origin;
  if (!root.take("origin", node) || !reader.string(node, origin)) return false;
  machine.measured = origin == "measured";
  if (machine.measured || origin == "published") return true;
  return reader.fail(node, "expected \"measured\" or \"published\"");
}

bool read_sources(const JsonReader& reader, Object& root, Machine& machine) {
  NodeId node = kNoNode;
  if (!root.take("sources", node) || !reader.expect(node, JsonType::array)) return false;
  for (NodeId s = reader.first(node); s != reader.end(node); s = reader.next(s)) {
    std::string_view text;
    if (!reader.string(s, text)) return false;
    machine.sources.emplace_back(text);
  }
  if (!machine.sources.empty()) return true;
  return reader.fail(node, "say where the figures come from");
}

bool read_links(const JsonReader& reader, Object& root, Machine& machine) {
  NodeId node = kNoNode;
  std::string_view text;
  if (!root.take("links", node) || !reader.string(node, text)) return false;
  const std::optional<LinkKind> kind = find_link_kind(text);
  if (!kind) return reader.fail(node, "expected \"nvlink\" or \"pcie\"");
  machine.links = *kind;
  return true;
}

bool read_head(const JsonReader& reader, Object& root, Machine& machine) {
  return read_string(reader, root, "name", machine.name) &&
         read_string(reader, root, "description", machine.description) &&
         read_origin(reader, root, machine) && read_sources(reader, root, machine) &&
         read_count(reader, root, "nodes", kMaxNodes, machine.nodes) &&
         read_count(reader, root, "gpus", kMaxGpus, machine.gpus) &&
         read_links(reader, root, machine);
}

/// Rows of a group follow one another in the table.
bool read_groups(const JsonReader& reader, Object& root, Machine& machine) {
  const std::span<const MachineField> fields = machine_fields();
  for (size_t i = 0; i < fields.size();) {
    NodeId node = kNoNode;
    const std::string_view group = fields[i].group;
    if (!root.take(group, node)) return false;
    Object object(reader, node);
    if (!object.open()) return false;
    for (; i < fields.size() && fields[i].group == group; ++i) {
      NodeId value = kNoNode;
      if (!object.take(fields[i].name, value) ||
          !read_number(reader, value, fields[i].least, fields[i].most, machine.*fields[i].value)) {
        return false;
      }
    }
    if (!object.close()) return false;
  }
  return true;
}

}  // namespace

std::span<const MachineField> machine_fields() { return kFields; }

std::optional<Machine> read_machine(std::string_view text, const std::string& name,
                                    Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, name, diagnostics)) return std::nullopt;
  const JsonReader reader(tape, name, diagnostics, kCode);
  Machine machine;
  Object root(reader, 0);
  if (!root.open() || !read_head(reader, root, machine) || !read_groups(reader, root, machine) ||
      !root.close()) {
    return std::nullopt;
  }
  return machine;
}

const std::vector<Machine>& builtin_machines() {
  static const std::vector<Machine> kMachines = [] {
    std::vector<Machine> machines;
    Diagnostics diagnostics;
    for (const std::string_view text : kMachineFiles) {
      std::optional<Machine> machine = read_machine(text, "built-in machine", diagnostics);
      if (machine) machines.push_back(*std::move(machine));
    }
    return machines;
  }();
  return kMachines;
}

std::optional<Machine> find_machine(const std::string& name_or_path, Diagnostics& diagnostics) {
  std::vector<std::string_view> names;
  for (const Machine& machine : builtin_machines()) {
    if (machine.name == name_or_path) return machine;
    names.push_back(machine.name);
  }
  const std::optional<std::string> text = read_file(name_or_path);
  if (text) return read_machine(*text, name_or_path, diagnostics);
  const int why = errno;
  const std::string near = nearest(name_or_path, names);
  Diagnostic& d = diagnostics.error(
      "unknown-machine", {},
      fmt::format("'{}' is no built-in machine and no file that can be read", name_or_path));
  if (why == EFBIG) d.notes.push_back({.text = file_error(why)});
  if (!near.empty()) d.notes.push_back({.text = fmt::format("did you mean '{}'?", near)});
  d.notes.push_back({.text = fmt::format("built in are {}", fmt::join(names, ", "))});
  return std::nullopt;
}

}  // namespace mscclc
