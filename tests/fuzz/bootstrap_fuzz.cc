// Fuzzes what comes to a bootstrap from outside: the stream of frames and their payloads, sealed
// records, unique ids, memory handles, descriptors' tickets, and values of environment variables.
// The first byte says which. Any bytes are either read, and then written again unchanged, or
// refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/bootstrap/job/launcher.h"
#include "runtime/bootstrap/tcp/meeting.h"
#include "runtime/bootstrap/wire/frames.h"
#include "runtime/bootstrap/wire/records.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/memory/fd_socket.h"
#include "runtime/support/memory/handle.h"

namespace {

using namespace mscclc;
using Bytes = std::vector<uint8_t>;
using Input = std::span<const uint8_t>;

void expect(bool good) {
  if (!good) std::abort();
}

/// What was read from a payload is written as the same payload.
template <class Read>
void check_payload(Input payload, Read read) {
  const auto value = read(payload);
  if (!value) return;
  const Bytes written = wire::frame(*value);
  expect(std::equal(written.begin() + 8, written.end(), payload.begin(), payload.end()));
}

void fuzz_payloads(Input input) {
  check_payload(input, wire::read_challenge);
  check_payload(input, wire::read_hello);
  check_payload(input, wire::read_welcome);
  check_payload(input, wire::read_refused);
  check_payload(input, wire::read_gather);
  check_payload(input, wire::read_gathered);
  check_payload(input, wire::read_failure);
  check_payload(input, wire::read_waits);
  if (const auto why = wire::read_give_up(input)) {
    const Bytes written = wire::give_up_frame(*why);
    expect(std::equal(written.begin() + 8, written.end(), input.begin(), input.end()));
  }
}

/// A stream as a whole and byte by byte gives the same frames; a meeting survives whatever two
/// ranks of it send.
void fuzz_stream(Input input) {
  wire::FrameReader whole(wire::kMaxFromRank), piecewise(wire::kMaxFromRank);
  whole.feed(input);
  RankMeeting meeting({.size = 2, .timeout = std::chrono::seconds(1)});
  const SteadyTime now{};
  for (const uint32_t r : {0, 1}) expect(meeting.admit({.rank = r, .size = 2}, "here", now));
  uint32_t rank = 0;
  size_t at = 0;
  for (;;) {
    const auto next = whole.next();
    auto other = piecewise.next();
    while (other == wire::FrameReader::Next::more && at < input.size()) {
      piecewise.feed(input.subspan(at++, 1));
      other = piecewise.next();
    }
    expect(next == other);
    if (next != wire::FrameReader::Next::frame) return;
    expect(whole.kind() == piecewise.kind());
    expect(std::equal(whole.payload().begin(), whole.payload().end(), piecewise.payload().begin(),
                      piecewise.payload().end()));
    rank = 1 - rank;
    if (whole.kind() == wire::FrameKind::gather) {
      if (const auto gather = wire::read_gather(whole.payload()))
        meeting.gather(rank, *gather, now);
    } else if (whole.kind() == wire::FrameKind::give_up) {
      meeting.give_up(rank, wire::read_give_up(whole.payload()).value_or(""));
    } else if (whole.kind() == wire::FrameKind::waits) {
      if (const auto report = wire::read_waits(whole.payload())) {
        meeting.waits(rank, *report, now);
        meeting.tick(now + kReportTime);
      }
    } else if (whole.kind() == wire::FrameKind::answer) {
      meeting.answer(rank);
    } else if (whole.kind() == wire::FrameKind::goodbye) {
      meeting.leave(rank);
    }
    (void)meeting.take_messages();
  }
}

/// Records whose key the fuzzer does not know never open; with one whose bytes it changes, nothing
/// comes out but what was sealed, in order.
void fuzz_records(Input input) {
  const wire::SessionKey key{1, 2, 3};
  wire::Opener foreign(key);
  foreign.feed(input);
  Bytes plain;
  expect(foreign.next(plain) != wire::Opener::Next::record);

  Bytes sealed;
  wire::Sealer sealer(key);
  const Bytes said = {'s', 'a', 'i', 'd'};
  for (int i = 0; i < 3; ++i) sealer.seal(said, sealed);
  for (size_t i = 0; i + 1 < input.size(); i += 2) sealed[input[i] % sealed.size()] ^= input[i + 1];
  wire::Opener opener(key);
  opener.feed(sealed);
  for (int i = 0; opener.next(plain) == wire::Opener::Next::record; ++i) {
    expect(i < 3 && plain == said);
  }
}

void fuzz_id(Input input) {
  const std::string text(input.begin(), input.end());
  Diagnostics diagnostics;
  const auto id = UniqueId::parse(text, diagnostics);
  expect(id.has_value() != diagnostics.has_errors());
  if (id) expect(id->text() == text);
}

void fuzz_handle(Input input) {
  Input rest = input;
  Diagnostics diagnostics;
  const auto handle = decode_handle(rest, diagnostics);
  expect(handle.has_value() != diagnostics.has_errors());
  if (handle) {
    Bytes written;
    encode(*handle, written);
    expect(std::equal(written.begin(), written.end(), input.begin(),
                      input.end() - static_cast<std::ptrdiff_t>(rest.size())));
  }
  if (const auto ticket = FdTicket::read(input)) {
    const Bytes written = ticket->bytes();
    expect(std::equal(written.begin(), written.end(), input.begin(), input.end()));
  }
}

/// Lines NAME=VALUE.
void fuzz_environment(Input input) {
  Environment::Values values;
  const std::string text(input.begin(), input.end());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t equals = std::min(line.find('='), line.size());
    values[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
    at = end + 1;
  }
  Diagnostics diagnostics;
  const auto launch = read_launch(Environment(values), "", diagnostics);
  expect(launch.has_value() != diagnostics.has_errors());
  if (launch) {
    expect(launch->rank < launch->size && launch->timeout.count() > 0);
    expect(launch->where.local && launch->where.host.empty() == launch->where.ports.empty());
    for (const uint16_t port : launch->where.ports) expect(port > 0);
  }
  (void)render_text(diagnostics, Sources());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Input input(data + 1, size - 1);
  switch (data[0]) {
    case 'p':
      fuzz_payloads(input);
      break;
    case 's':
      fuzz_stream(input);
      break;
    case 'r':
      fuzz_records(input);
      break;
    case 'i':
      fuzz_id(input);
      break;
    case 'h':
      fuzz_handle(input);
      break;
    case 'e':
      fuzz_environment(input);
      break;
    default:
      break;
  }
  return 0;
}
