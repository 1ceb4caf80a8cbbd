// Packet formats: how a piece of data says that it has come.
//
//   LL8, LL16  every 4 bytes of data are followed by a 4-byte flag, the number of the call. The two
//              differ in how much a machine stores at once (8 or 16 bytes), not in bytes.
//   LL128      a line of 120 bytes of data and one 8-byte flag behind them.
//   sentinel   no flag: a word is there when it no longer holds -0.0. So a -0.0 is sent as +0.0,
//              and who reads a word puts the sentinel back.
//
// Slots are written and read in whole units; beyond the data there are zeros.
#pragma once

#include <cstring>

#include "executor/interpreter/layout.h"

namespace mscclc::device {

/// What a machine writes beside the data of the present call, and expects there.
struct Stamp {
  uint32_t flag32;    ///< LL8, LL16: never 0, which is what fresh memory holds
  uint64_t flag64;    ///< LL128
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

/// Bytes of data and of slot per unit; the same as packet_unit(), for device code.
template <PacketFormat F>
struct Unit {
  static constexpr uint32_t kData = F == PacketFormat::LL128 ? 120 : 16;
  static constexpr uint32_t kWire = F == PacketFormat::LL128                            ? 128
                                    : F == PacketFormat::LL8 || F == PacketFormat::LL16 ? 32
                                                                                        : 16;
};

/// A unit of LL8 or LL16.
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
static_assert(sizeof(FlaggedUnit) == Unit<PacketFormat::LL16>::kWire);

/// A unit of LL128.
struct Line {
  uint8_t data[120];
  uint64_t flag;
};
static_assert(sizeof(Line) == Unit<PacketFormat::LL128>::kWire);

/// Turns -0.0 into +0.0 in a row of elements, so that none looks like the sentinel.
template <class Bits>
MSCCLC_HD inline void drop_minus_zero(uint8_t* row, uint32_t n) {
  constexpr Bits kMinusZero = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  for (uint32_t i = 0; i < n; ++i) {
    Bits bits;
    memcpy(&bits, row + i * sizeof bits, sizeof bits);
    bits = bits == kMinusZero ? Bits{0} : bits;
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
