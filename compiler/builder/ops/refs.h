// Operands: from names, keys and indexes to chunks, ends of channels, semaphores.
#pragma once

#include <span>
#include <string_view>
#include <tuple>

#include "compiler/builder/declare/layouts.h"
#include "compiler/builder/declare/members.h"

namespace mscclc {

class Refs {
 public:
  Refs(BuildReports& reports, Draft& draft, Names& names, Layouts& layouts, KeyedMembers& members)
      : reports_(reports), draft_(draft), names_(names), layouts_(layouts), members_(members) {}

  // Each fills `ref`, for the rank at hand; a mistake is reported and makes it invalid.
  void chunk(NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark, Ref& ref);
  void channel_end(NameId channel, std::span<const int64_t> keys, Mark mark, Ref& ref);
  /// A chunk at the far end of a channel, or at a switch.
  void far_chunk(NameId channel, std::span<const int64_t> keys, Mark channel_mark, NameId buffer,
                 Mark buffer_mark, std::span<const Index> index, Mark mark, Ref& ref);
  void semaphore_ref(NameId semaphore, std::span<const int64_t> keys, Mark mark, Ref& ref);
  void flag(uint32_t array, int64_t index, Mark mark, Ref& ref);
  void external_rows(uint32_t external, std::span<const Index> index, Mark mark, Ref& ref);

 private:
  bool locate_rows(std::span<const Index> index, std::string_view name, Mark mark, Operand& out);
  void fill_chunk(Ref& ref, uint32_t owner, NameId buffer, Mark buffer_mark,
                  std::span<const Index> index);
  bool check_at_switch(const Channel& c, uint32_t index, const Ref& ref);
  bool lies_alike(BufferKind kind, uint32_t member) const;

  BuildReports& reports_;
  Draft& draft_;
  Names& names_;
  Layouts& layouts_;
  KeyedMembers& members_;
  /// Rank, channel and buffer checked last.
  std::tuple<uint32_t, uint32_t, uint32_t> switch_seen_{kNone, kNone, kNone};
};

}  // namespace mscclc
