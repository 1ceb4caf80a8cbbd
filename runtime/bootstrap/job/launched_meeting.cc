// How the ranks of a job meet that a launcher has started.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ir/diagnostics/first_message.h"
#include "runtime/bootstrap/job/joining_log.h"
#include "runtime/bootstrap/job/launcher.h"
#include "runtime/bootstrap/job/other_job.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/bootstrap/tcp/listener.h"
#include "runtime/bootstrap/tcp/tcp_bootstrap.h"
#include "runtime/bootstrap/tcp/times.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {
namespace {

bool is_local_name(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

HubOptions hub_options(const LaunchedRank& launch) {
  const Rendezvous& where = launch.where;
  HubOptions options{.local = where.local,
                     .secret = where.secret,
                     .size = launch.size,
                     .rank = launch.rank,
                     .process = static_cast<uint32_t>(::getpid()),
                     .timeout = launch.timeout,
                     .silence = launch.silence};
  if (launch.by_environment) options.find_other_job = find_other_job;
  if (where.host.empty()) return options;
  if (!launch.by_id && !is_local_name(where.host)) {
    // The host's name may mean another address here than elsewhere.
    options.ports = where.ports;
    return options;
  }
  const std::string host = where.host == "localhost" ? "127.0.0.1" : where.host;
  for (const uint16_t port : where.ports) {
    if (const auto address = Address::parse(host, port)) options.addresses.push_back(*address);
  }
  return options;
}

/// Is it an address of this machine? One at which nothing listens can be bound, if only to any
/// port.
bool is_here(const Address& address) {
  Address any_port = address;
  any_port.set_port(0);
  return listen_on(any_port).valid() || errno != EADDRNOTAVAIL;
}

/// Rank 0 is looked for at an address that is not of this machine: there may be a rank 0, too. (Or
/// addresses are translated on the way here.)
bool is_looked_for_elsewhere(const LaunchedRank& launch) {
  if (launch.by_id || launch.where.host.empty()) return false;
  Diagnostics unknown;
  const std::vector<Address> addresses = resolve(launch.where.host, 0, unknown);
  return !addresses.empty() && std::none_of(addresses.begin(), addresses.end(), is_here);
}

/// The hub of this job where its ranks look for rank 0. REQUIRES: this process runs none yet.
std::optional<Connected> find_hub_elsewhere(const LaunchedRank& launch) {
  Diagnostics ignored;
  Rendezvous where = launch.where;
  where.local = false;
  where.served = true;
  return connect_to_hub(where, launch.rank, launch.size, std::min(launch.timeout, kTwinPatience),
                        ignored);
}

/// What is at some places where a hub of this job may be.
struct Found {
  std::optional<Connected> hub = {};
  bool silent = false;   ///< something listens that says nothing
  std::string met = {};  ///< what there is, if it is not such a hub
};

/// Waits for what is silent, which may be stopped, as long as a stopped rank is waited for.
Found look_at(const LaunchedRank& launch, Rendezvous where) {
  where.secret = launch.where.secret;
  where.gives_up = launch.where.gives_up;
  where.served = where.looks = true;
  Diagnostics why;
  auto hub = connect_to_hub(where, launch.rank, launch.size,
                            std::min(launch.timeout, launch.silence), why);
  if (hub) return {.hub = std::move(hub)};
  const Diagnostic& error = why.all().back();
  return {.silent = error.code != "bootstrap-gone", .met = error.message};
}

/// A hub of this job on this machine, whose ranks have not all come yet.
Found look_for_hub_here(const LaunchedRank& launch) {
  Rendezvous where;
  for (uint16_t number = 1; number <= kLocalNames; ++number) {
    where.exactly.push_back(Address::local(wire::local_name(launch.where.secret), number));
  }
  return look_at(launch, std::move(where));
}

/// For rank 0, where the job cannot be: says so for some seconds at some places, to ranks that look
/// for it there.
void announce(HubOptions places, const std::string& why) {
  Diagnostics ignored;
  places.failed = why;
  const auto hub = Hub::start(places, ignored);
}

/// Places where this rank's machine can say why it does not listen where it should.
HubOptions places_to_announce(const LaunchedRank& launch) {
  HubOptions places = hub_options(launch);
  places.addresses.clear();
  places.ports.clear();
  if (launch.where.announced_at != 0) places.ports = {launch.where.announced_at};
  return places;
}

/// Rank 0, where another process holds the address of the job's id: it serves the id, or none does.
std::unique_ptr<Bootstrap> join_served(const LaunchedRank& launch, const Diagnostic& listening,
                                       Diagnostics& diagnostics) {
  const auto address = Address::parse(launch.where.host, 0);  // none: the id is of this machine
  if (!address) {
    return join(launch.where, launch.rank, launch.size, launch.timeout, nullptr, diagnostics);
  }
  // A process that makes an id serves it before it gives it away.
  Rendezvous where;
  where.host = launch.where.host;
  where.ports = launch.where.ports;
  Found found = look_at(launch, std::move(where));
  if (found.hub) return join(std::move(*found.hub), launch.rank, launch.size, nullptr, diagnostics);
  Diagnostic error;
  if (is_here(*address)) {
    error.code = listening.code;
    error.message = fmt::format(
        "rank 0 cannot serve MSCCLC_ID: {}, and what has the port is not a hub of this job ({})",
        listening.message, found.met);
    error.notes = {
        {"choose another port for MSCCLC_ID, below those that the system gives to outgoing "
         "connections (net.ipv4.ip_local_port_range, mostly 32768 to 60999)"}};
    announce(places_to_announce(launch), error.message);
  } else {
    error.code = "foreign-id";
    error.message = fmt::format(
        "rank 0 should serve MSCCLC_ID, but {} is not an address of its machine, and no process "
        "serves the id there",
        launch.where.host);
    error.notes = {{listening.message}, {found.met}};
    HubOptions here = places_to_announce(launch);
    here.ports.clear();  // the others look at another machine's
    announce(std::move(here), error.message);
  }
  diagnostics.add(std::move(error));
  return nullptr;
}

/// Rank 0, where another hub has its job's name. Ranks of this job may have joined it, and the
/// other way round: both jobs end.
std::unique_ptr<Bootstrap> end_both(const LaunchedRank& launch, std::optional<Connected> other,
                                    Diagnostic error, Diagnostics& diagnostics) {
  if (other) {
    // The other hub hears of a second rank 0, and says so to the ranks that have come there.
    Diagnostics refused;
    if (const auto joined = join(std::move(*other), launch.rank, launch.size, nullptr, refused)) {
      joined->fail(error.message);
    } else {
      error = refused.all().back();
    }
  }
  HubOptions places = places_to_announce(launch);
  places.two_jobs = true;
  announce(std::move(places), error.message);
  diagnostics.add(std::move(error));
  return nullptr;
}

/// A job of this name on this machine all of whose ranks have come: what it says to this process,
/// which is none of them. nullopt: there is none, or it is at its end.
std::optional<Diagnostic> running_job(const LaunchedRank& launch) {
  Rendezvous where;
  where.exactly = {Address::local(wire::local_name(launch.where.secret), kLateName)};
  Found found = look_at(launch, std::move(where));
  Diagnostics refused;
  if (found.silent) {
    refused.error("two-jobs", {},
                  "another process of this user already runs the hub of such a job, and does not "
                  "answer: two jobs have the same name");
  } else if (found.hub) {
    // Only such a hub listens there, and it takes no other rank.
    if (join(std::move(*found.hub), launch.rank, launch.size, nullptr, refused))
      return std::nullopt;
  } else {
    return std::nullopt;
  }
  const Diagnostic& error = refused.all().back();
  const bool ended = error.code != "two-jobs" && error.code != "bootstrap-refused";
  if (ended || error.message == kJustEnded) return std::nullopt;
  return error;
}

/// Rank 0, without a hub.
std::unique_ptr<Bootstrap> cannot_serve(const LaunchedRank& launch, Diagnostic error,
                                        Diagnostics& diagnostics) {
  const bool taken = error.code == "cannot-listen";
  if (taken && launch.by_id) return join_served(launch, error, diagnostics);
  if (taken) error.notes.push_back({"MSCCLC_PORT sets another port, for all ranks"});
  // Its ports are of no use where they are taken.
  HubOptions places = taken ? places_to_announce(launch) : hub_options(launch);
  places.two_jobs = error.code == "two-jobs";
  announce(std::move(places), error.message);
  diagnostics.add(std::move(error));
  return nullptr;
}

std::unique_ptr<Bootstrap> meet(const LaunchedRank& launch, Diagnostics& diagnostics) {
  if (launch.rank != 0) {
    return join(launch.where, launch.rank, launch.size, launch.timeout, nullptr, diagnostics);
  }
  // A process that makes an id of this machine serves it before it gives it away. Rank 0 looks
  // before it listens itself, as ranks that found both would meet in two places.
  if (launch.by_id && launch.where.local) {
    if (Found server = look_for_hub_here(launch); server.hub) {
      return join(std::move(*server.hub), launch.rank, launch.size, nullptr, diagnostics);
    }
  }
  if (is_looked_for_elsewhere(launch)) {
    if (auto twin = find_hub_elsewhere(launch)) {
      return join(std::move(*twin), launch.rank, launch.size, nullptr, diagnostics);
    }
    diagnostics.warning("rank-0-elsewhere", {},
                        fmt::format("rank 0 runs here, but the ranks look for it at {}, which is "
                                    "not an address of this machine",
                                    launch.where.host));
  }
  Diagnostics listening;
  std::unique_ptr<Hub> hub = Hub::start(hub_options(launch), listening);
  if (!hub && listening.all().back().code == "two-jobs") {
    Found found = look_for_hub_here(launch);
    if (found.hub || found.silent) {
      return end_both(launch, std::move(found.hub), listening.all().back(), diagnostics);
    }
    listening = {};  // all its ranks have come by now, or it has ended
    hub = Hub::start(hub_options(launch), listening);
  }
  if (!hub) return cannot_serve(launch, listening.all().back(), diagnostics);
  for (const Diagnostic& warning : listening.all()) diagnostics.add(warning);
  if (auto error = launch.where.local ? running_job(launch) : std::nullopt) {
    hub->fail(error->message, false);
    diagnostics.add(std::move(*error));
    return nullptr;
  }
  // Its own hub, and no other: so a second rank 0 is recognised.
  const Rendezvous where{.secret = launch.where.secret,
                         .exactly = {hub->address()},
                         .gives_up = launch.where.gives_up,
                         .announced_elsewhere = launch.where.announced_elsewhere};
  return join(where, launch.rank, launch.size, launch.timeout, std::move(hub), diagnostics);
}

}  // namespace

std::unique_ptr<Bootstrap> make_bootstrap(const LaunchedRank& launch, Diagnostics& diagnostics) {
  begin_joining_log();
  for (const Diagnostic& mistake : launch.wrong.all()) diagnostics.add(mistake);
  auto met = logged(meet(launch, diagnostics), launch.rank, diagnostics);
  if (!launch.wrong.has_errors()) return met;
  if (met != nullptr) met->fail(first_message(launch.wrong));
  return nullptr;
}

}  // namespace mscclc
