// A table as text.
#include <fmt/format.h>

#include "plans/format/library_table.h"

namespace mscclc {

std::vector<Dtype> all_dtypes(bool floats_alone) {
  std::vector<Dtype> all;
  for (const DtypeInfo& t : dtype_table()) {
    if (!floats_alone || t.kind == DtypeKind::kFloat) all.push_back(t.dtype);
  }
  return all;
}

namespace {

std::string list_text(const std::vector<Dtype>& dtypes) {
  std::string list;
  for (const Dtype t : dtypes) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", info(t).name);
  }
  return fmt::format("[{}]", list);
}

std::string dtypes_text(const std::vector<Dtype>& dtypes) {
  if (dtypes == all_dtypes(false)) return "\"any\"";
  if (dtypes == all_dtypes(true)) return "\"float\"";
  return list_text(dtypes);
}

std::string ranks_text(const LibraryRow& row) {
  if (row.min_ranks == 1 && row.max_ranks == kNoLimit) return "\"any\"";
  if (row.min_ranks == row.max_ranks) return std::to_string(row.min_ranks);
  return fmt::format("[{}, {}]", row.min_ranks, row.max_ranks);
}

/// Of a row that is not for one node.
std::string nodes_text(const LibraryRow& row) {
  if (row.max_nodes == 0) return "\"uneven\"";
  if (row.min_nodes == row.max_nodes) return std::to_string(row.min_nodes);
  if (row.max_nodes == kNoLimit && row.min_nodes == 0) return "\"any\"";
  if (row.max_nodes == kNoLimit && row.min_nodes == 2) return "\"several\"";
  return fmt::format("[{}, {}]", row.min_nodes, row.max_nodes);
}

std::string choice_text(const LibraryChoice& choice) {
  if (!choice.plan.empty()) return fmt::format("\"plan\": \"{}\"", choice.plan);
  std::string params;
  for (const auto& [key, value] : choice.params) {
    params += fmt::format("{}\"{}\": \"{}\"", params.empty() ? "" : ", ", key, value);
  }
  return fmt::format("\"program\": \"{}\", \"params\": {{{}}}", choice.program, params);
}

std::string row_text(const LibraryRow& row) {
  std::string text =
      fmt::format("{{\"collective\": \"{}\", \"ranks\": {}", name(row.kind), ranks_text(row));
  if (row.min_nodes != 1 || row.max_nodes != 1) {
    text += fmt::format(", \"nodes\": {}", nodes_text(row));
  }
  if (row.root) text += fmt::format(", \"root\": {}", *row.root);
  if (row.shift) text += fmt::format(", \"shift\": {}", *row.shift);
  const std::string bytes = row.bytes == ~uint64_t{0} ? "null" : std::to_string(row.bytes);
  text += fmt::format(", \"bytes\": {}, \"dtypes\": {}, {}", bytes, dtypes_text(row.dtypes),
                      choice_text(row.choice));
  if (!row.accumulate.empty()) text += ", \"accumulate\": " + list_text(row.accumulate);
  if (!row.in_place) text += ", \"in_place\": false";
  if (!row.captured) text += ", \"captured\": false";
  if (row.order != kDefaultOrder) text += fmt::format(", \"order\": \"{}\"", name(row.order));
  if (row.asked) text += ", \"asked\": true";
  if (row.links) text += fmt::format(", \"links\": \"{}\"", name(*row.links));
  return text + "}";
}

}  // namespace

std::string library_table_text(std::span<const LibraryRow> rows) {
  std::string text = "{\n  \"rows\": [\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("    {}{}\n", row_text(rows[i]), i + 1 < rows.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace mscclc
