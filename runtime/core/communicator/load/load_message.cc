#include "runtime/core/communicator/load/load_message.h"

#include <fmt/format.h>

#include <string_view>
#include <tuple>

namespace mscclc {
namespace {

constexpr size_t kMaxCallText = 512;

std::string options_text(const LoadMessage& loaded) {
  return fmt::format("for {} bytes at most, elements of {} bytes{}{}{}", loaded.max_bytes,
                     loaded.element, loaded.zero_copy ? ", zero copy" : "",
                     loaded.in_turn ? ", in turn" : "", loaded.in_order ? ", in order" : "");
}

/// What a rank does that is at a load; it may be of no call by name.
std::string doing(const LoadMessage& loaded) {
  return loaded.call.empty() ? "loads a plan by itself" : "makes " + loaded.call;
}

/// Reports how rank `r` differs from rank 0.
void report_difference(const LoadMessage& first, uint32_t r, const LoadMessage& other,
                       Diagnostics& diagnostics) {
  if (other.call != first.call) {
    diagnostics
        .error("call-differs", {},
               fmt::format("ranks make different calls: rank 0 {}; rank {} {}", doing(first), r,
                           doing(other)))
        .notes.push_back({.text = "all ranks must make the same calls, in the same order"});
  } else if (other.hash != first.hash) {
    diagnostics.error("plan-differs", {},
                      fmt::format("ranks load different plans: the hash of rank 0's is {}, that "
                                  "of rank {}'s {}",
                                  first.hash, r, other.hash));
  } else {
    diagnostics.error("options-differ", {},
                      fmt::format("ranks load the plan differently: rank 0 {}, rank {} {}",
                                  options_text(first), r, options_text(other)));
  }
}

}  // namespace

bool LoadMessage::is_like(const LoadMessage& other) const {
  return std::tie(call, hash, max_bytes, element, zero_copy, in_turn, in_order) ==
         std::tie(other.call, other.hash, other.max_bytes, other.element, other.zero_copy,
                  other.in_turn, other.in_order);
}

void LoadMessage::encode(std::vector<uint8_t>& message) const {
  const std::string_view text = std::string_view(call).substr(0, kMaxCallText);
  ByteWriter(message)
      .number(static_cast<uint32_t>(text.size()))
      .text(text)
      .text(hash)
      .number(max_bytes)
      .number(element)
      .number(static_cast<uint8_t>(zero_copy))
      .number(static_cast<uint8_t>(in_turn))
      .number(static_cast<uint8_t>(in_order))
      .number(static_cast<uint8_t>(board.size()))
      .bytes(board);
}

bool decode(ByteReader& message, size_t hash_bytes, LoadMessage& loaded, Diagnostics& diagnostics) {
  loaded.call = message.text(message.number<uint32_t>());
  loaded.hash = message.text(hash_bytes);
  loaded.max_bytes = message.number<uint64_t>();
  loaded.element = message.number<uint32_t>();
  loaded.zero_copy = message.number<uint8_t>() != 0;
  loaded.in_turn = message.number<uint8_t>() != 0;
  loaded.in_order = message.number<uint8_t>() != 0;
  loaded.board = message.bytes(message.number<uint8_t>());
  if (!message.good()) diagnostics.error("bad-message", {}, "a peer's message is cut off");
  return message.good();
}

bool same_loads(const std::vector<std::vector<uint8_t>>& messages, size_t hash_bytes,
                Diagnostics& diagnostics) {
  LoadMessage first;
  for (uint32_t r = 0; r < messages.size(); ++r) {
    ByteReader reader(messages[r]);
    LoadMessage loaded;
    if (!decode(reader, hash_bytes, loaded, diagnostics)) return false;
    if (r == 0) first = loaded;
    if (loaded.is_like(first)) continue;
    report_difference(first, r, loaded, diagnostics);
    return false;
  }
  return true;
}

}  // namespace mscclc
