// What a picture shows: boxes for the steps of the chosen blocks, arrows for what meets.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/diagnostics/printable.h"
#include "ir/print/print.h"
#include "ir/print/row_names.h"
#include "tools/draw/layout_parts.h"
#include "tools/draw/payload.h"
#include "tools/draw/repeats.h"
#include "tools/draw/words.h"

namespace mscclc::draw {
namespace {

std::string blocks_label(const Program& program, const Steps& steps, const Folded& column) {
  const int64_t place = steps.blocks[column.blocks[0]].place;
  if (place == kNoPlace) return "no thread block yet";
  std::vector<int64_t> blocks;
  if (place >= kGroupPlace) {
    const auto group = program.values(program.groups[static_cast<size_t>(place - kGroupPlace)]);
    blocks.assign(group.begin(), group.end());
    std::sort(blocks.begin(), blocks.end());
    return "group tb " + list_text(blocks);
  }
  for (const uint32_t b : column.blocks) blocks.push_back(steps.blocks[b].place);
  std::sort(blocks.begin(), blocks.end());
  std::string label = "tb " + list_text(blocks);
  if (blocks.size() > 1) label += column.other_peers ? ": each its peer" : ": alike";
  return label;
}

std::string blocks_filter(const Steps& steps, const Folded& column) {
  std::string text;
  for (const uint32_t b : column.blocks) {
    if (steps.blocks[b].place < kGroupPlace) text += fmt::format("{} ", steps.blocks[b].place);
  }
  if (!text.empty()) text.pop_back();
  return text;
}

class Builder {
 public:
  Builder(const Program& program, const Steps& steps, const Choice& choice,
          const DrawOptions& options, bool once)
      : program_(program),
        steps_(steps),
        choice_(choice),
        options_(options),
        once_(once),
        payload_(program) {}

  Result<Picture> run(const std::vector<Flow>& flows) {
    box_of_.assign(steps_.steps.size(), kNowhere);
    const bool others = choice_.bands.size() < program_.ranks.size();
    if (others) add_others();
    for (uint32_t l = 0; l < choice_.bands.size(); ++l) add_band(choice_.bands[l]);
    if (others) add_others();
    add_payload_of_others();
    if (auto wrong = what_is_wrong()) return *std::move(wrong);
    payload_.attach_loose(flows, steps_);
    for (const Flow& flow : flows) add_flow(flow);
    for (const LooseCargo& loose : payload_.loose()) add_loose(loose);
    draw_others();
    for (uint32_t b = 0; b < out_.boxes.size(); ++b) add_strips(b);
    number_colours();
    number_rows();
    return std::move(out_);
  }

 private:
  std::optional<Error> what_is_wrong() const {
    if (out_.boxes.size() > kMaxBoxes) {
      return Error{fmt::format("the picture would have {} boxes, and {} are the most",
                               out_.boxes.size(), kMaxBoxes),
                   "pick some with --rank, --tb or --chunk"};
    }
    if (!out_.boxes.empty() || options_.chunk.empty()) return std::nullopt;
    return Error{fmt::format("--chunk {}: no op that is drawn touches it", options_.chunk),
                 "chunks are called as in 'input[0]'"};
  }

  /// The band of all ranks that are not drawn.
  void add_others() {
    RankBand band;
    band.rank = kNowhere;
    band.others = true;
    band.is_used = false;
    band.title = choice_.names.turn == RankTurn::none ? "other ranks" : "the others";
    out_.bands.push_back(band);
  }

  void add_band(const ChosenRank& chosen) {
    const uint32_t l = static_cast<uint32_t>(out_.bands.size());
    RankBand band;
    band.rank = chosen.rank;
    band.title = fmt::format("rank {}", chosen.rank);
    if (choice_.names.turn != RankTurn::none)
      band.title = fmt::format("rank r (r = {})", chosen.rank);
    if (chosen.stands_for.size() > 1 && choice_.bands.size() > 1) {
      band.note = "as ranks " + list_text(std::vector<int64_t>(chosen.stands_for.begin(),
                                                               chosen.stands_for.end()));
    }
    std::vector<Folded> columns = chosen.columns;
    for (Folded& column : columns) {
      show_what_touches(column);
      band.columns.push_back(
          {blocks_label(program_, steps_, column), blocks_filter(steps_, column), {}});
    }
    band_of_[chosen.rank] = l;
    out_.bands.push_back(std::move(band));
    for (uint32_t c = 0; c < columns.size(); ++c) add_column(l, c, columns[c]);
  }

  /// Of blocks that are alike the first one is drawn: here one that touches the chunk.
  void show_what_touches(Folded& column) const {
    const auto touching = std::ranges::find_if(column.blocks, [&](uint32_t b) {
      const Block& block = steps_.blocks[b];
      for (uint32_t s = block.first; s < block.first + block.count; ++s) {
        if (touches(block.rank, steps_.steps[s])) return true;
      }
      return false;
    });
    if (touching != column.blocks.end()) std::iter_swap(column.blocks.begin(), touching);
  }

  void add_column(uint32_t l, uint32_t c, const Folded& column) {
    const Block& shown = steps_.blocks[column.blocks[0]];
    std::vector<Frame> frames;
    for (const Repeat& repeat : repeats(shown)) {
      if (repeat.times > 1) {
        const auto first = static_cast<uint32_t>(out_.boxes.size());
        frames.push_back({fmt::format("{} times, all alike", repeat.times),
                          l,
                          c,
                          first,
                          first + repeat.length - 1,
                          {}});
      }
      for (uint32_t i = 0; i < repeat.length; ++i) add_step(l, c, column, repeat, i);
    }
    add_frames();
    out_.frames.insert(out_.frames.end(), frames.begin(), frames.end());
    for (const uint32_t b : column.blocks) add_payload(steps_.blocks[b]);
  }

  std::vector<Repeat> repeats(const Block& block) const {
    if (once_) return repeats_of(program_, steps_, block);
    std::vector<Repeat> each;
    for (uint32_t k = 0; k < block.count; ++k) each.push_back({k, 1, 1});
    return each;
  }

  /// A box for the i-th step of what blocks repeat, if it touches what is drawn.
  void add_step(uint32_t l, uint32_t c, const Folded& column, const Repeat& repeat, uint32_t i) {
    const Block& shown = steps_.blocks[column.blocks[0]];
    if (!touches(shown.rank, steps_.steps[shown.first + repeat.first + i])) return;
    const uint32_t box = static_cast<uint32_t>(out_.boxes.size());
    std::vector<uint32_t> all, folded;
    for (uint32_t t = 0; t < repeat.times; ++t) {
      const uint32_t k = repeat.first + t * repeat.length + i;
      for (const uint32_t b : column.blocks) {
        if (k >= steps_.blocks[b].count) continue;
        folded.push_back(steps_.blocks[b].first + k);
        box_of_[folded.back()] = box;
      }
      all.push_back(shown.first + k);
    }
    add_box(l, c, all);
    for (const uint32_t s : folded) {
      const uint32_t data = steps_.steps[s].data;
      if (data == kNone) continue;
      add_chunks(program_, shown.rank, op_at({shown.rank, data}), out_.boxes[box].reads,
                 out_.boxes[box].writes);
    }
  }

  void add_payload(const Block& block) {
    std::vector<uint32_t> ops;
    for (uint32_t s = block.first; s < block.first + block.count; ++s) {
      ops.insert(ops.end(), steps_.steps[s].ops.begin(), steps_.steps[s].ops.end());
    }
    payload_.add_block(block.rank, ops);
  }

  /// What ranks that are not drawn send to those that are.
  void add_payload_of_others() {
    for (const Block& block : steps_.blocks) {
      if (band_of_.count(block.rank) == 0) add_payload(block);
    }
  }

  bool touches(uint32_t rank, const Step& step) const {
    if (options_.chunk.empty()) return true;
    if (step.data == kNone) return false;
    const Op& op = op_at({rank, step.data});
    for (const Operand& o : program_.all_operands(op)) {
      const Buffer& buffer = program_.buffer_of(rank, o);
      for (uint32_t k = 0; k < o.count; ++k) {
        if (buffer.kind != BufferKind::scratch &&
            fmt::format("{}", o.first + k) == options_.chunk) {
          return true;
        }
        if (run_text(program_, buffer, o.first + k, 1) == options_.chunk) return true;
      }
    }
    return false;
  }

  /// A step, each time that it is done.
  void add_box(uint32_t l, uint32_t c, const std::vector<uint32_t>& times) {
    const Step& step = steps_.steps[times[0]];
    const uint32_t rank = out_.bands[l].rank;
    Box box;
    box.band = l;
    box.column = c;
    box.level = step.level;
    box.loop = step.loop;
    for (const uint32_t s : times) {
      for (const uint32_t i : steps_.steps[s].ops) {
        const Op& op = op_at({rank, i});
        const std::string place = print_location(program_, op);
        box.ops.push_back(printable_line(print_op(program_, rank, op)) +
                          (place.empty() ? "" : "  @ " + printable_line(place)));
      }
      if (step.data != kNone) add_data(box, rank, op_at({rank, steps_.steps[s].data}));
    }
    if (step.data != kNone && times.size() > 1) {
      const Op& last = op_at({rank, steps_.steps[times.back()].data});
      const DataWords words = data_words(program_, rank, last, choice_.names);
      box.lines = {box.lines[0] + " … " + words.to, box.lines[1] + " … " + words.from};
    }
    step_of_.push_back(times[0]);
    out_.boxes.push_back(std::move(box));
  }

  /// What a box says of an op that moves data; of several, of the first.
  void add_data(Box& box, uint32_t rank, const Op& op) const {
    const int64_t chunk = main_chunk(program_, op);
    if (box.name.empty()) {
      const DataWords words = data_words(program_, rank, op, choice_.names);
      box.name = words.name;
      box.lines = {words.to, words.from};
      box.cost = info(op.kind).has(kReduces) ? CostClass::kReduce : info(op.kind).cost;
      box.chunk = chunk;
    }
    if (box.chunk != chunk) box.chunk = -1;
  }

  /// Frames around boxes of the last column that follow each other in one pipeline.
  void add_frames() {
    uint32_t last = kNowhere;
    for (uint32_t b = framed_; b < out_.boxes.size(); ++b) {
      const uint32_t loop = out_.boxes[b].loop;
      if (loop != kNone && loop != last) {
        const Loop& pipeline = program_.loops[loop];
        out_.frames.push_back({"pipeline: units of " + size_words(pipeline.unit),
                               out_.boxes[b].band,
                               out_.boxes[b].column,
                               b,
                               b,
                               {}});
      }
      if (loop != kNone) {
        out_.frames.back().last = b;
        out_.boxes[b].loop = static_cast<uint32_t>(out_.frames.size() - 1);
      }
      last = loop;
    }
    framed_ = static_cast<uint32_t>(out_.boxes.size());
  }

  void add_flow(const Flow& flow) {
    const uint32_t from_step = steps_.at(flow.from), to_step = steps_.at(flow.to);
    if (from_step == kNone || to_step == kNone) return;
    const uint32_t from = box_of_[from_step], to = box_of_[to_step];
    ++met_[flow.from].all;
    ++met_[flow.to].all;
    if (flow.rounds != 0) {
      met_[flow.to].credits = std::max(met_[flow.to].credits, flow.credits);
      met_[flow.from].later = std::max(met_[flow.from].later, flow.rounds);
    }
    if (flow.rounds != 0) return;
    if (from == kNowhere || to == kNowhere) return add_flow_of_others(flow, from, to);
    if (from == to) return;
    const bool meeting = flow.kind == FlowKind::barrier;
    const uint32_t level = out_.boxes[from].level, to_level = out_.boxes[to].level;
    if (meeting ? once_ && level != to_level : level >= to_level) return;
    ++met_[flow.from].drawn;
    ++met_[flow.to].drawn;
    const bool is_shown = shows(from, from_step) && shows(to, to_step);
    Arrow& arrow = arrow_between(from, to, is_shown);
    if (meeting) arrow.kind = ArrowKind::meeting;
    if (flow.kind == FlowKind::signal) arrow.port |= through_port(flow.from);
    label(arrow, payload_.of(flow), is_shown);
  }

  /// Of blocks that are folded: is it a step of the one that is drawn?
  bool shows(uint32_t box, uint32_t step) const {
    return steps_.block_of[step_of_[box]] == steps_.block_of[step];
  }

  /// One end of it is at a rank that is not drawn.
  void add_flow_of_others(const Flow& flow, uint32_t from, uint32_t to) {
    if (band_of_.count(flow.from.rank) != 0 && band_of_.count(flow.to.rank) != 0) return;
    const bool leaves = from != kNowhere;
    const OpRef at = leaves ? flow.from : flow.to;
    const uint32_t box = leaves ? from : to;
    if (box == kNowhere) return;
    ++met_[at].drawn;
    if (!shows(box, steps_.at(at))) return;
    add_to_others(box, leaves, leaves ? flow.to.rank : flow.from.rank, payload_.of(flow),
                  flow.kind == FlowKind::signal && through_port(flow.from));
  }

  void add_to_others(uint32_t box, bool leaves, uint32_t peer, const Cargo& cargo, bool port) {
    Others& others = others_[{box, leaves, !cargo.chunks.empty()}];
    const bool same = others.cargo.chunks.empty() || others.cargo.chunk == cargo.chunk;
    others.cargo.chunk = same ? cargo.chunk : -1;
    others.peers.push_back(peer);
    others.port |= port;
    for (const std::string& chunk : cargo.chunks) {
      if (std::ranges::count(others.cargo.chunks, chunk) == 0) others.cargo.chunks.push_back(chunk);
    }
  }

  void draw_others() {
    for (const auto& [key, others] : others_) {
      const auto& [box, leaves, data] = key;
      const uint32_t band = leaves ? static_cast<uint32_t>(out_.bands.size() - 1) : 0;
      out_.bands[band].is_used = true;
      Arrow arrow;
      (leaves ? arrow.from : arrow.to) = box;
      arrow.from_band = leaves ? out_.boxes[box].band : band;
      arrow.to_band = leaves ? band : out_.boxes[box].band;
      arrow.port = others.port;
      out_.arrows.push_back(std::move(arrow));
      labels_.push_back({true, {}, -1});
      label(out_.arrows.back(), others.cargo, true);
      const uint32_t rank = out_.bands[out_.boxes[box].band].rank;
      std::string& text = out_.arrows.back().label;
      text = choice_.names.several(rank, others.peers) + (text.empty() ? "" : ": ") + text;
    }
  }

  Arrow& arrow_between(uint32_t from, uint32_t to, bool is_shown) {
    const auto [at, is_new] = arrows_.try_emplace({from, to}, out_.arrows.size());
    if (is_new) {
      Arrow arrow;
      arrow.from = from;
      arrow.to = to;
      arrow.from_band = out_.boxes[from].band;
      arrow.to_band = out_.boxes[to].band;
      out_.arrows.push_back(std::move(arrow));
      labels_.emplace_back();
    }
    // Of blocks that are folded those count that are drawn.
    if (is_shown && !labels_[at->second].is_shown) labels_[at->second] = {true, {}, -1};
    return out_.arrows[at->second];
  }

  void label(Arrow& arrow, const Cargo& cargo, bool is_shown) {
    if (cargo.chunks.empty()) return;
    arrow.kind = ArrowKind::data;
    Label& label = labels_[static_cast<size_t>(&arrow - out_.arrows.data())];
    if (label.is_shown && !is_shown) return;
    label.chunk = label.chunks.empty() || label.chunk == cargo.chunk ? cargo.chunk : -1;
    for (const std::string& chunk : cargo.chunks) {
      if (std::ranges::count(label.chunks, chunk) == 0) label.chunks.push_back(chunk);
    }
    arrow.chunks = label.chunks;
    arrow.label = label.chunks.size() <= 2
                      ? fmt::format("{}", fmt::join(label.chunks, ", "))
                      : fmt::format("{} … ({})", label.chunks[0], label.chunks.size());
  }

  void add_loose(const LooseCargo& loose) {
    const uint32_t step = steps_.at(loose.op);
    if (step == kNone || box_of_[step] == kNowhere) return;
    const uint32_t box = box_of_[step];
    const auto band = band_of_.find(loose.peer);
    if (band == band_of_.end()) {
      if (!shows(box, step)) return;
      return add_to_others(box, loose.written, loose.peer, loose.cargo, false);
    }
    if (!loose_seen_.insert({box, band->second, loose.written}).second) return;
    Arrow arrow;
    (loose.written ? arrow.from : arrow.to) = box;
    arrow.from_band = loose.written ? out_.boxes[box].band : band->second;
    arrow.to_band = loose.written ? band->second : out_.boxes[box].band;
    out_.arrows.push_back(std::move(arrow));
    labels_.push_back({true, {}, -1});
    label(out_.arrows.back(), loose.cargo, true);
  }

  bool through_port(OpRef at) const {
    const Op& op = op_at(at);
    const auto dsts = program_.dsts(op);
    return !dsts.empty() && dsts[0].channel != kNone &&
           program_.ranks[at.rank].channels[dsts[0].channel].kind == ChannelKind::port;
  }

  /// Words of a strip, and how many times they follow one another.
  using Strips = std::vector<std::pair<std::string, uint32_t>>;

  /// What a box waits for and signals, where no arrow shows it.
  void add_strips(uint32_t b) {
    Box& box = out_.boxes[b];
    const Step& step = steps_.steps[step_of_[b]];
    const uint32_t rank = out_.bands[box.band].rank;
    Strips before, after;
    bool is_after = false;
    for (const uint32_t i : step.ops) {
      if (i == step.data) {
        is_after = true;
        continue;
      }
      const Met met = met_[{rank, i}];
      const Op& op = op_at({rank, i});
      if (step.data != kNone && met.all > 0 && met.drawn == met.all && !info(op.kind).has(kMeets)) {
        continue;
      }
      std::string words = control_words(program_, rank, op, choice_.names);
      if (met.credits != 0) words = fmt::format("↻{} {}", met.credits, words);
      if (met.credits == 0 && met.later != 0) words = "↻ " + words;
      add_strip(is_after ? after : before, std::move(words));
    }
    write_strips(before, box.before);
    write_strips(after, box.after);
  }

  static void add_strip(Strips& strips, std::string words) {
    if (!strips.empty() && strips.back().first == words) {
      ++strips.back().second;
    } else {
      strips.emplace_back(std::move(words), 1);
    }
  }

  static void write_strips(const Strips& strips, std::vector<std::string>& out) {
    for (const auto& [words, times] : strips) {
      out.push_back(times == 1 ? words : fmt::format("{} × {}", words, times));
    }
  }

  /// Chunks get colours in their order.
  void number_colours() {
    std::map<int64_t, uint32_t> known;
    for (const Box& box : out_.boxes) {
      if (box.chunk >= 0) known[box.chunk];
    }
    for (auto& [chunk, colour] : known) {
      colour = static_cast<uint32_t>(out_.colours.size());
      out_.colours.push_back(fmt::format("{}", chunk));
    }
    const auto colour_of = [&](int64_t chunk) {
      const auto at = known.find(chunk);
      return at == known.end() ? kNowhere : at->second;
    };
    for (Box& box : out_.boxes) box.colour = colour_of(box.chunk);
    for (size_t i = 0; i < out_.arrows.size(); ++i) {
      out_.arrows[i].colour = colour_of(labels_[i].chunk);
    }
  }

  void number_rows() {
    std::set<uint32_t> levels;
    for (const Box& box : out_.boxes) levels.insert(box.level);
    for (Box& box : out_.boxes) {
      box.row = static_cast<uint32_t>(std::distance(levels.begin(), levels.find(box.level)));
    }
    out_.rows = static_cast<uint32_t>(levels.size());
  }

  const Op& op_at(OpRef at) const { return program_.ranks[at.rank].ops[at.op]; }

  struct Met {
    uint32_t all = 0, drawn = 0;      // flows of an op, and those that are arrows
    uint32_t credits = 0, later = 0;  // of flows between rounds
  };
  struct Others {
    std::vector<uint32_t> peers;
    Cargo cargo;
    bool port = false;
  };
  struct Label {
    bool is_shown = false;
    std::vector<std::string> chunks;
    int64_t chunk = -1;
  };

  const Program& program_;
  const Steps& steps_;
  const Choice& choice_;
  const DrawOptions& options_;
  const bool once_;  // what blocks repeat is drawn once
  Payload payload_;
  Picture out_;
  std::vector<uint32_t> box_of_;   // of each step
  std::vector<uint32_t> step_of_;  // of each box: the step that is drawn
  std::map<uint32_t, uint32_t> band_of_;
  std::map<OpRef, Met> met_;
  std::map<std::pair<uint32_t, uint32_t>, size_t> arrows_;
  std::vector<Label> labels_;  // of each arrow
  std::set<std::tuple<uint32_t, uint32_t, bool>> loose_seen_;
  std::map<std::tuple<uint32_t, bool, bool>, Others> others_;  // box, leaves, data
  uint32_t framed_ = 0;
};

}  // namespace

Result<Picture> build_picture(const Program& program, const Steps& steps,
                              const std::vector<Flow>& flows, const Choice& choice,
                              const DrawOptions& options, bool once) {
  return Builder(program, steps, choice, options, once).run(flows);
}

}  // namespace mscclc::draw
