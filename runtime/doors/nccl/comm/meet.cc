#include "runtime/doors/nccl/comm/meet.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>

#include "ir/diagnostics/first_message.h"
#include "ir/diagnostics/printable.h"
#include "ir/support/fnv.h"
#include "runtime/api/job.h"
#include "runtime/api/launcher.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/fd.h"

namespace mscclc::nccl {
namespace {

/// In the place of an id's text: "NCCL_COMM_ID" and host:port.
constexpr std::string_view kByEnvironment = "NCCL_COMM_ID=";

std::string text_of(const ncclUniqueId& id) {
  return {id.internal, ::strnlen(id.internal, sizeof id.internal)};
}

bool write_text(const std::string& text, ncclUniqueId& id, Diagnostics& diagnostics) {
  if (text.size() >= sizeof id.internal) {
    diagnostics.error("bad-unique-id", {}, "'" + text + "' does not fit into an id of 128 bytes");
    return false;
  }
  std::memset(&id, 0, sizeof id);
  std::memcpy(id.internal, text.data(), text.size());
  return true;
}

/// A secret of any text. Not a strong one: it names a job, and keeps apart jobs that do not mean
/// each other.
Secret stretch(std::string_view text, Secret secret = {}) {
  Fnv hash;
  for (size_t round = 0; round < 2; ++round) {
    hash.add(text);
    for (size_t i = 0; i < 8; ++i) {
      secret[round * 8 + i] ^= static_cast<uint8_t>(hash.value() >> (8 * i));
    }
  }
  return secret;
}

/// A rank that knows all that a launcher would say.
LaunchedRank launched(uint32_t rank, uint32_t ranks) {
  LaunchedRank made;
  const HostOptions options = host_options_to_meet(made.wrong);
  made.launcher = "NCCL";
  made.rank = rank;
  made.size = ranks;
  made.timeout = options.timeout;
  made.silence = options.silence;
  return made;
}

/// "host:port"; an IPv6 address as host stands in brackets.
struct HostAndPort {
  std::string_view host;
  uint16_t port = 0;
};

std::optional<HostAndPort> read_place(std::string_view text, Diagnostics& diagnostics) {
  const size_t colon = text.rfind(':');
  HostAndPort place{text.substr(0, colon)};
  const std::string_view digits = colon == text.npos ? "" : text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.port);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  const bool bracketed = place.host.starts_with('[') && place.host.ends_with(']');
  if (bracketed) place.host = place.host.substr(1, place.host.size() - 2);
  const bool one_host = bracketed || place.host.find(':') == place.host.npos;
  if (whole && place.port != 0 && one_host && !place.host.empty()) return place;
  diagnostics.error("bad-unique-id", {},
                    fmt::format("NCCL_COMM_ID is {}; allowed is host:port, with brackets around an "
                                "IPv6 address",
                                mscclc::quoted(text)));
  return std::nullopt;
}

/// Whether the communicator, or what it is a child of, is aborted while its ranks meet.
std::function<bool(Diagnostics&)> once_aborted(const Comm& made) {
  return [&made, parent = made.parent.lock()](Diagnostics& why) {
    const bool by_parent = parent != nullptr && parent->stage == Stage::aborted;
    if (made.stage != Stage::aborted && !by_parent) return false;
    why.error("aborted", {}, "the communicator was aborted while it was made");
    return true;
  };
}

/// The same, or a parent that is in use has failed: a rank that it lost does not come.
std::function<bool(Diagnostics&)> once_failed(const Comm& made) {
  return [aborted = once_aborted(made), parent = made.parent.lock()](Diagnostics& why) {
    const bool in_use = parent != nullptr && parent->stage == Stage::ready;
    return aborted(why) || (in_use && parent->communicator->has_failed(why));
  };
}

std::unique_ptr<Bootstrap> meet_at(std::string_view text, const Comm& made,
                                   Diagnostics& diagnostics) {
  const auto place = read_place(text, diagnostics);
  if (!place) return nullptr;
  LaunchedRank rank_there = launched(made.rank, made.ranks);
  Diagnostics ignored;
  const std::string secret =
      Environment::of_process().text(Variable::MSCCLC_SECRET, ignored).value_or("");
  rank_there.where.host = place->host;
  rank_there.where.ports = {place->port};
  rank_there.where.secret = stretch(secret + std::string(text));
  rank_there.where.gives_up = once_failed(made);
  return make_bootstrap(rank_there, diagnostics);
}

/// Collective over ranks of the parent that know a name for what they make together. `gives_up`: as
/// in the Rendezvous.
std::unique_ptr<Bootstrap> meet_by_name(const Comm& parent, const std::string& name, uint32_t rank,
                                        uint32_t ranks, std::function<bool(Diagnostics&)> gives_up,
                                        Diagnostics& diagnostics) {
  if (!parent.facts.one_machine) {
    diagnostics.error("no-rendezvous", {},
                      "the ranks are on several machines, and cannot meet again without the ones "
                      "that are gone");
    return nullptr;
  }
  LaunchedRank rank_there = launched(rank, ranks);
  rank_there.one_machine = true;
  rank_there.where.local = true;
  rank_there.where.secret = stretch(name, parent.facts.secret);
  rank_there.where.gives_up = std::move(gives_up);
  rank_there.where.announced_elsewhere = true;  // by the parent
  return make_bootstrap(rank_there, diagnostics);
}

template <typename T>
std::vector<uint8_t> bytes_of(const T& value) {
  const auto* first = reinterpret_cast<const uint8_t*>(&value);
  return {first, first + sizeof value};
}

}  // namespace

bool make_id(ncclUniqueId& id, Diagnostics& diagnostics) {
  raise_descriptor_limit();
  const Environment environment = Environment::of_process();
  if (environment.has(Variable::NCCL_COMM_ID)) {
    const auto place = environment.text(Variable::NCCL_COMM_ID, diagnostics);
    return place && read_place(*place, diagnostics) &&
           write_text(std::string(kByEnvironment) + *place, id, diagnostics);
  }
  const auto options = read_host_options(diagnostics);
  if (!options) return false;
  std::optional<HostedJob> job = host_job(*options, diagnostics);
  if (!job) return false;
  const std::string text = job->id.text();
  keep_hub(job->id, std::move(job->hub));
  return write_text(text, id, diagnostics);
}

bool check_id(const ncclUniqueId& id, Diagnostics& diagnostics) {
  const std::string text = text_of(id);
  if (!text.starts_with(kByEnvironment)) return UniqueId::parse(text, diagnostics).has_value();
  return read_place(std::string_view(text).substr(kByEnvironment.size()), diagnostics).has_value();
}

std::unique_ptr<Bootstrap> meet_by_id(const ncclUniqueId& id, const Comm& made,
                                      Diagnostics& diagnostics) {
  raise_descriptor_limit();
  const std::string text = text_of(id);
  if (text.starts_with(kByEnvironment)) {
    return meet_at(std::string_view(text).substr(kByEnvironment.size()), made, diagnostics);
  }
  const auto parsed = UniqueId::parse(text, diagnostics);
  if (!parsed) return nullptr;
  Diagnostics wrong;  // the communicator checks all settings, and reports them to the others
  return join_job(*parsed, made.rank, made.ranks, host_options_to_meet(wrong).timeout,
                  own_hub(*parsed), diagnostics, once_failed(made));
}

bool find_family(Bootstrap& parent, int color, int key, Family& family, Diagnostics& diagnostics) {
  struct Wish {
    int color, key;
  };
  std::vector<std::vector<uint8_t>> all;
  if (!parent.all_gather(bytes_of(Wish{color, key}), "a split's colors", all, diagnostics)) {
    return false;
  }
  std::vector<std::pair<int, uint32_t>> members;  // by key, and by rank where keys are equal
  for (uint32_t rank = 0; rank < all.size(); ++rank) {
    Wish wish;
    if (all[rank].size() != sizeof wish) {
      diagnostics.error("bad-message", {},
                        fmt::format("the message of rank {} has no color", rank));
      return false;
    }
    std::memcpy(&wish, all[rank].data(), sizeof wish);
    if (color >= 0 && wish.color == color) members.emplace_back(wish.key, rank);
  }
  std::sort(members.begin(), members.end());
  for (const auto& [its_key, rank] : members) {
    if (rank == parent.rank()) family.rank = static_cast<uint32_t>(family.ranks.size());
    family.ranks.push_back(rank);
  }
  return true;
}

std::unique_ptr<Bootstrap> meet_through(Bootstrap& parent, const Family& family, const Comm& child,
                                        Diagnostics& diagnostics) {
  ncclUniqueId own{};
  std::vector<uint8_t> sent;
  if (!family.ranks.empty() && family.rank == 0) {
    const std::string why = make_id(own, diagnostics) ? "" : first_message(diagnostics);
    sent = bytes_of(own);
    sent.insert(sent.end(), why.begin(), why.end());
  }
  std::vector<std::vector<uint8_t>> all;
  if (!parent.all_gather(sent, "a split's ids", all, diagnostics) || family.ranks.empty() ||
      diagnostics.has_errors()) {
    return nullptr;
  }
  const std::vector<uint8_t>& said = all[family.ranks[0]];
  ncclUniqueId id{};
  if (said.size() != sizeof id) {
    const std::string why(said.begin() + std::min(said.size(), sizeof id), said.end());
    diagnostics.error("no-rendezvous", {},
                      fmt::format("rank {} of the parent can serve no id{}{}", family.ranks[0],
                                  why.empty() ? "" : ": ", printable_line(why)));
    return nullptr;
  }
  std::memcpy(&id, said.data(), sizeof id);
  Diagnostics problems;
  if (!check_id(id, problems)) {
    diagnostics.error("bad-message", {},
                      fmt::format("the id of rank {} of the parent: {}", family.ranks[0],
                                  first_message(problems)));
    return nullptr;
  }
  return meet_by_id(id, child, diagnostics);
}

std::optional<ncclUniqueId> share_id(Bootstrap& parent, const std::optional<ncclUniqueId>& given,
                                     const std::optional<ncclUniqueId>& kept,
                                     Diagnostics& diagnostics) {
  constexpr uint8_t kKept = 0, kGiven = 1;
  std::vector<uint8_t> sent;
  if (given || kept) {
    sent = bytes_of(given ? *given : *kept);
    sent.push_back(given ? kGiven : kKept);
  }
  std::vector<std::vector<uint8_t>> all;
  if (!parent.all_gather(sent, "a larger communicator's id", all, diagnostics)) return std::nullopt;
  const bool some_give = std::ranges::any_of(
      all, [](const auto& one) { return !one.empty() && one.back() == kGiven; });
  const std::vector<uint8_t>* said = nullptr;
  bool same = true;
  for (const std::vector<uint8_t>& one : all) {
    if (one.empty() || (some_give && one.back() != kGiven)) continue;
    if (said == nullptr) said = &one;
    same = same && one == *said && one.size() == sizeof(ncclUniqueId) + 1;
  }
  if (said == nullptr || !same) {
    diagnostics.error("bad-unique-id", {},
                      said == nullptr ? "no rank gives the larger communicator's id"
                                      : "the ranks give different ids");
    return std::nullopt;
  }
  ncclUniqueId id;
  std::memcpy(&id, said->data(), sizeof id);
  return id;
}

std::unique_ptr<Bootstrap> meet_again(const Comm& parent, const Family& family, uint32_t number,
                                      const Comm& child, Diagnostics& diagnostics) {
  std::string name = fmt::format("child {}:", number);
  for (const uint32_t rank : family.ranks) name += fmt::format(" {}", rank);
  return meet_by_name(parent, name, family.rank, static_cast<uint32_t>(family.ranks.size()),
                      once_aborted(child), diagnostics);
}

std::unique_ptr<Bootstrap> meet_for_messages(const Comm& parent, uint32_t from, uint32_t to,
                                             Diagnostics& diagnostics) {
  const auto gives_up = [&parent](Diagnostics& why) {
    return parent.communicator->has_failed(why);
  };
  return meet_by_name(parent, fmt::format("messages: {} {}", from, to), parent.rank == from ? 0 : 1,
                      2, gives_up, diagnostics);
}

}  // namespace mscclc::nccl
