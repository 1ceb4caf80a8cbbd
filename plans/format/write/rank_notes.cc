#include "plans/format/write/rank_notes.h"

#include <string_view>

namespace mscclc {

void RankNotes::clear() {
  complete.clear();
  for (std::vector<uint32_t>& ops : by_summation) ops.clear();
  reduction.clear();
  plain.clear();
  data_channels.clear();
  op_channels.clear();
  barriers.clear();
  applied.clear();
}

void RankNotes::write(JsonWriter& json, bool foreign) const {
  const auto add = [&](std::string_view key, const std::vector<uint32_t>& list) {
    if (!list.empty()) json.member(key, [&] { json.list(list); });
  };
  const auto add_rows = [&](std::string_view key, const auto& rows) {
    if (rows.empty()) return;
    json.member(key, [&] { json.list(rows, [&](const auto& row) { json.list(row); }); });
  };
  add("complete", complete);
  for (const SummationInfo& row : summations()) {
    add(row.name, by_summation[static_cast<size_t>(row.summation)]);
  }
  add(foreign ? "from_call" : "fixed_sum", reduction);
  add(foreign ? "plain_first" : "plain_last", plain);
  add_rows("data_channels", data_channels);
  add_rows("op_channels", op_channels);
  add_rows("barriers", barriers);
  add_rows("applied", applied);
}

}  // namespace mscclc
