#include "plans/format/write/rank_notes.h"

#include <fmt/format.h>

#include <string_view>

namespace mscclc {
namespace {

void write_list(JsonOut& out, const std::vector<uint32_t>& list) {
  out.need(4);
  out.character('[');
  for (const uint32_t value : list) {
    out.need(12);
    out.number(value);
    out.character(',');
  }
  if (out.last() == ',') out.take_back();
  out.literal("],");
}

void write_member(JsonOut& out, std::string_view key, const std::vector<uint32_t>& list) {
  if (list.empty()) return;
  out.text(key);
  write_list(out, list);
}

void write_member(JsonOut& out, std::string_view key, const std::vector<RankNotes::Row>& rows) {
  if (rows.empty()) return;
  out.text(key);
  out.text("[");
  for (const RankNotes::Row& row : rows) write_list(out, row);
  out.take_back();
  out.need(2);
  out.literal("],");
}

}  // namespace

void RankNotes::clear() {
  complete.clear();
  for (std::vector<uint32_t>& ops : by_summation) ops.clear();
  reduction.clear();
  plain.clear();
  data_channels.clear();
  op_channels.clear();
  barriers.clear();
}

void RankNotes::write(JsonOut& out, bool foreign) const {
  write_member(out, "\"complete\":", complete);
  for (const SummationInfo& row : summations()) {
    write_member(out, fmt::format("\"{}\":", row.name),
                 by_summation[static_cast<size_t>(row.summation)]);
  }
  write_member(out, foreign ? "\"from_call\":" : "\"fixed_sum\":", reduction);
  write_member(out, foreign ? "\"plain_first\":" : "\"plain_last\":", plain);
  write_member(out, "\"data_channels\":", data_channels);
  write_member(out, "\"op_channels\":", op_channels);
  write_member(out, "\"barriers\":", barriers);
}

}  // namespace mscclc
