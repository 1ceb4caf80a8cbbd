#include "passes/prove/model/value_chains.h"

#include <algorithm>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

uint32_t ValueChains::add(const Event& event, uint32_t rank, Position position,
                          const Extent& extent, uint64_t length,
                          const std::vector<ReadValue>& parents) {
  const auto id = static_cast<uint32_t>(nodes_.size());
  nodes_.add(Node{event, rank, position, extent, length, static_cast<uint32_t>(parents_.size()),
                  static_cast<uint32_t>(parents.size())});
  parents_.insert(parents_.end(), parents.begin(), parents.end());
  by_process_[event.process].push_back(id);
  return id;
}

ValueChains::Stored ValueChains::stored_by(const Event& event) const {
  const uint32_t turns = system_.turns_of(system_.processes()[event.process].rank);
  const uint32_t process = system_.turned(event.process, system_.back(turns));
  const std::vector<uint32_t>& stored = by_process_[process];
  const auto time = [&](uint32_t i) { return nodes_[i].event.time; };
  const auto found = std::ranges::equal_range(stored, event.time, {}, time);
  return {{found.begin(), found.end()}, turns};
}

void Provenance::add(const ValueChains& chains, uint32_t value, uint32_t turns,
                     const Extent& extent) {
  const bool all = extent.covers(chains.node(value).extent);
  read_.push_back({value, turns, all ? Extent{} : extent});
}

void Provenance::add_call(const ValueChains& chains, const Cuts& cuts,
                          std::vector<ReadValue> reads) {
  const auto key = [&](const ReadValue& read) { return chains.key(read); };
  // Most have been read in one piece.
  const auto in_pieces = std::ranges::stable_partition(
      reads, [](const ReadValue& read) { return read.piece.whole(); });
  read_.insert(read_.end(), reads.begin(), in_pieces.begin());
  reads.erase(reads.begin(), in_pieces.begin());
  std::ranges::sort(reads, {}, key);
  for (size_t i = 0; i < reads.size();) {
    const size_t first = i;
    Covering all(cuts, chains.node(reads[first].value).extent);
    bool whole = false;
    for (; i < reads.size() && key(reads[i]) == key(reads[first]); ++i) {
      whole = whole || all.add(reads[i].piece);
    }
    if (whole) {
      read_.push_back({reads[first].value, reads[first].turns, {}});
    } else {
      read_.insert(read_.end(), reads.begin() + static_cast<ptrdiff_t>(first),
                   reads.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

void Provenance::clear() {
  const bool searched = looked_at_ != 0;
  read_.clear();
  if (!searched) return;  // nothing else has anything in it
  whole_.clear();
  sure_.clear();
  pieces_.clear();
  if_any_.clear();
  parents_only_.clear();
  calls_.clear();
  calls_if_.clear();
  shares_.clear();
  open_.clear();
  looked_at_ = 0;
}

/// Notes the bytes of a value that a link brings; false if they are known. The last of several
/// pieces makes the link one to the whole value.
bool Provenance::adds_bytes(const ValueChains& chains, const Cuts& cuts, Link& link) {
  const uint64_t value = chains.key(link.read);
  if (whole_.has(value)) return false;
  if (!link.read.piece.whole() || link.length != 0) {
    const Extent& all = chains.node(link.read.value).extent;
    Pieces& pieces = pieces_[value];
    if (!pieces.whole) pieces.whole.emplace(cuts, all);
    const Bytes bytes{link.read.piece, link.length};
    if (std::ranges::find(pieces.bytes, bytes) != pieces.bytes.end()) return false;
    pieces.bytes.push_back(bytes);
    if (link.length != 0) return true;
    if (!premise(Premise::values_come_whole, pieces.whole->add(bytes.piece))) return true;
    link.read.piece = {};
  }
  whole_.add(value);
  return true;
}

/// Values of so many calls of a rank are among them, if `if_any` has bytes.
void Provenance::note_call(uint32_t rank, const Extent& if_any, uint32_t calls) {
  if (surely_read(if_any)) {
    if (calls_.size() <= rank) calls_.resize(rank + 1, 0);
    calls_[rank] = std::max(calls_[rank], calls);
    return;
  }
  if (calls_if_.size() <= rank) calls_if_.resize(rank + 1);
  std::vector<CallIf>& known = calls_if_[rank];
  const auto same = std::ranges::find(known, if_any, &CallIf::extent);
  if (same == known.end()) {
    known.push_back({if_any, calls});
  } else {
    same->calls = std::max(same->calls, calls);
  }
}

/// Notes the call that a link's bytes are of; false if it is known.
bool Provenance::adds_call(const ValueChains& chains, const Link& link) {
  const uint64_t value = chains.key(link.read);
  if (!link.known || sure_.has(value)) return false;
  if (link.if_any.whole()) {
    sure_.add(value);
  } else {
    std::vector<Extent>& conditions = if_any_[value];
    if (std::ranges::find(conditions, link.if_any) != conditions.end()) return false;
    conditions.push_back(link.if_any);
  }
  note_call(chains.rank_of(link.read), link.if_any, chains.node(link.read.value).event.call + 1);
  return true;
}

Provenance::SharedPiece& Provenance::shared_piece(const Cuts& cuts, uint32_t rank,
                                                  const Extent& piece) {
  if (shares_.size() <= rank) shares_.resize(rank + 1);
  std::vector<SharedPiece>& pieces = shares_[rank];
  const auto known = std::ranges::find(pieces, piece, &SharedPiece::piece);
  if (known != pieces.end()) return *known;
  pieces.push_back({piece, {}, {cuts, piece}});
  return pieces.back();
}

/// Several ops of a rank have stored what has been read in one piece, none of them all of it.
void Provenance::add_share(const ValueChains& chains, const Cuts& cuts, const Link& link,
                           const Extent& piece) {
  const ValueChains::Node& node = chains.node(link.read.value);
  const uint32_t rank = chains.rank_of(link.read);
  SharedPiece& all = shared_piece(cuts, rank, piece);
  if (all.complete) return;  // the first shares make it up, and are of no later call
  const Share share{node.extent, node.event.call + 1};
  const bool known = std::ranges::any_of(all.shares, [&](const Share& s) {
    return s.extent == share.extent && s.calls <= share.calls;
  });
  if (known) return;
  all.calls = all.shares.empty() ? share.calls : std::min(all.calls, share.calls);
  all.shares.push_back(share);
  all.complete = all.covering.add(share.extent);
  if (all.complete) note_call(rank, piece, all.calls);
}

/// What a value was made of is looked at once for each way in which it counts.
void Provenance::keep_parents(const ValueChains& chains, const Link& link) {
  std::vector<Link>& links = parents_only_[chains.key(link.read)];
  if (std::ranges::find(links, link) != links.end()) return;
  links.push_back(link);
  open_.push_back(link);
}

void Provenance::look_at(const ValueChains& chains, const Cuts& cuts, Link link) {
  if (link.read.parents_only) return keep_parents(chains, link);
  const ValueChains::Node& node = chains.node(link.read.value);
  const uint64_t length = chains.length_of(link.read);
  if (!premise(Premise::hops_of_one_length,
               length == 0 || link.length == 0 || length == link.length))
    return;
  link.length = std::max(link.length, length);
  // Lemma O2: bytes of a call have come if this link has any.
  const Extent& piece = link.read.piece;
  const Extent& here = piece.whole() ? node.extent : piece;
  link.known &= premise(
      Premise::chains_have_bytes,
      link.length == 0 && (link.if_any.whole() || link.if_any == here || surely_read(here)));
  if (link.known && !surely_read(here)) link.if_any = here;
  if (link.known && !node.extent.covers(here)) {
    add_share(chains, cuts, link, here);
    link.known = premise(Premise::shares_make_up_the_piece, false);
  }
  const bool bytes = adds_bytes(chains, cuts, link);
  const bool call = adds_call(chains, link);
  if (!bytes && !call) return;
  open_.push_back(link);
}

/// The parents of what has been reached: of a piece of a value as much comes from a parent as they
/// have in common.
void Provenance::look_at_parents(const ValueChains& chains, const Cuts& cuts, const Link& link) {
  const Extent& piece = link.read.piece;
  for (ReadValue parent : chains.parents(chains.node(link.read.value))) {
    parent.turns = chains.add_turns(parent.turns, link.read.turns);
    if (parent.parents_only) {
      parent.piece = piece;
    } else if (!piece.whole()) {
      if (!premise(Premise::bytes_that_all_hops_have,
                   parent.piece.whole() || parent.piece == piece))
        continue;
      parent.piece = piece.covers(chains.node(parent.value).extent) ? Extent{} : piece;
    }
    look_at(chains, cuts, {parent, link.length, link.if_any, link.known});
  }
}

bool Provenance::comes_from(const ValueChains& chains, const ReadValue& value, uint64_t length,
                            Covering& covering) const {
  const uint64_t key = chains.key(value);
  const Extent& stored = chains.node(value.value).extent;
  if (whole_.has(key)) return covering.add(stored);
  const Pieces* const pieces = pieces_.find(key);
  return pieces != nullptr && std::ranges::any_of(pieces->bytes, [&](const Bytes& bytes) {
           return premise(Premise::bytes_of_the_load,
                          bytes.length == 0 || bytes.length == length) &&
                  covering.add(bytes.piece.whole() ? stored : bytes.piece);
         });
}

/// What depends on a piece of an earlier call, whose division is another, is never at hand (lemma
/// O12).
bool Provenance::from_later_call(const Load& load) const {
  const uint32_t calls = premise(Premise::later_calls, load.event.call + 1, load.event.call);
  if (load.rank < calls_.size() && calls_[load.rank] > calls) return true;
  return load.rank < calls_if_.size() &&
         std::ranges::any_of(calls_if_[load.rank], [&](const CallIf& known) {
           return known.calls > calls &&
                  premise(Premise::the_piece_at_hand, known.extent == load.stored);
         });
}

bool Provenance::among(const ValueChains& chains, const Cuts& cuts, const Load& load) const {
  if (from_later_call(load)) return true;
  Covering covering(cuts, load.bytes);
  const auto [values, turns] = chains.stored_by(load.event);
  return std::ranges::any_of(values, [&, turns = turns](uint32_t value) {
    return premise(Premise::the_position_of_the_load,
                   chains.node(value).position == load.position) &&
           comes_from(chains, {value, turns, {}}, load.length, covering);
  });
}

/// Looks at what the values were made of until it is found, or all of it has been looked at.
template <class Found>
bool Provenance::search(const ValueChains& chains, const Cuts& cuts, size_t count, bool far,
                        Found&& found) {
  for (; looked_at_ < count; ++looked_at_) look_at(chains, cuts, {read_[looked_at_]});
  // Most are found soon: parents are looked at only as far as they are needed.
  while (!found()) {
    if (open_.empty() || !far) return false;
    looked_from_.swap(open_);
    for (const Link& link : looked_from_) look_at_parents(chains, cuts, link);
    looked_from_.clear();
  }
  return true;
}

bool Provenance::follow(const ValueChains& chains, const Cuts& cuts, size_t count, const Load& load,
                        bool far) {
  return search(chains, cuts, count, far, [&] { return among(chains, cuts, load); });
}

bool Provenance::follow_later(const ValueChains& chains, const Cuts& cuts, size_t count,
                              const Load& access, bool far) {
  return search(chains, cuts, count, far, [&] { return from_later_call(access); });
}

}  // namespace mscclc::proof
