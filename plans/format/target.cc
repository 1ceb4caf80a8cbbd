// Targets are small JSON files; the built-in ones are the files of targets/, put into the binary
// when it is built.
#include "plans/format/target.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "ir/ops/ops.h"
#include "ir/support/read_file.h"
#include "plans/format/json/json_read.h"

namespace mscclc {
namespace {

/// The files of targets/ as string literals, in the order of their names.
constexpr std::string_view kFiles[] = {
#include "plans/format/builtin_targets.inc"
};

constexpr KeySet kKeys = {w_name,
                          w_description,
                          w_mscclpp_wire_only,
                          w_max_threads_per_block,
                          w_max_blocks,
                          w_max_ops_per_block,
                          w_max_operands_per_op,
                          w_max_channels_per_op,
                          w_max_channels_per_block,
                          w_max_remote_buffers_per_block,
                          w_max_semaphores_per_op,
                          w_max_channels,
                          w_max_barriers,
                          w_shared_bytes_per_op,
                          w_max_shared_bytes,
                          w_vector_bytes,
                          w_max_bytes};

bool read_strings(const JsonReader& reader, const Members& m, Target& target) {
  std::string_view name, description;
  if (!reader.string(m[w_name], name) || !reader.string(m[w_description], description)) {
    return false;
  }
  if (name.empty()) return reader.fail(m[w_name], "a target must have a name");
  target.name = name;
  target.description = description;
  return true;
}

std::optional<Target> read_target(std::string_view text, const std::string& file,
                                  Diagnostics& diagnostics) {
  JsonTape tape;
  if (!tape.parse(text, file, diagnostics)) return std::nullopt;
  const JsonReader reader(tape, file, diagnostics);
  Members m;
  Target t;
  const auto number = [&](KnownWord key, uint32_t& limit) { return reader.number(m[key], limit); };
  const bool right =
      m.read(reader, 0, kKeys) && read_strings(reader, m, t) &&
      reader.boolean(m[w_mscclpp_wire_only], t.mscclpp_wire_only) &&
      number(w_max_threads_per_block, t.max_threads_per_block) &&
      number(w_max_blocks, t.max_blocks) && number(w_max_ops_per_block, t.max_ops_per_block) &&
      number(w_max_operands_per_op, t.max_operands_per_op) &&
      number(w_max_channels_per_op, t.max_channels_per_op) &&
      number(w_max_channels_per_block, t.max_channels_per_block) &&
      number(w_max_remote_buffers_per_block, t.max_remote_buffers_per_block) &&
      number(w_max_semaphores_per_op, t.max_semaphores_per_op) &&
      number(w_max_channels, t.max_channels) && number(w_max_barriers, t.max_barriers) &&
      number(w_shared_bytes_per_op, t.shared_bytes_per_op) &&
      number(w_max_shared_bytes, t.max_shared_bytes) && number(w_vector_bytes, t.vector_bytes) &&
      reader.u64(m[w_max_bytes], t.max_bytes);
  if (!right) return std::nullopt;
  return t;
}

}  // namespace

OpLimits Target::op_limits() const {
  // What single ops may be at MSCCL++'s executor: reasons of plans/FORMAT.md, §4.
  uint64_t absent = 0;
  for (const OpInfo& op : op_table()) {
    if (mscclpp_wire_only && op.wire.empty())
      absent |= uint64_t{1} << static_cast<uint32_t>(op.kind);
  }
  return {.operands = max_operands_per_op,
          .channels = max_channels_per_op,
          .semaphores = max_semaphores_per_op,
          .unpacks = mscclpp_wire_only ? 1u : 0u,
          .absent = absent,
          .fixed_gets = mscclpp_wire_only,
          .unmixed_shared_sums = mscclpp_wire_only,
          .one_source_kind = mscclpp_wire_only};
}

const std::vector<Target>& builtin_targets() {
  static const std::vector<Target> kTargets = [] {
    std::vector<Target> targets;
    Diagnostics diagnostics;
    for (const std::string_view text : kFiles) {
      std::optional<Target> target = read_target(text, "built-in target", diagnostics);
      if (target) targets.push_back(*std::move(target));
    }
    return targets;
  }();
  return kTargets;
}

std::optional<Target> find_target(const std::string& name_or_path, Diagnostics& diagnostics) {
  std::vector<std::string_view> names;
  for (const Target& target : builtin_targets()) {
    if (target.name == name_or_path) return target;
    names.push_back(target.name);
  }
  const std::optional<std::string> text = read_file(name_or_path);
  if (text) return read_target(*text, name_or_path, diagnostics);
  const int why = errno;
  const std::string near = nearest(name_or_path, names);
  Diagnostic& d = diagnostics.error(
      "unknown-target", {},
      fmt::format("'{}' is neither a built-in target nor a readable file", name_or_path));
  if (why == EFBIG) d.notes.push_back({.text = file_error(why)});
  if (!near.empty()) d.notes.push_back({.text = fmt::format("did you mean '{}'?", near)});
  d.notes.push_back({.text = fmt::format("built in are {}", fmt::join(names, ", "))});
  return std::nullopt;
}

}  // namespace mscclc
