#include "runtime/core/communicator/meet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "runtime/core/communicator/call/shared_board.h"
#include "runtime/core/communicator/refuse.h"
#include "runtime/support/bytes.h"
#include "runtime/support/fd.h"
#include "runtime/support/host_place.h"
#include "runtime/support/observe/log.h"

namespace mscclc {
namespace {

/// What a rank says of itself when it joins.
struct Introduction {
  std::array<uint8_t, 8> nonce =
      {};  ///< so that no two communicators say the same: CallRecords::digest
  uint8_t check_calls = 0;
  std::span<const uint8_t> room = {};  ///< Device::room()
  HostPlace place = {};
  std::span<const uint8_t> name = {};  ///< Device::link_name()
};

std::vector<uint8_t> encode(const Introduction& said) {
  std::vector<uint8_t> bytes;
  ByteWriter(bytes)
      .bytes(said.nonce)
      .number(said.check_calls)
      .number(static_cast<uint32_t>(said.room.size()))
      .bytes(said.room)
      .bytes(said.place.boot)
      .number(said.place.device)
      .number(said.place.inode)
      .bytes(said.name);
  return bytes;
}

std::optional<Introduction> read_introduction(std::span<const uint8_t> message) {
  ByteReader reader(message);
  Introduction said;
  (void)reader.bytes(said.nonce.size());
  said.check_calls = reader.number<uint8_t>();
  said.room = reader.bytes(reader.number<uint32_t>());
  const auto boot = reader.bytes(said.place.boot.size());
  std::copy(boot.begin(), boot.end(), said.place.boot.begin());
  said.place.device = reader.number<uint64_t>();
  said.place.inode = reader.number<uint64_t>();
  said.name = reader.rest();
  if (!reader.good()) return std::nullopt;
  return said;
}

/// What a rank has found of the others.
struct Found {
  LinkKind worst = LinkKind::own;
  uint32_t node = 0;                ///< the first rank of its node
  std::span<const uint8_t> ticket;  ///< of the memory to compare calls in, if it makes that
};

std::optional<Found> read_found(std::span<const uint8_t> message) {
  ByteReader reader(message);
  Found found;
  const auto worst = reader.number<uint8_t>();
  found.worst = static_cast<LinkKind>(worst);
  found.node = reader.number<uint32_t>();
  found.ticket = reader.rest();
  if (!reader.good() || worst > static_cast<uint8_t>(LinkKind::pcie)) return std::nullopt;
  return found;
}

class Meeting {
 public:
  Meeting(RankGroup& group, Diagnostics& diagnostics) : group_(group), diagnostics_(diagnostics) {}

  bool run(bool able) {
    return introduce(able) && agree(find_links() && board_.make(group_, ticket_, diagnostics_)) &&
           group_.agree(compare_nodes() && open_board(), "form nodes", diagnostics_);
  }

 private:
  bool introduce(bool able);
  bool take_introductions();
  bool find_links();
  void find_node();
  bool agree(bool found);
  bool compare_nodes();
  bool open_board();
  uint32_t size() const { return static_cast<uint32_t>(said_.size()); }
  bool is_near(uint32_t rank) const {
    return rank == group_.rank() || !group_.neighbours.links[rank].lanes;
  }

  RankGroup& group_;
  Diagnostics& diagnostics_;
  std::vector<uint8_t> room_;
  std::vector<std::vector<uint8_t>> introductions_, found_;
  std::vector<Introduction> said_;  ///< by rank
  SharedBoard board_;
  std::vector<uint8_t> ticket_;  ///< of the board's memory, if this rank makes it
};

/// Collective: what the environment says must be the same on all ranks. Counts those that share
/// this rank's room.
bool Meeting::introduce(bool able) {
  Introduction own{.check_calls = static_cast<uint8_t>(group_.compared.at_launch ? 1 : 0)};
  fill_random(own.nonce);
  std::optional<std::vector<uint8_t>> name;
  if (able) {
    room_ = group_.device->room();
    name = group_.device->link_name(diagnostics_);
    const std::optional<HostPlace> place = this_host_place(diagnostics_);
    own.place = place.value_or(HostPlace());
    able = name && place;
  }
  if (able) {
    own.room = room_;
    own.name = *name;
  }
  return group_.exchange(able, encode(own), "create a communicator", introductions_,
                         diagnostics_) &&
         take_introductions();
}

bool Meeting::take_introductions() {
  uint32_t here = 0;
  for (uint32_t r = 0; r < introductions_.size(); ++r) {
    const std::optional<Introduction> said = read_introduction(introductions_[r]);
    if (!said) return refuse(diagnostics_, "bad-message", "a peer's message is cut off");
    said_.push_back(*said);
    here += std::ranges::equal(said->room, room_) ? 1 : 0;
    if (said->check_calls == said_.front().check_calls) continue;
    diagnostics_.error("options-differ", {},
                       fmt::format("MSCCLC_CHECK_CALLS is not the same on ranks 0 and {}", r));
    return false;
  }
  if (!room_.empty()) group_.neighbours.ranks_here = here;
  return true;
}

/// Finds what joins this device to those of the other ranks, whose names are known by now.
bool Meeting::find_links() {
  group_.neighbours.links.assign(size(), Link{});
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == group_.rank()) continue;
    std::optional<Link> link = group_.device->link_to(said_[r].name, diagnostics_);
    if (!link) return false;
    group_.neighbours.worst_link = std::max(group_.neighbours.worst_link, link->kind);
    const std::string_view by = link->access ? name(link->kind) : link->lanes ? "lanes" : "nothing";
    log(LogLevel::info, LogArea::init, group_.rank(),
        fmt::format("rank {} is joined by {}: {}", r, by,
                    link->why.empty() ? "the same memory" : link->why));
    group_.neighbours.links[r] = *std::move(link);
  }
  find_node();
  return true;
}

void Meeting::find_node() {
  const HostPlace& own = said_[group_.rank()].place;
  group_.neighbours.node_of.assign(size(), 0);
  uint32_t first = group_.rank();
  for (uint32_t r = 0; r < size(); ++r) {
    if (!is_near(r)) continue;
    first = std::min(first, r);
    if (said_[r].place == own) group_.neighbours.beside.push_back(r);
  }
  const bool far = std::ranges::any_of(group_.neighbours.links, &Link::lanes);
  if (far) group_.compared.far = std::make_shared<FarCalls>();
  group_.neighbours.in_one_place =
      std::ranges::all_of(said_, [&](const auto& s) { return s.place == own; });
  group_.neighbours.node_of[group_.rank()] = first;
}

/// Collective: the worst link of any two ranks, and the nodes, by which all pick the same plans.
bool Meeting::agree(bool found) {
  std::vector<uint8_t> own;
  if (found) {
    ByteWriter(own)
        .number(static_cast<uint8_t>(group_.neighbours.worst_link))
        .number(group_.neighbours.node_of[group_.rank()])
        .bytes(ticket_);
  }
  if (!group_.exchange(found, own, "find what joins the devices", found_, diagnostics_)) {
    return false;
  }
  for (uint32_t r = 0; r < size(); ++r) {
    const std::optional<Found> other = read_found(found_[r]);
    if (!other) {
      return refuse(diagnostics_, "bad-message", "a peer's message does not describe its links");
    }
    group_.neighbours.worst_link = std::max(group_.neighbours.worst_link, other->worst);
    group_.neighbours.node_of[r] = other->node;
  }
  return true;
}

// Devices say of each pair of ranks whether it shares memory: that need not make nodes.
bool Meeting::compare_nodes() {
  const uint32_t own = group_.rank();
  for (uint32_t r = 0; r < size(); ++r) {
    if (is_near(r) == (group_.neighbours.node_of[r] == group_.neighbours.node_of[own])) continue;
    diagnostics_.error(
        "uneven-links", {},
        fmt::format("ranks {} and {} {} each other's memory, though rank {} {}: ranks that share "
                    "memory must all share it with one another",
                    own, r, is_near(r) ? "reach" : "do not reach", group_.neighbours.node_of[own],
                    is_near(r) ? "does not reach both" : "reaches both"));
    return false;
  }
  return true;
}

bool Meeting::open_board() {
  const std::optional<Found> maker = read_found(found_[group_.neighbours.beside.front()]);
  return board_.open(group_, maker->ticket, group_.compared.board, diagnostics_);
}

}  // namespace

bool meet(RankGroup& group, bool able, Diagnostics& diagnostics) {
  return Meeting(group, diagnostics).run(able);
}

}  // namespace mscclc
