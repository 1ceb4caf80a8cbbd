// Channels and semaphores by name and keys: families, and the look-up of their members.
#pragma once

#include <span>
#include <vector>

#include "compiler/builder/declare/names.h"
#include "ir/support/precondition.h"

namespace mscclc {

/// Channels or semaphores of one name, which keys distinguish.
struct Family {
  uint32_t keys = 0;
  uint32_t table = kNone;   ///< first entry in the tables; kNone: look in `sorted`
  uint32_t box = 0;         ///< low and extent of each key in the boxes
  uint32_t single = kNone;  ///< the member, if it has no keys
  uint32_t count = 0;
  NameId name = 0;
  Mark mark;
  std::vector<uint32_t> sorted;  ///< members by keys, of a sparse family
};

class KeyedMembers {
 public:
  KeyedMembers(BuildReports& reports, Draft& draft, Names& names)
      : reports_(reports), draft_(draft), names_(names) {}

  void set_ranks(uint32_t ranks) { ranks_.resize(ranks); }
  /// The rank at hand is new.
  void begin_rank();
  /// Enters the next channel or semaphore of the rank at hand; reports if it cannot have this name.
  /// REQUIRES: `index` is how many there are of its kind.
  bool add(NameId name, DeclKind kind, std::span<const int64_t> keys, uint32_t index, Mark mark);
  /// Makes the look-ups of a rank, whose declarations are complete; reports members that are
  /// declared twice.
  void build_tables(uint32_t rank);

  const Family& family(uint32_t rank, uint32_t index) const { return ranks_[rank].families[index]; }
  /// Where a channel or semaphore is declared.
  Mark mark(uint32_t rank, DeclKind kind, uint32_t index) const {
    const OfRank& r = ranks_[rank];
    return kind == DeclKind::channel ? r.channels[index] : r.semaphores[index];
  }

  /// The member with these keys, or kNone. REQUIRES: as many keys as the family has.
  uint32_t find(uint32_t of_rank, DeclKind kind, const Family& f,
                std::span<const int64_t> keys) const {
    precondition(keys.size() == f.keys);
    if (f.keys == 0) return f.single;
    if (f.table == kNone) return find_sparse(of_rank, kind, f, keys);
    const size_t at = box_index(f, keys);
    return at == ~size_t{0} ? kNone : tables_[f.table + at];
  }
  /// The member of a family of the rank at hand; kNone, and an error, if there is none.
  uint32_t member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark);

  /// Reports that `id` is not what is needed on `rank`. Always false.
  bool wrong_kind(uint32_t rank, NameId id, DeclKind wanted, Mark mark);
  /// Reports that a reference has another number of keys.
  Diagnostic& wrong_keys(const Family& f, size_t given, Mark mark);

 private:
  struct OfRank {
    std::vector<Family> families;
    std::vector<Mark> channels, semaphores;  ///< where they are declared
  };

  Family* family_for(NameId id, DeclKind kind, size_t keys, Mark mark);
  void close_box(Family& f);
  void sort_sparse(uint32_t rank, Family& f);
  std::span<const int64_t> member_keys(uint32_t rank, DeclKind kind, uint32_t index) const;
  void report_twice(uint32_t rank, DeclKind kind, uint32_t index);
  uint32_t find_sparse(uint32_t rank, DeclKind kind, const Family& f,
                       std::span<const int64_t> keys) const;
  uint32_t no_member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark);
  /// Index in a dense family's table, or beyond every table if the keys lie outside its box.
  size_t box_index(const Family& f, std::span<const int64_t> keys) const {
    const int64_t* box = boxes_.data() + f.box;
    size_t at = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t d = static_cast<uint64_t>(keys[i]) - static_cast<uint64_t>(box[2 * i]);
      const auto extent = static_cast<uint64_t>(box[2 * i + 1]);
      if (d >= extent) return ~size_t{0};
      at = at * extent + d;
    }
    return at;
  }

  BuildReports& reports_;
  Draft& draft_;
  Names& names_;
  std::vector<OfRank> ranks_;
  std::vector<int64_t> boxes_;
  std::vector<uint32_t> tables_;
};

}  // namespace mscclc
