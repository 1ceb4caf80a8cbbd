// schema.json describes exactly what is written: every plan fits it, and every key in it is written
// by some plan.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ir/program/applied.h"
#include "ir/support/read_file.h"
#include "plans/format/plan_json.h"
#include "plans/format/wire/mscclpp_rules.h"
#include "tests/helpers/plans/random_plan.h"
#include "tests/helpers/plans/sample_plan.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {
namespace {

using Json = nlohmann::json;

/// As much of JSON Schema as schema.json uses. Notes the properties that it meets.
class Validator {
 public:
  explicit Validator(const Json& schema) : root_(schema) {}

  /// The first thing that does not fit, with its path; "" if all does.
  std::string check(const Json& value) { return check(root_, "#", value, "$"); }
  const std::set<std::string>& met() const { return met_; }

 private:
  std::string check(const Json& schema, const std::string& place, const Json& value,
                    const std::string& path) {
    for (const auto& [keyword, unused] : schema.items()) {
      static const std::set<std::string> kKnown = {"$schema",
                                                   "$defs",
                                                   "$ref",
                                                   "title",
                                                   "description",
                                                   "type",
                                                   "properties",
                                                   "items",
                                                   "required",
                                                   "minimum",
                                                   "enum",
                                                   "oneOf",
                                                   "additionalProperties"};
      if (kKnown.count(keyword) == 0) return "unknown keyword " + keyword;
    }
    if (schema.contains("$ref")) {
      const std::string target = schema["$ref"];
      return check(root_.at(Json::json_pointer(target.substr(1))), target, value, path);
    }
    if (schema.contains("oneOf")) return check_one_of(schema["oneOf"], place, value, path);
    if (schema.contains("enum")) {
      for (const Json& allowed : schema["enum"]) {
        if (allowed == value) return "";
      }
      return path + ": not in the list: " + value.dump();
    }
    if (!fits_type(schema, value)) return path + ": wrong type: " + value.dump();
    if (schema.contains("minimum") && value < schema["minimum"]) return path + ": too small";
    if (value.is_object()) return check_object(schema, place, value, path);
    if (!value.is_array() || !schema.contains("items")) return "";
    for (const Json& e : value) {
      const std::string wrong = check(schema["items"], place + "/items", e, path + "[]");
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string check_one_of(const Json& options, const std::string& place, const Json& value,
                           const std::string& path) {
    size_t i = 0;
    std::string wrong;
    for (const Json& option : options) {
      const std::set<std::string> before = met_;
      wrong = check(option, place + "/oneOf/" + std::to_string(i++), value, path);
      if (wrong.empty()) return "";
      met_ = before;
    }
    return wrong;
  }

  static bool fits_type(const Json& schema, const Json& value) {
    if (!schema.contains("type")) return true;
    const std::string type = schema["type"];
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer());
  }

  std::string check_object(const Json& schema, const std::string& place, const Json& value,
                           const std::string& path) {
    if (!schema.contains("properties")) return "";
    for (const Json& key : schema["required"]) {
      if (!value.contains(key)) return path + ": missing " + key.get<std::string>();
    }
    for (const auto& [key, member] : value.items()) {
      if (!schema["properties"].contains(key)) return path + ": unknown " + key;
      const std::string inner = place + "/properties/" + key;
      met_.insert(inner);
      const std::string wrong = check(schema["properties"][key], inner, member, path + "." + key);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  const Json& root_;
  std::set<std::string> met_;
};

/// Places of all properties of a schema.
void list_properties(const Json& schema, const std::string& place, std::set<std::string>& out) {
  if (schema.is_array()) {
    for (size_t i = 0; i < schema.size(); ++i) {
      list_properties(schema[i], place + "/" + std::to_string(i), out);
    }
  }
  if (!schema.is_object()) return;
  for (const auto& [key, value] : schema.items()) {
    if (key == "properties") {
      for (const auto& [name, property] : value.items()) out.insert(place + "/properties/" + name);
    }
    list_properties(value, place + "/" + key, out);
  }
}

/// A plan with scratch that holds units of a pipeline.
Program plan_with_units() {
  testing::TestProgram t(1, 1);
  t.program.split = true;
  const uint32_t ring = t.buffer(0, "ring", 1);
  t.program.ranks[0].buffers[ring].units = 2;
  t.program.ranks[0].buffers[ring].unit = 1024;
  t.program.loops.push_back({1024, 1});
  t.op_in(0, 0, OpKind::copy, {testing::local(ring, 0)}, {testing::local(kInput, 0)}).loop = 0;
  t.op_in(0, 0, OpKind::copy, {testing::local(kOutput, 0)}, {testing::local(ring, 0)}).loop = 0;
  return std::move(t.program);
}

/// A plan with a row function and an external.
Program plan_with_rows() {
  testing::TestProgram t(1, 1);
  t.program.split = true;
  rows::Function f;
  f.name = "twice";
  f.params.push_back({.name = "x", .node = 0});
  f.nodes.push_back({.op = rows::Op::param, .spread = rows::Spread::columns});
  f.nodes.push_back({.op = rows::Op::add,
                     .spread = rows::Spread::columns,
                     .args = {0, 0, rows::kNoNode, rows::kNoNode}});
  f.lets.push_back({"sum", 1});
  f.outputs.push_back({.name = "y", .node = 1});
  f.outputs.push_back({.name = "seen", .node = 0});
  t.program.functions.push_back(f);
  t.program.externals.push_back({.name = "seen", .use = rows::Use::out});
  t.program.contract.columns = 64;
  t.program.contract.any_columns = true;
  t.program.contract.then = 0;
  t.program.ranks[0].buffers[t.buffer(0, "small", 1)].form.type = rows::Type::e4m3;
  Op& op = t.op_in(0, 0, OpKind::apply, {testing::local(kOutput, 0)}, {testing::local(kInput, 0)});
  const RowValue results[] = {{false, 0}, {true, 0}}, params[] = {{false, 0}};
  op.applied = t.program.append(encode_applied(0, 0, results, params));
  return std::move(t.program);
}

/// A plan with flags of both sides.
Program plan_with_flags() {
  testing::TestProgram t(1, 1);
  t.program.split = true;
  t.program.flags.push_back({.name = "ready", .of_output = true});
  t.program.flags.push_back({.name = "tiles", .after = 0});
  t.op_in(0, 0, OpKind::notify, {Operand{.buffer = 0}});
  t.op_in(0, 0, OpKind::await, {Operand{.buffer = 1}});
  return std::move(t.program);
}

std::vector<std::string> plans() {
  std::vector<std::string> texts;
  Diagnostics diagnostics;
  const Target& host = builtin_targets().front();
  texts.push_back(*write_plan(testing::sample_plan(), host, diagnostics));
  const Proof proof{.proved = true, .sums = "x0"};
  texts.push_back(*write_plan(testing::sample_plan(), host, diagnostics, &proof));
  texts.push_back(*write_plan(plan_with_units(), host, diagnostics));
  texts.push_back(*write_plan(plan_with_rows(), host, diagnostics));
  texts.push_back(*write_plan(plan_with_flags(), host, diagnostics));
  for (uint64_t seed = 0; seed < 400; ++seed) {
    texts.push_back(*write_plan(testing::random_plan(seed), host, diagnostics));
  }
  for (const auto& entry : std::filesystem::directory_iterator("tests/mscclpp_plans")) {
    if (entry.path().extension() != ".json") continue;
    const auto program = read_plan(read_file(entry.path()).value(), entry.path(), diagnostics);
    if (program) texts.push_back(*write_plan(*program, host, diagnostics));
  }
  return texts;
}

}  // namespace

TEST_CASE("the schema describes what is written") {
  const Json schema = Json::parse(read_file("plans/schema.json").value());
  Validator validator(schema);
  for (const std::string& text : plans()) {
    INFO(text);
    const std::string wrong = validator.check(Json::parse(text));
    REQUIRE(wrong.empty());
  }
  std::set<std::string> all;
  list_properties(schema, "#", all);
  for (const std::string& property : all) {
    INFO(property);
    CHECK(validator.met().count(property) > 0);
  }
}

TEST_CASE("the schema knows all names of ops") {
  const Json schema = Json::parse(read_file("plans/schema.json").value());
  std::set<std::string> names, expected;
  for (const Json& name : schema["$defs"]["op_name"]["enum"]) names.insert(name);
  for (const OpInfo& row : op_table()) {
    for (const std::string_view name : {row.wire, row.relaxed}) expected.emplace(name);
    if (row.kind == OpKind::pipeline) continue;  // has its wire name always
    for (const bool relaxed : {false, true}) expected.emplace(long_name(row.kind, relaxed));
  }
  expected.erase("");
  CHECK(names == expected);
}

TEST_CASE("the schema and docs/language.md know all kinds of collectives") {
  const Json schema = Json::parse(read_file("plans/schema.json").value());
  const std::string page = read_file("docs/language.md").value();
  std::vector<std::string> expected = {std::string(name(CollectiveKind::none))};
  for (const std::string_view kind : collective_names()) {
    expected.emplace_back(kind);
    INFO(kind);
    const auto row = std::regex("\n\\|[^|]*`" + std::string(kind) + "[(`]");
    CHECK(std::regex_search(page, row));
  }
  CHECK(schema["$defs"]["contract"]["properties"]["kind"]["enum"] == Json(expected));
}

TEST_CASE("the schema knows all packet formats") {
  const Json schema = Json::parse(read_file("plans/schema.json").value());
  Json expected = Json::array();
  for (const PacketFormatInfo& row : packet_formats()) expected.push_back(row.name);
  CHECK(schema["/$defs/rank/properties/buffers/items/properties/packets/enum"_json_pointer] ==
        expected);
}

TEST_CASE("the schema is of the version that is written") {
  const Json schema = Json::parse(read_file("plans/schema.json").value());
  CHECK(schema["properties"]["mscclc"]["properties"]["schema"]["enum"] == Json{kPlanSchema});
}

TEST_CASE("FORMAT.md has every key and every reason for a long name") {
  const std::string format = read_file("plans/FORMAT.md").value();
  const auto check_quoted = [&](const std::string& word) {
    INFO(word);
    const bool quoted = format.find('"' + word + '"') != std::string::npos;
    CHECK((quoted || format.find('`' + word + '`') != std::string::npos));
  };
  std::set<std::string> properties;
  list_properties(Json::parse(read_file("plans/schema.json").value()), "#", properties);
  for (const std::string& place : properties) {
    check_quoted(place.substr(place.rfind('/') + 1));
  }
  for (size_t f = 1; f < kPeerFaults; ++f) {
    check_quoted(std::string(name(static_cast<MscclppFault>(f))));
  }
  for (const OpInfo& row : op_table()) {
    if (!row.wire.empty()) check_quoted(std::string(row.wire));
  }
}

}  // namespace mscclc
