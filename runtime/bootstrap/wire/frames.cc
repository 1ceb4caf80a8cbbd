#include "runtime/bootstrap/wire/frames.h"

#include <algorithm>
#include <utility>

#include "runtime/support/bytes.h"

namespace mscclc::wire {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {'m', 's', 'c', 'c', 'l', 'c', 'b', 's'};

/// A frame whose payload fn writes.
template <class Fn>
Bytes make(FrameKind kind, Fn fn) {
  Bytes out;
  ByteWriter writer(out);
  writer.number(uint32_t{static_cast<uint8_t>(kind)}).number(uint32_t{0});
  fn(writer);
  const auto length = static_cast<uint32_t>(out.size() - 8);
  std::memcpy(out.data() + 4, &length, sizeof length);
  return out;
}

void write_text(ByteWriter& writer, std::string_view text) {
  text = text.substr(0, kMaxReason);
  writer.number(static_cast<uint32_t>(text.size())).text(text);
}

std::optional<std::string> read_text(ByteReader& reader) {
  const auto length = reader.number<uint32_t>();
  if (length > kMaxReason) return std::nullopt;
  const std::string_view text = reader.text(length);
  if (!reader.ended()) return std::nullopt;
  return std::string(text);
}

template <size_t n>
void read_array(ByteReader& reader, std::array<uint8_t, n>& to) {
  const Payload raw = reader.bytes(n);
  std::copy(raw.begin(), raw.end(), to.begin());
}

bool read_magic(ByteReader& reader) {
  std::array<uint8_t, 8> magic{};
  read_array(reader, magic);
  return reader.number<uint32_t>() == kVersion && magic == kMagic;
}

bool known(uint8_t kind) {
  return kind >= static_cast<uint8_t>(FrameKind::challenge) &&
         kind <= static_cast<uint8_t>(FrameKind::answer);
}

}  // namespace

Bytes frame(const Challenge& c) {
  return make(FrameKind::challenge,
              [&](ByteWriter& w) { w.bytes(kMagic).number(kVersion).bytes(c.nonce).bytes(c.key); });
}

Bytes frame(const Hello& h) {
  return make(FrameKind::hello, [&](ByteWriter& w) {
    w.bytes(kMagic).number(kVersion).number(h.rank).number(h.size).number(h.process);
    w.number(h.began)
        .number(h.timeout_ms)
        .bytes(h.nonce)
        .bytes(h.key)
        .bytes(h.from)
        .bytes(h.to)
        .bytes(h.proof);
  });
}

Bytes frame(const Welcome& v) {
  return make(FrameKind::welcome, [&](ByteWriter& w) {
    w.number(v.timeout_ms).number(v.silence_ms).number(v.hub_rank);
    w.number(v.process).number(v.began).bytes(v.proof);
  });
}

Bytes frame(const Refused& r) {
  return make(FrameKind::refused, [&](ByteWriter& w) { w.number(static_cast<uint8_t>(r.code)); });
}

Bytes frame(const Gather& g) {
  return make(FrameKind::gather, [&](ByteWriter& w) {
    w.number(g.step).number(static_cast<uint32_t>(g.name.size())).text(g.name).bytes(g.data);
  });
}

Bytes frame(const Gathered& g) {
  return make(FrameKind::gathered, [&](ByteWriter& w) {
    w.number(g.step).number(static_cast<uint32_t>(g.all.size()));
    for (const Payload& data : g.all) w.number(static_cast<uint32_t>(data.size())).bytes(data);
  });
}

Bytes frame(const Failure& f) {
  return make(FrameKind::failed, [&](ByteWriter& w) {
    w.number(static_cast<uint8_t>(f.kind));
    write_text(w, f.why);
  });
}

Bytes frame(const WaitReport& r) {
  return make(FrameKind::waits, [&](ByteWriter& w) {
    w.number(static_cast<uint32_t>(r.awaited.size()));
    for (const uint32_t rank : r.awaited) w.number(rank);
    write_text(w, r.why);
  });
}

Bytes give_up_frame(std::string_view why) {
  return make(FrameKind::give_up, [&](ByteWriter& w) { write_text(w, why); });
}

Bytes frame(FrameKind kind) {
  return make(kind, [](ByteWriter&) {});
}

std::optional<Challenge> read_challenge(Payload payload) {
  ByteReader reader(payload);
  Challenge c;
  const bool ours = read_magic(reader);
  read_array(reader, c.nonce);
  read_array(reader, c.key);
  if (!ours || !reader.ended()) return std::nullopt;
  return c;
}

std::optional<Hello> read_hello(Payload payload) {
  ByteReader reader(payload);
  Hello h;
  const bool ours = read_magic(reader);
  h.rank = reader.number<uint32_t>();
  h.size = reader.number<uint32_t>();
  h.process = reader.number<uint32_t>();
  h.began = reader.number<uint64_t>();
  h.timeout_ms = reader.number<uint32_t>();
  read_array(reader, h.nonce);
  read_array(reader, h.key);
  read_array(reader, h.from);
  read_array(reader, h.to);
  read_array(reader, h.proof);
  if (!ours || !reader.ended()) return std::nullopt;
  return h;
}

std::optional<Welcome> read_welcome(Payload payload) {
  ByteReader reader(payload);
  Welcome w;
  w.timeout_ms = reader.number<uint32_t>();
  w.silence_ms = reader.number<uint32_t>();
  w.hub_rank = reader.number<uint32_t>();
  w.process = reader.number<uint32_t>();
  w.began = reader.number<uint64_t>();
  read_array(reader, w.proof);
  if (!reader.ended()) return std::nullopt;
  return w;
}

std::optional<Refused> read_refused(Payload payload) {
  ByteReader reader(payload);
  const auto code = reader.number<uint8_t>();
  if (!reader.ended() || code > static_cast<uint8_t>(Refusal::other_ends)) return std::nullopt;
  return Refused{static_cast<Refusal>(code)};
}

std::optional<Gather> read_gather(Payload payload) {
  ByteReader reader(payload);
  Gather g;
  g.step = reader.number<uint64_t>();
  const auto length = reader.number<uint32_t>();
  if (length > kMaxName) return std::nullopt;
  g.name = reader.text(length);
  if (!reader.good() || reader.rest().size() > Bootstrap::kMaxBytes) return std::nullopt;
  g.data = reader.rest();
  return g;
}

std::optional<Gathered> read_gathered(Payload payload) {
  ByteReader reader(payload);
  Gathered g;
  g.step = reader.number<uint64_t>();
  const auto ranks = reader.number<uint32_t>();
  // Each rank takes at least its length: no memory is taken for ranks that cannot be there.
  if (ranks > kMaxRanks || ranks > reader.rest().size() / 4) return std::nullopt;
  g.all.reserve(ranks);
  for (uint32_t i = 0; i < ranks; ++i) g.all.push_back(reader.bytes(reader.number<uint32_t>()));
  if (!reader.ended()) return std::nullopt;
  return g;
}

std::optional<Failure> read_failure(Payload payload) {
  ByteReader reader(payload);
  const auto kind = reader.number<uint8_t>();
  auto why = read_text(reader);
  if (!why || kind > static_cast<uint8_t>(FailureKind::hang)) return std::nullopt;
  return Failure{static_cast<FailureKind>(kind), std::move(*why)};
}

std::optional<std::string> read_give_up(Payload payload) {
  ByteReader reader(payload);
  return read_text(reader);
}

std::optional<WaitReport> read_waits(Payload payload) {
  ByteReader reader(payload);
  const auto count = reader.number<uint32_t>();
  if (count > kMaxRanks || count > reader.rest().size() / 4) return std::nullopt;
  WaitReport report;
  for (uint32_t i = 0; i < count; ++i) report.awaited.push_back(reader.number<uint32_t>());
  auto why = read_text(reader);
  if (!why) return std::nullopt;
  report.why = std::move(*why);
  return report;
}

/// A large frame's memory is given back after it.
constexpr size_t kKept = 1 << 20;

void FrameReader::feed(Payload bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }

void FrameReader::clear() {
  Bytes().swap(buffer_);
  begin_ = taken_ = 0;
}

Bytes FrameReader::take_rest() {
  Bytes rest(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_ + taken_), buffer_.end());
  clear();
  return rest;
}

/// What is left moves to the front when it is less than what is done with: so each byte moves about
/// once, however many frames come at once.
void FrameReader::drop_done() {
  begin_ += std::exchange(taken_, 0);
  if (begin_ <= buffer_.size() / 2) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  if (buffer_.empty() && buffer_.capacity() > kKept) buffer_.shrink_to_fit();
}

FrameReader::Next FrameReader::next() {
  drop_done();
  ByteReader reader(held());
  const auto kind = reader.number<uint32_t>();
  const auto length = reader.number<uint32_t>();
  if (!reader.good()) return Next::more;
  if (kind > UINT8_MAX || !known(static_cast<uint8_t>(kind)) || length > limit_) return Next::bad;
  if (reader.rest().size() < length) return Next::more;
  kind_ = static_cast<FrameKind>(kind);
  taken_ = kHead + length;
  return Next::frame;
}

}  // namespace mscclc::wire
