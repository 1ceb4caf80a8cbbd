// What a rank owns: buffers, its ends of channels, semaphores. Each call checks what is declared
// and adds it to the rank at hand; false after a mistake, which is reported.
#pragma once

#include <span>

#include "compiler/builder/declare/layouts.h"
#include "compiler/builder/declare/pairing.h"
#include "compiler/builder/draft/budget.h"

namespace mscclc {

class Declarations {
 public:
  Declarations(BuildReports& reports, Draft& draft, Budget& budget)
      : reports_(reports),
        draft_(draft),
        budget_(budget),
        names_(reports, draft),
        layouts_(reports, draft),
        members_(reports, draft, names_),
        pairing_(reports, draft, names_, members_) {}

  /// There are so many ranks, which own nothing yet; the contract is known.
  void set_ranks(uint32_t ranks);
  /// The rank at hand is new: it gets what the caller gives it.
  void begin_rank();
  /// Ends the declarations of all ranks: makes the look-ups, pairs the ends of channels.
  void seal();

  bool buffer(NameId name, std::span<const Dim> dims, BufferOptions options, Mark mark,
              Mark dims_mark);
  /// A buffer of `dims` dimensions whose rows differ in length.
  bool ragged_buffer(NameId name, const Rows& rows, uint32_t dims, BufferOptions options, Mark mark,
                     Mark dims_mark);
  bool channel(ChannelKind kind, NameId name, std::span<const int64_t> keys, int64_t peer,
               Mark mark, Mark peer_mark);
  bool switch_channel(NameId name, std::span<const int64_t> keys, const List& ranks, Mark mark,
                      Mark ranks_mark);
  /// Signals that waits at the channel declared last may take before any is given.
  bool credits(uint32_t count, Mark mark);
  bool semaphore(NameId name, std::span<const int64_t> keys, int64_t initial, Mark mark);

  Names& names() { return names_; }
  const Names& names() const { return names_; }
  Layouts& layouts() { return layouts_; }
  const Layouts& layouts() const { return layouts_; }
  KeyedMembers& members() { return members_; }
  const KeyedMembers& members() const { return members_; }
  Pairing& pairing() { return pairing_; }
  const Pairing& pairing() const { return pairing_; }

 private:
  bool may_declare(Mark mark);
  bool may_be_buffer(const BufferOptions& options, Mark mark);
  void add_buffer(Buffer buffer, const BufferOptions& options, Mark mark);
  bool check_units_option(const BufferOptions& options, Mark mark);
  void check_sentinel(Mark mark);
  void check_nodes(const Channel& c, Mark mark);
  uint32_t next_channel() const { return static_cast<uint32_t>(draft_.out->channels.size()); }

  BuildReports& reports_;
  Draft& draft_;
  Budget& budget_;
  Names names_;
  Layouts layouts_;
  KeyedMembers members_;
  Pairing pairing_;
};

}  // namespace mscclc
