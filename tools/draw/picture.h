// A picture of a plan, laid out: bands, boxes, arrows and where they stand, in pixels. Writers
// (svg.cc, html.cc, dot.cc) turn it into a file; layout.h makes it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/ops/ops.h"

namespace mscclc::draw {

inline constexpr uint32_t kNowhere = 0xffffffffu;

struct Point {
  double x = 0, y = 0;
};

/// Where something stands.
struct Area {
  double x = 0, y = 0, w = 0, h = 0;
  double middle() const { return x + w / 2; }
  double bottom() const { return y + h; }
};

/// The blocks of a band that are drawn as one.
struct ColumnHead {
  std::string label;   ///< "tb 0–7"
  std::string blocks;  ///< of a filter: "0 1 2"
  Area at;
};

/// A rank; or all that are not drawn, at the left with what comes from them, at the right with what
/// goes to them.
struct RankBand {
  uint32_t rank = 0;
  bool others = false, is_used = true;
  std::string title, note;
  std::vector<ColumnHead> columns;
  Area at;
};

/// A step of a block.
struct Box {
  uint32_t band = 0, column = 0, level = 0, row = 0;
  std::string name;                 ///< of the op that moves data; "" without one
  std::vector<std::string> before;  ///< what it waits for, if no arrow shows it
  std::vector<std::string> lines;   ///< the chunks
  std::vector<std::string> after;   ///< what it signals, if no arrow shows it
  std::vector<std::string> ops;     ///< in full, with their places in the source
  CostClass cost = CostClass::kControl;
  int64_t chunk = -1;                   ///< of input or output; -1: none, or several
  uint32_t colour = kNowhere;           ///< of that chunk
  std::set<std::string> reads, writes;  ///< of all its blocks: "1 inbox[0]"
  bool is_cut = false;                  ///< not all words fit
  uint32_t loop = kNowhere;             ///< which frame it is in
  Area at;
};

enum class ArrowKind : uint8_t { data, order, meeting };

/// From a box to a box of a later row, or to a band.
struct Arrow {
  uint32_t from = kNowhere, to = kNowhere;  ///< boxes; one may be missing
  uint32_t from_band = 0, to_band = 0;
  ArrowKind kind = ArrowKind::order;
  bool port = false;                ///< over a port: the network, or a copy engine
  std::string label;                ///< the chunks that have arrived
  std::vector<std::string> chunks;  ///< all of them
  uint32_t colour = kNowhere;
  uint32_t bus = kNowhere;    ///< drawn as part of this one
  uint32_t level = 0;         ///< of several that go along a row, between it and the next one
  bool around = false;        ///< leaves the picture at one side and comes in at the other
  std::vector<Point> points;  ///< the way; two for each part of an arrow that goes around
};

/// Arrows from each of some boxes to all others, as one line.
struct Bus {
  std::vector<uint32_t> from, to;  ///< boxes
  ArrowKind kind = ArrowKind::order;
  std::string label;
  std::set<std::string> chunks;
  double y = 0, left = 0, right = 0;
  double room = 0;                       ///< for the label
  std::vector<std::vector<Point>> ways;  ///< down to each of `to`
};

/// A pipeline.
struct Frame {
  std::string label;
  uint32_t band = 0, column = 0, first = 0, last = 0;  ///< boxes
  Area at;
};

struct Picture {
  std::string name;  ///< of the program
  std::string title;
  std::vector<std::string> facts;  ///< lines below the title
  std::vector<RankBand> bands;     ///< in order of ranks
  std::vector<Box> boxes;          ///< by band, column and step
  std::vector<Arrow> arrows;
  std::vector<Bus> buses;
  std::vector<Frame> frames;
  std::vector<std::string> colours;  ///< the chunks that have them, by colour
  std::string begins, ends;          ///< what stands at the borders of the call
  double begin_y = 0, end_y = 0, width = 0, height = 0;
  uint32_t rows = 0;
};

}  // namespace mscclc::draw
