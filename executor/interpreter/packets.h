// Packet formats on machines: how a unit lies in its slot, and how it says that it has come. Which
// formats there are, and their sizes, is in ir/ops/formats.def; a way to say so (PacketMark) that
// has no Marked<> here does not compile.
//
//   flags     every 4 bytes of data are followed by a 4-byte flag, the number of the call. Formats
//             differ in how much a machine stores at once (8 or 16 bytes), not in bytes.
//   line      a line of data and one 8-byte flag after it.
//   sentinel  no flag: a word is there when it no longer holds -0.0. So a -0.0 is sent as +0.0,
//             and the reader of a word puts the sentinel back.
//
// Slots are written and read in whole units; beyond the data there are zeros. What a mark vouches
// for stands in its own word of 8 bytes, or ahead of it: machines write units upwards, and read
// them downwards.
#pragma once

#include <cstring>

#include "executor/interpreter/numbers.h"

namespace mscclc::device {

/// What a machine writes beside the data of the present call, and expects there.
struct Stamp {
  uint32_t flag32;    ///< flags: never 0, which is what fresh memory holds
  uint64_t flag64;    ///< lines
  uint64_t sentinel;  ///< -0.0 of the data type, as often as it fits in 8 bytes
  uint32_t word;      ///< sentinel: bytes that are there or not as one: 4, or 8 for f64
};

/// The stamp of call `call` (from 0) on elements of `element` bytes.
MSCCLC_HD inline Stamp stamp_of(uint64_t call, uint32_t element) {
  Stamp s;
  // The first billions of calls are spared the division.
  s.flag32 = static_cast<uint32_t>(call < 0xffffffffu ? call : call % 0xffffffffu) + 1;
  s.flag64 = call + 1;
  s.sentinel = element == 8   ? 0x8000000000000000u
               : element == 4 ? 0x8000000080000000u
               : element == 2 ? 0x8000800080008000u
                              : 0x8080808080808080u;
  s.word = element == 8 ? 8 : 4;
  return s;
}

/// A unit with flags.
struct FlaggedUnit {
  uint32_t words[8];  ///< data, flag, data, flag, ...

  MSCCLC_HD bool ready(uint32_t flag) const {
    return words[1] == flag && words[3] == flag && words[5] == flag && words[7] == flag;
  }
  MSCCLC_HD void get(uint8_t* data) const {
    const uint32_t out[4] = {words[0], words[2], words[4], words[6]};
    memcpy(data, out, sizeof out);
  }
  MSCCLC_HD void set(const uint8_t* data, uint32_t flag) {
    uint32_t in[4];
    memcpy(in, data, sizeof in);
    for (uint32_t i = 0; i < 4; ++i) {
      words[2 * i] = in[i];
      words[2 * i + 1] = flag;
    }
  }
};
/// Where the marks of a unit stand: one of `bytes` bytes at `first`, and every `step` from there.
struct Marks {
  uint32_t first, step, bytes;
};

/// How units of kData bytes in kWire lie that have marks of one kind:
///   stamp(s)              what a mark holds in a unit that has come; of a sentinel, what it does
///   not marks(word)           where they stand; `word`: Stamp::word missing(unit, s)      0 if a
///   unit in the host's memory has come, without a branch get(unit, data)       its data put(s,
///   data, unit)    the reverse, with this call's marks
template <PacketMark mark, uint32_t kData, uint32_t kWire>
struct Marked;

template <uint32_t kData, uint32_t kWire>
struct Marked<PacketMark::none, kData, kWire> {};

template <uint32_t kData, uint32_t kWire>
struct Marked<PacketMark::flags, kData, kWire> {
  static_assert(kData == 16 && kWire == sizeof(FlaggedUnit));
  MSCCLC_HD static constexpr uint64_t stamp(const Stamp& s) { return s.flag32; }
  MSCCLC_HD static constexpr Marks marks(uint32_t) { return {4, 8, 4}; }
  static uint64_t missing(const uint8_t* unit, const Stamp& s) {
    FlaggedUnit found;
    memcpy(&found, unit, sizeof found);
    uint64_t missing = 0;
    for (uint32_t w = 1; w < 8; w += 2) missing |= found.words[w] ^ s.flag32;
    return missing;
  }
  static void get(const uint8_t* unit, uint8_t* data) {
    FlaggedUnit found;
    memcpy(&found, unit, sizeof found);
    found.get(data);
  }
  static void put(const Stamp& s, const uint8_t* data, uint8_t* unit) {
    FlaggedUnit made;
    made.set(data, s.flag32);
    memcpy(unit, &made, sizeof made);
  }
};

template <uint32_t kData, uint32_t kWire>
struct Marked<PacketMark::line, kData, kWire> {
  static_assert(kData % 8 == 0 && kWire == kData + 8);
  MSCCLC_HD static constexpr uint64_t stamp(const Stamp& s) { return s.flag64; }
  MSCCLC_HD static constexpr Marks marks(uint32_t) { return {kData, kWire, 8}; }
  static uint64_t missing(const uint8_t* unit, const Stamp& s) {
    uint64_t flag;
    memcpy(&flag, unit + kData, sizeof flag);
    return flag ^ s.flag64;
  }
  static void get(const uint8_t* unit, uint8_t* data) { memcpy(data, unit, kData); }
  static void put(const Stamp& s, const uint8_t* data, uint8_t* unit) {
    memcpy(unit, data, kData);
    memcpy(unit + kData, &s.flag64, sizeof s.flag64);
  }
};

template <uint32_t kData, uint32_t kWire>
struct Marked<PacketMark::sentinel, kData, kWire> {
  static_assert(kData % 8 == 0 && kWire == kData);
  MSCCLC_HD static constexpr uint64_t stamp(const Stamp& s) { return s.sentinel; }
  MSCCLC_HD static constexpr Marks marks(uint32_t word) { return {0, word, word}; }
  static uint64_t missing(const uint8_t* unit, const Stamp& s) {
    return s.word == 8 ? count<uint64_t>(unit, s) : count<uint32_t>(unit, s);
  }
  static void get(const uint8_t* unit, uint8_t* data) { memcpy(data, unit, kData); }
  static void put(const Stamp&, const uint8_t* data, uint8_t* unit) { memcpy(unit, data, kData); }

 private:
  /// Words that hold the sentinel.
  template <class Word>
  static uint64_t count(const uint8_t* unit, const Stamp& s) {
    uint64_t missing = 0;
    for (uint32_t i = 0; i < kData; i += sizeof(Word)) {
      Word word;
      memcpy(&word, unit + i, sizeof word);
      missing += word == static_cast<Word>(s.sentinel);
    }
    return missing;
  }
};

/// What machines know of a packet format: its row, as constants, and how its units lie.
template <PacketFormat F>
struct Format : Marked<info(F).mark, info(F).data, info(F).wire> {
  static constexpr PacketFormatInfo kInfo = info(F);
  static constexpr uint32_t kData = kInfo.data, kWire = kInfo.wire, kStore = kInfo.store;
  static constexpr PacketMark kMark = kInfo.mark;
  static constexpr bool kFlags = kMark == PacketMark::flags;
  static constexpr bool kLine = kMark == PacketMark::line;
  static constexpr bool kSentinel = kMark == PacketMark::sentinel;
  static constexpr bool kDense = kInfo.is_dense();
  static constexpr uint32_t kRows = kWire / 16;  ///< of 16 bytes, as much as a GPU's thread handles
};

/// A mark as it was found, and what it should hold (a sentinel: should not).
struct FoundMark {
  uint64_t expected, seen;
  bool missing;
};

/// The first mark of a unit that says that the unit has not come, else its last one. load(at, wide)
/// reads the 4 bytes at `at` of the unit, or 8.
template <PacketFormat F, class Load>
MSCCLC_HD inline FoundMark find_missing_mark(uint64_t stamp, uint32_t word, Load load) {
  const Marks marks = Format<F>::marks(word);
  const bool wide = marks.bytes == 8;
  FoundMark mark{wide ? stamp : static_cast<uint32_t>(stamp), 0, false};
  for (uint32_t at = marks.first; at < Format<F>::kWire; at += marks.step) {
    mark.seen = load(at, wide);
    mark.missing = (mark.seen == mark.expected) == Format<F>::kSentinel;
    if (mark.missing) break;
  }
  return mark;
}

/// Calls fn with a packet format as a constant: fn(FormatTag<F>{}); not at all for `none`.
template <PacketFormat F>
struct FormatTag {
  static constexpr PacketFormat kFormat = F;
};
template <class Fn>
MSCCLC_RUN inline void with_format(PacketFormat format, Fn fn) {
  switch (format) {
#define FORMAT(name, ...)  \
  case PacketFormat::name: \
    return fn(FormatTag<PacketFormat::name>{});
#include "ir/ops/formats.def"
#undef FORMAT
    case PacketFormat::none:
      return;
  }
}

/// Turns -0.0 into +0.0 in a row of elements, so that none looks like the sentinel.
template <class Bits>
MSCCLC_HD inline void drop_minus_zero(uint8_t* row, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    Bits bits;
    memcpy(&bits, row + i * sizeof bits, sizeof bits);
    bits = without_minus_zero(bits);
    memcpy(row + i * sizeof bits, &bits, sizeof bits);
  }
}

/// The same for `bytes` of elements of `element` bytes.
MSCCLC_HD inline void drop_minus_zeros(uint8_t* row, uint32_t bytes, uint32_t element) {
  if (element == 8) return drop_minus_zero<uint64_t>(row, bytes / 8);
  if (element == 4) return drop_minus_zero<uint32_t>(row, bytes / 4);
  if (element == 2) return drop_minus_zero<uint16_t>(row, bytes / 2);
  return drop_minus_zero<uint8_t>(row, bytes);
}

}  // namespace mscclc::device
