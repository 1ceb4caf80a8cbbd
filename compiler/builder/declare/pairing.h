// Which end of a channel meets which: found once, when all ranks have declared what they own.
#pragma once

#include <span>
#include <vector>

#include "compiler/builder/declare/members.h"

namespace mscclc {

/// What is known of an end of a channel besides its partner, which is the program's.
struct Joint {
  uint32_t to = kNone;     ///< the end that it names, if it names one
  bool ambiguous = false;  ///< several ends of the peer could be its partner
  bool broken = false;     ///< a mistake about its partner has been reported
};

class Pairing {
 public:
  Pairing(BuildReports& reports, Draft& draft, Names& names, KeyedMembers& members)
      : reports_(reports), draft_(draft), names_(names), members_(members) {}

  void set_ranks(uint32_t ranks) { joints_.resize(ranks); }
  /// The rank at hand is new.
  void begin_rank();
  /// The rank at hand has one more channel.
  void add_channel() { joints_[draft_.rank].emplace_back(); }
  /// Names the peer's end that the channel added last is joined with (`to`).
  void connect(NameId name, std::span<const int64_t> keys, Mark mark);
  /// Gives all ends their partners, and reports those that do not agree on it.
  void pair_channels();

  const Joint& joint(uint32_t rank, uint32_t channel) const { return joints_[rank][channel]; }

 private:
  struct NamedLink {
    NameId name;
    Slice keys;  ///< in link_keys_
    Mark mark;
  };

  void wrong_far_keys(uint32_t peer, uint32_t of_rank, const Family& f, const NamedLink& link);
  uint32_t linked_end(uint32_t of_rank, const Channel& c, const NamedLink& link);
  void default_ends(NameId id);
  bool named_back(uint32_t of_rank, uint32_t index);
  void check_switch(uint32_t of_rank, uint32_t index);

  BuildReports& reports_;
  Draft& draft_;
  Names& names_;
  KeyedMembers& members_;
  std::vector<std::vector<Joint>> joints_;  ///< by rank and channel
  std::vector<NamedLink> links_;
  std::vector<int64_t> link_keys_;
};

}  // namespace mscclc
