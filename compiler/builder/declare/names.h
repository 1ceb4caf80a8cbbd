// What a name means on each rank.
#pragma once

#include <string_view>
#include <vector>

#include "compiler/builder/draft/draft.h"

namespace mscclc {

enum class DeclKind : uint32_t { none, buffer, channel, semaphore };

/// "buffer", "channel", "semaphore"; "name" for none.
std::string_view kind_name(DeclKind kind);

/// What a name means on one rank: its kind and its index among the rank's buffers or families.
struct Decl {
  DeclKind kind = DeclKind::none;
  uint32_t index = 0;
};

class Names {
 public:
  Names(BuildReports& reports, Draft& draft) : reports_(reports), draft_(draft) {}

  /// There are so many ranks, which have no names yet.
  void set_ranks(uint32_t ranks) { decls_.resize(ranks); }
  /// The rank at hand gets `input` and `output`.
  void begin_rank();

  Decl decl(uint32_t rank, NameId name) const {
    const std::vector<Decl>& decls = decls_[rank];
    return name < decls.size() ? decls[name] : Decl{};
  }
  /// Enters a name of the rank at hand; reports if it means something already.
  bool declare(NameId id, DeclKind kind, uint32_t index, Mark mark);

  /// Declaring something of this name has failed: references to it are not reported.
  void poison(NameId name);
  bool is_poisoned(NameId name) const { return name < poisoned_.size() && poisoned_[name]; }

 private:
  BuildReports& reports_;
  Draft& draft_;
  std::vector<std::vector<Decl>> decls_;  ///< by rank and NameId
  std::vector<bool> poisoned_;            ///< by NameId
};

}  // namespace mscclc
