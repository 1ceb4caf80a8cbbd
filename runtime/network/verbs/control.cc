#include "runtime/network/verbs/control.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "ir/diagnostics/printable.h"
#include "runtime/support/bytes.h"

namespace mscclc::verbs {
namespace {

constexpr std::string_view kMagic = "mscclcV2";
constexpr size_t kMaxBody = 1024;
constexpr size_t kHead = 3;  ///< what it is, and the length of its body

}  // namespace

Bytes encode(const VerbsOffer& offer) {
  Bytes bytes;
  ByteWriter(bytes)
      .text(kMagic)
      .number(static_cast<uint8_t>(offer.atomics))
      .bytes(net::encode(offer.socket));
  return bytes;
}

std::optional<VerbsOffer> decode_verbs_offer(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const bool ours = reader.text(kMagic.size()) == kMagic;
  const auto atomics = reader.number<uint8_t>();
  const auto socket = net::decode_offer(reader.rest());
  if (!ours || !reader.good() || atomics > 1 || !socket) return std::nullopt;
  return VerbsOffer{atomics != 0, *socket};
}

Bytes encode(const Meeting& meeting) {
  Bytes bytes;
  ByteWriter writer(bytes);
  const PathEnd& path = meeting.path;
  writer.number(static_cast<uint8_t>(meeting.mode))
      .number(path.link_layer)
      .number(path.gid_type)
      .number(path.mtu)
      .number(path.most_atomics)
      .number(path.lid)
      .bytes(path.gid)
      .number(meeting.records)
      .number(meeting.records_key)
      .number(static_cast<uint8_t>(meeting.queues.size()));
  for (const QueueEnd& queue : meeting.queues) writer.number(queue.number).number(queue.first);
  return bytes;
}

std::optional<Meeting> decode_meeting(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  Meeting meeting;
  PathEnd& path = meeting.path;
  const auto mode = reader.number<uint8_t>();
  path.link_layer = reader.number<uint8_t>();
  path.gid_type = reader.number<uint8_t>();
  path.mtu = reader.number<uint8_t>();
  path.most_atomics = reader.number<uint8_t>();
  path.lid = reader.number<uint16_t>();
  const auto gid = reader.bytes(path.gid.size());
  meeting.records = reader.number<uint64_t>();
  meeting.records_key = reader.number<uint32_t>();
  const auto queues = reader.number<uint8_t>();
  if (!reader.good() || mode > static_cast<uint8_t>(SignalMode::host_no_atomic) || queues == 0 ||
      queues > kMaxQueues) {
    return std::nullopt;
  }
  meeting.mode = static_cast<SignalMode>(mode);
  std::copy(gid.begin(), gid.end(), path.gid.begin());
  for (uint8_t i = 0; i < queues; ++i) {
    const auto number = reader.number<uint32_t>();
    meeting.queues.push_back({number, reader.number<uint32_t>()});
  }
  if (!reader.ended()) return std::nullopt;
  return meeting;
}

bool ControlLine::send_plain(const Bytes& bytes) {
  return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

bool ControlLine::send(ControlMessage::What what, const Bytes& body) {
  Bytes bytes;
  ByteWriter(bytes)
      .number(static_cast<uint8_t>(what))
      .number(static_cast<uint16_t>(body.size()))
      .bytes(body);
  return send_plain(bytes);
}

bool ControlLine::send(ControlMessage::What what, uint64_t number) {
  Bytes body;
  ByteWriter(body).number(number);
  return send(what, body);
}

void ControlLine::send_failure(const std::string& why) {
  const size_t most = std::min(why.size(), kMaxBody);
  (void)send(ControlMessage::failed, Bytes(why.begin(), why.begin() + static_cast<long>(most)));
}

/// True: so many bytes have come and are not taken.
bool ControlLine::fill(size_t wanted) {
  while (come_.size() < wanted && !ended_) {
    uint8_t bytes[kHead + kMaxBody];
    const size_t room = std::min(wanted - come_.size(), sizeof bytes);
    const ssize_t n = ::recv(socket_.get(), bytes, room, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) {
      ended_ = true;
      error_ = n == 0 ? 0 : errno;
      return false;
    }
    come_.insert(come_.end(), bytes, bytes + n);
  }
  return come_.size() >= wanted;
}

// What is no message ends the connection as if it had broken.
std::optional<ControlMessage> ControlLine::next() {
  if (!fill(kHead)) return std::nullopt;
  ByteReader head(come_);
  const auto what = head.number<uint8_t>();
  const size_t length = head.number<uint16_t>();
  if (what < ControlMessage::connect || what > ControlMessage::noted || length > kMaxBody) {
    ended_ = true;
    error_ = EBADMSG;
    return std::nullopt;
  }
  if (!fill(kHead + length)) return std::nullopt;
  ControlMessage message{static_cast<ControlMessage::What>(what),
                         Bytes(come_.begin() + kHead, come_.end())};
  come_.clear();
  return message;
}

std::optional<uint64_t> number_of(const ControlMessage& message) {
  ByteReader reader(message.body);
  const auto number = reader.number<uint64_t>();
  if (!reader.ended()) return std::nullopt;
  return number;
}

std::string text_of(const ControlMessage& message) {
  return printable_line(
      std::string_view(reinterpret_cast<const char*>(message.body.data()), message.body.size()));
}

}  // namespace mscclc::verbs
