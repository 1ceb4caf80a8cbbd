// What declarations say: copies and packets of buffers, credits and partners of channels.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/fix/makers.h"

namespace mscclc::fix {
namespace {

/// The word of an option's name in the head of a statement; kNothing: it is not there.
uint32_t option_of(const Case& c, const Statement& s, std::string_view name) {
  for (uint32_t w = s.first; w + 1 < s.head; ++w) {
    if (c.word(w) == name && c.kind(w + 1) == Tok::colon) return w;
  }
  return kNothing;
}

/// Where the first option would stand: after the brackets.
void add_option(Case& c, const Statement& s, const std::string& option) {
  bool others = false;
  for (uint32_t w = s.first; w + 1 < s.head; ++w) others |= c.kind(w + 1) == Tok::colon;
  c.put_after(s.head - 1, (others ? ", " : " ") + option);
}

/// Removes `name: value` and the comma at one of its sides.
void erase_option(Case& c, const Statement& s, uint32_t option) {
  const auto& words = c.outline().words();
  uint32_t first = option, last = option + 2;
  if (last >= s.head) return;
  if (c.kind(last + 1) == Tok::comma && last + 1 < s.head) {
    ++last;
  } else if (c.kind(first - 1) == Tok::comma) {
    --first;
  }
  c.add(fmt::format("leave out '{}'", c.word(option)),
        {{0, words[first].begin, words[last].end, ""}});
}

const Statement& statement(const Case& c, const Declared& d) {
  return c.outline().statements()[d.statement];
}

/// The buffers that the error names, then the others.
std::vector<const Declared*> buffers(const Case& c) {
  std::vector<const Declared*> found;
  const std::string chunk = c.error().missing ? c.error().missing->chunk : "";
  if (const Declared* named = c.scope().buffer(chunk.substr(0, chunk.find_first_of("[ ")))) {
    found.push_back(named);
  }
  for (const Declared& buffer : c.scope().buffers()) {
    if (std::ranges::find(found, &buffer) == found.end()) found.push_back(&buffer);
  }
  return found;
}

}  // namespace

void add_copies(Case& c) {
  for (const Declared* buffer : buffers(c)) {
    const Statement& s = statement(c, *buffer);
    const uint32_t copies = option_of(c, s, "copies");
    const uint32_t wanted = c.error().missing ? std::max(c.error().missing->copies, 2u) : 2;
    if (copies == kNothing) {
      add_option(c, s, fmt::format("copies: {}", wanted));
    } else if (copies + 2 < s.head && c.word(copies + 2) != std::to_string(wanted)) {
      c.replace(copies + 2, std::to_string(wanted));
    }
  }
}

void change_packets(Case& c) {
  for (const Declared* buffer : buffers(c)) {
    const Statement& s = statement(c, *buffer);
    const uint32_t packets = option_of(c, s, "packets");
    if (packets != kNothing) {
      erase_option(c, s, packets);
      continue;
    }
    std::set<std::string> formats = {"LL16"};
    for (const Declared& other : c.scope().buffers()) {
      const uint32_t format = option_of(c, statement(c, other), "packets");
      if (format != kNothing) formats.emplace(c.word(format + 2));
    }
    for (const std::string& format : formats) {
      add_option(c, s, "packets: " + format);
      add_option(c, s, fmt::format("packets: {}, copies: 2", format));
    }
  }
}

void change_credits(Case& c) {
  for (const Declared& channel : c.scope().channels()) {
    const Statement& s = statement(c, channel);
    const uint32_t credits = option_of(c, s, "credits");
    if (credits == kNothing) continue;
    erase_option(c, s, credits);
    if (credits + 2 < s.head) c.replace(credits + 2, "1");
  }
}

void change_partner(Case& c) {
  for (const Declared& channel : c.scope().channels()) {
    const Statement& s = statement(c, channel);
    for (const Declared& other : c.scope().channels()) {
      if (other.name == channel.partner) continue;
      if (channel.partner == channel.name) {
        c.put_after(s.head - 1, " to " + other.name);
        continue;
      }
      for (uint32_t w = s.first; w + 1 < s.head; ++w) {
        if (c.word(w) == "to") c.replace(w + 1, other.name);
      }
    }
  }
}

}  // namespace mscclc::fix
