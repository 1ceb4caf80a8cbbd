#include "plans/format/write/row_keys.h"

#include <bit>

#include "ir/rows/row_wire.h"

namespace mscclc {
namespace {

/// [name, kind, type], a result's value, the columns of its groups.
void write_stored(JsonWriter& json, const rows::Stored& one, bool result) {
  json.open('[');
  json.elements(one.name, name_of(one.kind), name_of(one.type));
  if (result) json.elements(one.node);
  if (one.kind == rows::Kind::groups) json.elements(one.group);
  json.close(']');
}

/// ["add", 1, 2]: the op, what only some have, and arguments.
void write_node(JsonWriter& json, const rows::Node& node) {
  json.open('[');
  json.elements(rows::wire_name(node.op));
  if (node.op == rows::Op::param) json.elements(node.index);
  if (node.op == rows::Op::constant) json.elements(std::bit_cast<uint32_t>(node.value));
  if (node.op == rows::Op::round) json.elements(name_of(node.type));
  for (uint32_t i = 0; i < rows::argument_count(node.op); ++i) json.elements(node.args[i]);
  if (rows::is_reduction(node.op)) json.elements(node.over);
  json.close(']');
}

void write_function(JsonWriter& json, const rows::Function& f) {
  const auto stored = [&](const std::vector<rows::Stored>& list, bool result) {
    return [&json, &list, result] {
      json.list(list, [&](const rows::Stored& one) { write_stored(json, one, result); });
    };
  };
  const auto lets = [&] {
    json.list(f.lets, [&](const rows::Let& let) {
      json.open('[');
      json.elements(let.name, let.node);
      json.close(']');
    });
  };
  json.object(
      "name", f.name, "rounding", f.rounding == rows::Rounding::once ? "once" : "chain", "params",
      stored(f.params, false), "nodes",
      [&] { json.list(f.nodes, [&](const rows::Node& node) { write_node(json, node); }); }, "lets",
      lets, "results", stored(f.outputs, true));
}

/// [name, kind, type, use, holding], the columns of its groups.
void write_external(JsonWriter& json, const rows::External& e) {
  json.open('[');
  json.elements(e.name, name_of(e.kind), name_of(e.type), name_of(e.use), name_of(e.holding));
  if (e.kind == rows::Kind::groups) json.elements(e.group);
  json.close(']');
}

/// [name, side, count, raises, bits, scope, tiles], the array that it may wait for.
void write_flag_array(JsonWriter& json, const Program& program, const FlagArray& a) {
  json.open('[');
  json.elements(a.name, a.of_output ? "output" : "input", a.count, a.raises, a.bits, name(a.scope),
                name(a.tiles));
  if (a.after != FlagArray::kNoArray) json.elements(program.flags[a.after].name);
  json.close(']');
}

}  // namespace

void write_rows(JsonWriter& json, const Program& program) {
  if (!program.functions.empty()) {
    json.members("rows", [&] {
      json.list(program.functions, [&](const rows::Function& f) { write_function(json, f); });
    });
  }
  if (!program.externals.empty()) {
    json.members("externals", [&] {
      json.list(program.externals, [&](const rows::External& e) { write_external(json, e); });
    });
  }
  if (!program.flags.empty()) {
    json.members("flags", [&] {
      json.list(program.flags, [&](const FlagArray& a) { write_flag_array(json, program, a); });
    });
  }
}

}  // namespace mscclc
