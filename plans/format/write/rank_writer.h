// Writes one rank of a plan: what stands under `gpus`, and what the extra key says of the rank,
// which is gathered while its ops are written. The text depends on nothing but the program, so that
// several threads may write ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/report/program_report.h"
#include "plans/format/json/json_writer.h"
#include "plans/format/target.h"
#include "plans/format/wire/location_codec.h"
#include "plans/format/wire/wire_layout.h"
#include "plans/format/write/op_writer.h"

namespace mscclc {

class RankWriter {
 public:
  /// Ranks go to `out`, what the extra key says of them to `extra`; each is followed by a comma if
  /// it is not the program's last.
  RankWriter(const Program& program, const WireLayout& layout, const Target& target,
             ProgramReport& report, JsonOut& out, JsonOut& extra);
  void write(uint32_t rank);
  /// By pipeline: does one of the ranks that were written use it?
  const std::vector<bool>& used_loops() const { return ops_.used_loops(); }

 private:
  void write_channels(JsonWriter& json, uint32_t rank);
  void write_connections(JsonWriter& json, uint32_t rank, ChannelKind kind);
  void write_switches(JsonWriter& json, uint32_t rank);
  void write_remote_buffers(JsonWriter& json);
  void write_extra(uint32_t rank, uint64_t rank_bytes);
  void write_locations(uint32_t rank, uint64_t rank_bytes);

  const Program& program_;
  const WireLayout& layout_;
  JsonOut& out_;
  JsonOut& extra_;
  OpWriter ops_;
  LocationWriter locations_;
  std::vector<uint32_t> peers_;
};

}  // namespace mscclc
