#include "tests/random_programs/families/repeats.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc::random_programs {

Sketch Repeats::make() {
  sketch_.family = kind_.family;
  sketch_.repeats = true;
  ranks_ = one_in(dice_, 5) ? 2 : 3;
  origin_ = any(ranks_);
  sketch_.ranks.resize(ranks_);
  for (RankSketch& rank : sketch_.ranks) rank.blocks.resize(one_in(dice_, 3) ? 2 : 1);
  static constexpr const char* kFormats[] = {"LL16", "LL16", "LL16", "LL8", "LL128", "sentinel"};
  format_ = kFormats[any(kind_.ports > 0 ? 4 : 6)];
  if (format_ == "sentinel") sketch_.types = "[f32]";
  calm_ = one_in(dice_, 3);
  declare();
  choose_writers();
  // What is not known is never the same: no second store of it may be right.
  if (calm_ && kind_.sent == Sent::junk) writers_.resize(1);
  for (Writer& writer : writers_) fill(writer);
  write(writers_[0]);
  for (size_t i = 1; calm_ && i < writers_.size(); ++i) {
    give(writers_[i - 1].process, writers_[i].process, false);
    take(taker(writers_[i].process), 8);
    write(writers_[i]);
  }
  const uint32_t acts = calm_ ? any(3) : 2 + any(7);
  for (uint32_t i = 0; i < acts; ++i) act();
  finish();
  return std::move(sketch_);
}

void Repeats::declare() {
  for (uint32_t r = 0; r < ranks_; ++r) {
    std::vector<BufferSketch>& buffers = sketch_.ranks[r].buffers;
    for (const char* name : {"w", "x", "y"}) buffers.push_back({.name = name});
    buffers.push_back({.name = "v", .copies = 2, .packets = format_});
    buffers.push_back({.name = "u", .copies = 1 + any(2), .packets = format_});
  }
  sketch_.ranks[0].buffers.push_back(
      {.name = "s", .copies = one_in(dice_, 3) ? 2u : 1u, .packets = format_});
}

/// Two or three blocks, most often of different ranks.
void Repeats::choose_writers() {
  const uint32_t count = one_in(dice_, 6) ? 3 : 2;
  for (uint32_t tries = 0; writers_.size() < count && tries < 20; ++tries) {
    const uint32_t rank = one_in(dice_, 6) ? any(ranks_) : 1 + any(ranks_ - 1);
    const Process p = {rank, any(static_cast<uint32_t>(sketch_.ranks[rank].blocks.size()))};
    const auto same = [&](const Writer& w) {
      return w.process == p || (w.process.rank == rank && !one_in(dice_, 4));
    };
    if (std::ranges::any_of(writers_, same)) continue;
    writers_.push_back({.process = p});
  }
  if (writers_.size() < 2) writers_.push_back(writers_[0]);  // one block, twice
  for (size_t i = 0; i < writers_.size(); ++i) {
    Writer& w = writers_[i];
    const bool must = writers_.size() - i <= kind_.ports;
    w.port = w.process.rank != 0 && format_ != "LL128" && (must || one_in(dice_, 8));
  }
  if (one_in(dice_, 2)) std::swap(writers_[0], writers_[1]);
}

void Repeats::sync(Process p) {
  if (!one_in(dice_, 8)) op(p, "sync");
}

std::string Repeats::channel(Process p, Process q, bool port) {
  const Process a = std::min(p, q), b = std::max(p, q);
  const std::string name =
      fmt::format("{}{}{}_{}{}", port ? "n" : "c", a.rank, b.rank, a.block, b.block);
  if (std::ranges::find(channels_, name) == channels_.end()) {
    channels_.push_back(name);
    connect(sketch_, port ? "port" : "memory", name, a.rank, b.rank);
  }
  return name;
}

std::string Repeats::at(Process p, uint32_t rank, const std::string& chunk, bool port) {
  return p.rank == rank ? chunk : channel(p, {rank, 0}, port) + "." + chunk;
}

// ---- what writers have

void Repeats::fill(Writer& writer) {
  const Process p = writer.process, from = {origin_, 0};
  writer.source = "w[0]";
  if (kind_.sent == Sent::junk) {
    if (one_in(dice_, 3)) mix(p);
  } else if (p.rank == origin_) {
    writer.source = "input[0]";
  } else if (one_in(dice_, 3)) {
    op(from, fmt::format("put_packets {} <- input[0]", at(from, p.rank, "v[0]")));
    writer.source = "v[0]";
    writer.forwards = true;
  } else {
    op(from, fmt::format("put {} <- input[0]", at(from, p.rank, "w[0]")));
    sync(from);
    const std::string c = channel(from, p);
    op(from, "signal " + c);
    taker(p).ops.push_back("wait " + c);
  }
  if (!writer.forwards || one_in(dice_, 2)) fill_box(writer);
}

/// What a port sends lies in packets: made here, or as they have come.
void Repeats::fill_box(Writer& writer) {
  const Process p = writer.process;
  if (!writer.port && !one_in(dice_, 8)) return;
  take(taker(p), 2);
  if (writer.forwards) {
    op(p, fmt::format("unpack_packets w[0] <- {}", writer.source));
    sync(p);
    writer.source = "w[0]";
  }
  op(p, "copy_packets u[0] <- " + writer.source);
  if (!writer.port) op(p, "unpack_packets y[0] <- u[0]");
  sync(p);
  writer.source = writer.port ? "u[0]" : "y[0]";
  writer.forwards = false;
}

/// Something that is written in part, or in one call like in another.
void Repeats::mix(Process p) {
  switch (any(3)) {
    case 0:
      op(p, "copy w[0] <- input[0] part: [0, 2]");
      break;
    case 1:
      op(p, "reduce w[0] <- x[0], y[0]");
      break;
    default:
      op(p, "copy w[0] <- x[0]");
  }
  sync(p);
}

// ---- what is done with the slot

void Repeats::write(Writer& writer) {
  const Process p = writer.process;
  if (!writer.written || one_in(dice_, 2)) take(taker(p), 4);
  writer.written = true;
  const std::string slot = at(p, 0, "s[0]", writer.port);
  const char* const put = writer.forwards && p.rank != 0 ? "read_put_packets"
                          : p.rank == 0                  ? "copy_packets"
                                                         : "put_packets";
  if (writer.forwards && p.rank == 0) {
    op(p, fmt::format("unpack_packets w[0] <- {}", writer.source));
    sync(p);
  }
  op(p, fmt::format("{} {} <- {}", put, slot,
                    writer.forwards && p.rank == 0 ? "w[0]" : writer.source));
  if (writer.port && one_in(dice_, 3)) op(p, "flush " + channel(p, {0, 0}, true));
  if (one_in(dice_, 3)) sync(p);
  if (one_in(dice_, 2)) give(p, hub(), one_in(dice_, 2));
}

void Repeats::poll() {
  const Process p = hub();
  if (one_in(dice_, 2)) take(taker(p), 1 + any(2));
  const bool out = kind_.sent == Sent::data && one_in(dice_, 2);
  op(p, fmt::format("unpack_packets {} <- s[0]", out           ? "output[0]"
                                                 : any(2) == 0 ? "x[0]"
                                                               : "y[0]"));
  kept_ |= out;
  ++polls_;
  sync(p);
}

void Repeats::overwrite() {
  const Writer& writer = writers_[any(static_cast<uint32_t>(writers_.size()))];
  if (!writer.written || writer.source == "input[0]") return;
  const Process p = one_in(dice_, 3) ? writer.process : hub();
  take(taker(p), any(2));
  const bool packets = writer.source[0] == 'u' || writer.source[0] == 'v';
  const std::string to = at(p, writer.process.rank, writer.source);
  const char* const name = p.rank == writer.process.rank ? packets ? "copy_packets" : "copy"
                           : packets                     ? "put_packets"
                                                         : "put";
  op(p, fmt::format("{} {} <- input[1]", name, to));
  if (one_in(dice_, 2)) sync(p);
}

void Repeats::act() {
  const uint32_t kind = any(12);
  Writer& writer = writers_[any(static_cast<uint32_t>(writers_.size()))];
  if (kind < 3) return writer.written ? poll() : write(writer);
  if (kind < 5) return poll();
  if (kind < 7) return calm_ ? poll() : overwrite();
  if (kind < 9) return give(hub(), writer.process, one_in(dice_, 2));
  if (kind < 10) return give(writer.process, hub(), one_in(dice_, 2));
  if (kind < 11) return give(writers_.front().process, writers_.back().process, one_in(dice_, 2));
  if (!takers_.empty()) take(takers_[any(static_cast<uint32_t>(takers_.size()))], 2);
}

// ---- who hears of what

Repeats::Taker& Repeats::taker(Process p) {
  const auto found = std::ranges::find(takers_, p, &Taker::process);
  return found != takers_.end() ? *found : takers_.emplace_back(Taker{.process = p});
}

/// A signal that is taken later, or a release.
void Repeats::give(Process from, Process to, bool relaxed) {
  if (from == to) return;
  if (from.rank == to.rank) {
    const std::string name = fmt::format("e{}{}", from.block, to.block);
    std::vector<SemaphoreSketch>& own = sketch_.ranks[from.rank].semaphores;
    if (std::ranges::find(own, name, &SemaphoreSketch::name) == own.end()) own.push_back({name, 0});
    sync(from);
    op(from, "release " + name);
    return taker(to).ops.push_back("acquire " + name);
  }
  const std::string text = channel(from, to) + (relaxed ? " relaxed" : "");
  if (!relaxed) sync(from);
  op(from, "signal " + text);
  taker(to).ops.push_back("wait " + text);
}

void Repeats::take(Taker& taker, size_t count) {
  for (; count > 0 && !taker.ops.empty(); --count) {
    const std::string text = taker.ops.front();
    taker.ops.pop_front();
    op(taker.process, text);
    if (!text.ends_with("relaxed")) sync(taker.process);
  }
}

// ---- the end

void Repeats::finish() {
  for (Writer& writer : writers_) {
    if (!writer.written) write(writer);
  }
  if (polls_ == 0 || one_in(dice_, 2)) poll();
  for (Taker& taker : takers_) take(taker, taker.ops.size());
  const uint32_t from = kept_ ? origin_ : 0;
  if (!kept_) op({0, 0}, "copy output[0] <- input[0]");
  sketch_.promises.push_back(fmt::format("output[0] at 0 = input[0] at {}", from));
  sketch_.collective =
      fmt::format("custom(ranks: {}, input: 2, output: 1, inplace: false)", ranks_);
  if (calm_ || !one_in(dice_, 3)) close();
}

/// Some ranks say that they are done.
void Repeats::close() {
  const bool all = calm_ || one_in(dice_, 2);
  for (uint32_t r = 0; r < ranks_; ++r) sync({r, 0});
  for (uint32_t r = 1; r < ranks_; ++r) {
    const Process p = {r, 0}, middle = {0, 0};
    const uint32_t ways = all ? 2 : any(4);
    const std::string c = channel(p, middle);
    if (ways >= 1) op(p, "signal " + c);
    if (ways >= 2) op(middle, "signal " + c);
    if (ways >= 1) op(middle, "wait " + c);
    if (ways >= 2) op(p, "wait " + c);
  }
}

}  // namespace mscclc::random_programs
