#include "runtime/bootstrap/tcp/connect.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "ir/diagnostics/first_message.h"
#include "runtime/bootstrap/tcp/attempt.h"
#include "runtime/bootstrap/tcp/times.h"
#include "runtime/bootstrap/wire/handshake.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/observe/log.h"
#include "runtime/support/process/proc.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// How often all places must say that nothing listens before that is believed.
constexpr int kRefusalsBelieved = 3;

/// A place where the hub may be, and how attempts there have gone.
struct TriedAddress {
  Address address;
  std::unique_ptr<Attempt> attempt = {};
  SteadyTime again = {};  ///< when to try next
  milliseconds pause = kFirstPause;
  std::string met = {};    ///< why the last attempt failed
  int refusals = 0;        ///< in a row
  bool late = false;       ///< what listens there only says that all ranks have come
  bool last = false;       ///< nothing is tried there any more, as this rank gives up
  bool announces = false;  ///< Rendezvous::announced_at: what is met there is no news
  bool other = false;      ///< what is there is not a hub of this job, or cannot be reached
};

class Search {
 public:
  Search(const Rendezvous& where, uint32_t rank, uint32_t size, milliseconds timeout,
         Diagnostics& diagnostics)
      : where_(where),
        hello_{.rank = rank,
               .size = size,
               .process = static_cast<uint32_t>(::getpid()),
               .began = began_of(::getpid()),
               .timeout_ms =
                   static_cast<uint32_t>(std::min<int64_t>(where.patience.count(), UINT32_MAX))},
        timeout_(timeout),
        deadline_(Clock::now() + timeout),
        diagnostics_(diagnostics) {
    if (where.local) add_local();
    for (const Address& address : where.exactly) {
      places_.push_back({.address = address, .late = address == late_place()});
    }
  }

  std::optional<Connected> run() {
    do {
      resolve_again();
      begin_attempts();
      wait();
      for (TriedAddress& place : places_) {
        if (auto connected = settle(place)) return connected;
        if (out_of_descriptors_) return report_descriptors();
      }
      if (where_.served && gone()) return report_gone();
      look_whether_wanted();
    } while (left_ms(deadline_) > 0 && !has_tried_all());
    return gives_up_ ? report_giving_up() : report_timeout();
  }

 private:
  void add_local() {
    const auto key = wire::local_name(where_.secret);
    for (uint16_t number = 1; number <= kLocalNames; ++number) {
      places_.push_back({Address::local(key, number)});
    }
    places_.push_back({.address = late_place(), .late = true});
  }
  Address late_place() const { return Address::local(wire::local_name(where_.secret), kLateName); }

  /// A lookup may take seconds, in which attempts do not go on, so those come first; but not for
  /// longer than one waits for an answer, as others may have begun meanwhile.
  SteadyTime next_lookup() const {
    const bool under_way = std::ranges::any_of(
        places_, [](const TriedAddress& place) { return place.attempt != nullptr; });
    return under_way ? resolve_at_ + kAnswerPatience : resolve_at_;
  }
  void resolve_again() {
    if (where_.host.empty() || Clock::now() < next_lookup()) return;
    Diagnostics unknown;
    const std::vector<Address> addresses = resolve(where_.host, 0, unknown);
    resolve_at_ = Clock::now() + kResolveAgain;
    unresolved_ = addresses.empty() ? first_message(unknown) : "";
    for (Address address : addresses) {
      for (const uint16_t port : where_.ports) add_place(address, port, false);
      if (where_.announced_at != 0) add_place(address, where_.announced_at, true);
    }
  }
  void add_place(Address address, uint16_t port, bool announces) {
    address.set_port(port);
    const bool known = std::any_of(places_.begin(), places_.end(), [&](const TriedAddress& place) {
      return place.address == address;
    });
    if (!known) places_.push_back({.address = address, .announces = announces});
  }

  void begin_attempts() {
    const SteadyTime now = Clock::now();
    for (TriedAddress& place : places_) {
      if (place.attempt != nullptr || place.last || (!gives_up_ && now < place.again)) continue;
      if (place.other && where_.looks) continue;
      place.last = gives_up_.has_value();
      place.attempt = std::make_unique<Attempt>(place.address, where_.secret, hello_);
    }
  }

  /// A rank that gives up must still report it, so that the others do not wait for it: it goes on
  /// with what it has begun, and tries each place once more.
  void look_whether_wanted() {
    Diagnostics why;
    if (gives_up_ || !where_.gives_up || !where_.gives_up(why)) return;
    gives_up_ = std::move(why);
    const SteadyTime now = Clock::now();
    deadline_ =
        std::min<SteadyTime>(deadline_, where_.announced_elsewhere ? now : now + kAnnounceTime);
  }
  bool has_tried_all() const {
    return std::all_of(places_.begin(), places_.end(), [](const TriedAddress& place) {
      return place.last && place.attempt == nullptr;
    });
  }

  /// Until something has come, or something is due.
  void wait() {
    std::vector<pollfd> polled;
    SteadyTime next = std::min(deadline_, where_.host.empty() ? deadline_ : next_lookup());
    if (where_.gives_up && !gives_up_) next = std::min(next, Clock::now() + kAskAgain);
    for (const TriedAddress& place : places_) {
      const bool waits = place.attempt != nullptr && !place.attempt->ended();
      next = std::min(next, waits                      ? place.attempt->deadline()
                            : place.attempt != nullptr ? Clock::now()
                            : place.last || (place.other && where_.looks) ? deadline_
                                                                          : place.again);
      if (waits) polled.push_back({place.attempt->fd(), place.attempt->events(), 0});
    }
    ::poll(polled.data(), polled.size(), left_ms(next));
    size_t i = 0;
    for (TriedAddress& place : places_) {
      if (place.attempt == nullptr || place.attempt->ended()) continue;
      place.attempt->go_on(polled[i++].revents != 0);
    }
  }

  std::optional<Connected> settle(TriedAddress& place) {
    if (place.attempt == nullptr || !place.attempt->ended()) return std::nullopt;
    const std::unique_ptr<Attempt> attempt = std::move(place.attempt);
    if (attempt->state() == Attempt::State::proved) {
      trace(place, "the job's hub");
      return Connected{attempt->take_connection(), agreed(attempt->welcome()), place.address};
    }
    out_of_descriptors_ |= attempt->out_of_descriptors();
    // The hub takes one of the unix sockets; that nothing listens at the others says nothing.
    const bool expected = (place.address.is_local() && attempt->refused()) || place.announces;
    if (place.met != attempt->why() && !expected) trace(place, attempt->why());
    place.met = attempt->why();
    place.refusals = attempt->refused() ? place.refusals + 1 : 0;
    place.other = !attempt->refused() && !attempt->silent();
    place.again = Clock::now() + place.pause;
    place.pause = std::min(2 * place.pause, kLongestPause);
    return std::nullopt;
  }

  /// This rank waits no longer than it has said, whatever its hub answers.
  wire::Welcome agreed(wire::Welcome welcome) const {
    if (hello_.timeout_ms != 0)
      welcome.timeout_ms = std::min(welcome.timeout_ms, hello_.timeout_ms);
    return welcome;
  }

  void trace(const TriedAddress& place, const std::string& met) const {
    log(LogLevel::trace, LogArea::bootstrap, hello_.rank,
        fmt::format("at {}: {}", place.address.text(), met));
  }

  bool gone() const {
    return unresolved_.empty() &&
           std::all_of(places_.begin(), places_.end(), [&](const TriedAddress& p) {
             return p.announces || p.refusals >= kRefusalsBelieved || (p.late && !p.met.empty()) ||
                    (p.other && where_.looks);
           });
  }

  /// "127.0.0.1 port 30500, 31500", "a unix socket of this machine", or both.
  std::string everywhere() const {
    std::string text = where_.local ? "a unix socket of this machine" : "";
    for (const Address& address : where_.exactly) {
      text += (text.empty() ? "" : ", ") + address.text();
    }
    if (where_.host.empty()) return text;
    std::string ports;
    for (const uint16_t port : where_.ports) {
      ports += fmt::format("{}{}", ports.empty() ? "" : ", ", port);
    }
    return fmt::format("{}{}{} port {}", text, text.empty() ? "" : " or ", where_.host, ports);
  }

  /// What was met at each place; of unix sockets, where anything was.
  std::vector<Note> met() const {
    std::vector<Note> notes;
    if (!unresolved_.empty()) notes.push_back({unresolved_});
    for (const TriedAddress& place : places_) {
      if (place.announces || (place.address.is_local() && place.refusals > 0)) continue;
      if (place.met.empty() && place.attempt == nullptr) continue;
      notes.push_back({fmt::format("at {}: {}", place.address.text(),
                                   place.met.empty() ? "no answer" : place.met)});
    }
    return notes;
  }

  /// A unix socket is found by a name that comes of the secret, which a rank may have wrong.
  std::string no_listener_text() const {
    std::string text = "nothing is listening there";
    if (where_.local && !where_.served) {
      text +=
          ", or this rank's MSCCLC_SECRET, MSCCLC_ID or what its launcher says of the job is not "
          "that of rank 0";
    }
    return text;
  }

  std::nullopt_t report(const char* code, std::string message) {
    std::vector<Note> notes = met();
    if (notes.empty()) notes.push_back({no_listener_text()});
    if (where_.looks) {  // only what was met is of interest
      message = notes.front().text;
      for (size_t i = 1; i < notes.size(); ++i) message += "; " + notes[i].text;
      notes.clear();
    }
    // One line where one says all: others may see no more of it.
    if (notes.size() == 1) {
      message += ": " + notes.front().text;
      notes.clear();
    }
    diagnostics_.error(code, {}, std::move(message)).notes = std::move(notes);
    return std::nullopt;
  }

  std::nullopt_t report_giving_up() {
    for (const Diagnostic& one : gives_up_->all()) diagnostics_.add(one);
    return std::nullopt;
  }
  std::nullopt_t report_timeout() {
    return report("bootstrap-timeout",
                  fmt::format("rank {} cannot reach the bootstrap at {} within {}", hello_.rank,
                              everywhere(), seconds_text(timeout_)));
  }
  std::nullopt_t report_gone() {
    return report(
        "bootstrap-gone",
        fmt::format("rank {} finds nothing at {}, where its job's id was made: the process "
                    "that serves it has ended, or all ranks have joined already",
                    hello_.rank, everywhere()));
  }
  std::nullopt_t report_descriptors() {
    return report(
        "no-descriptors",
        fmt::format("rank {} cannot connect to the bootstrap at {}, as its process has no "
                    "file descriptors left ('ulimit -n' raises the limit)",
                    hello_.rank, everywhere()));
  }

  const Rendezvous& where_;
  const wire::Hello hello_;
  const milliseconds timeout_;
  SteadyTime deadline_;
  std::optional<Diagnostics> gives_up_;  ///< why this rank gives up; nullopt: it does not
  Diagnostics& diagnostics_;
  std::vector<TriedAddress> places_;
  SteadyTime resolve_at_{};
  std::string unresolved_;
  bool out_of_descriptors_ = false;
};

}  // namespace

std::optional<Connected> connect_to_hub(const Rendezvous& where, uint32_t rank, uint32_t size,
                                        milliseconds timeout, Diagnostics& diagnostics) {
  return Search(where, rank, size, timeout, diagnostics).run();
}

}  // namespace mscclc
