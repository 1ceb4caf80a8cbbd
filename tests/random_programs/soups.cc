// Sums and moves of all kinds by any block of any rank, in an order that one process would keep.
// Who touches what another has touched before hears of that first, but for a few draws: by signals,
// barriers and semaphores, or because the data comes in packets. What outputs hold in the end is
// promised. All of it may be the body of a pipeline.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tests/random_programs/families.h"

namespace mscclc::random_programs {
namespace {

/// Which ranks' inputs (all of one position) are added up there, each once; or it is not known.
struct Value {
  uint32_t position = 0;
  std::vector<uint32_t> ranks = {};
  bool operator==(const Value&) const = default;
  bool known() const { return !ranks.empty(); }
};

struct Place {
  uint32_t rank = 0;
  std::string name;
  auto operator<=>(const Place&) const = default;
};

class Soup {
 public:
  explicit Soup(Dice& dice) : dice_(dice) {}

  Sketch make() {
    sketch_.family = "soups";
    ranks_ = 1 + dice_.below(one_in(dice_, 3) ? 3 : 2);
    if (ranks_ == 1 && !one_in(dice_, 4)) ranks_ = 2;
    blocks_ = 1 + dice_.below(2);
    positions_ = 1 + dice_.below(2);
    either_ = one_in(dice_, 3);
    piped_ = one_in(dice_, 2);
    gathers_ = one_in(dice_, 5);
    wide_ = !gathers_ && one_in(dice_, 4);
    if (wide_) positions_ = 1;
    unit_ = 16 * (1 + dice_.below(3));
    slack_ = one_in(dice_, 3) ? 6 : 14;
    full_close_ = !one_in(dice_, 3);
    sketch_.ranks.resize(ranks_);
    static constexpr const char* kFormats[] = {"LL8", "LL16", "LL16", "LL128", "sentinel"};
    format_ = kFormats[dice_.below(5)];
    with_packets_ = !piped_ && one_in(dice_, 2);
    with_switch_ = ranks_ > 1 && one_in(dice_, 3);
    declare();
    begin();
    const uint32_t steps = 2 + dice_.below(8);
    const uint32_t cut = one_in(dice_, 2) ? steps : dice_.below(steps);
    for (uint32_t i = 0; i < steps; ++i) {
      if (i == cut) cut_here();
      step();
    }
    empty_slots();
    if (one_in(dice_, 4)) cut_here();
    fill_outputs();
    if (one_in(dice_, 4)) cut_here();
    close();
    contract();
    assemble();
    return std::move(sketch_);
  }

 private:
  using Clock = std::vector<uint32_t>;
  struct Access {
    uint32_t process, time;
    bool write;
  };
  struct Slot {
    Place place;
    Value value;
  };
  /// An operand of a step: what is written down, and the place that it is.
  struct Operand {
    std::string text;
    Place place;
  };

  // ---- processes: blocks, then callers

  uint32_t processes() const { return ranks_ * blocks_ + ranks_; }
  uint32_t process(uint32_t rank, uint32_t block) const { return rank * blocks_ + block; }
  uint32_t caller(uint32_t rank) const { return ranks_ * blocks_ + rank; }
  uint32_t rank_of(uint32_t p) const {
    return p < ranks_ * blocks_ ? p / blocks_ : p - ranks_ * blocks_;
  }
  uint32_t block_of(uint32_t p) const { return p % blocks_; }
  uint32_t any(uint32_t n) { return dice_.below(n); }
  bool slips() { return one_in(dice_, slack_); }

  void op(uint32_t p, const std::string& text) { body_[p].push_back(text); }
  void sync(uint32_t p) {
    if (slips()) return;
    op(p, "sync");
    settled_[p] = time_[p];
  }

  void declare() {
    for (uint32_t r = 0; r < ranks_; ++r) {
      RankSketch& rank = sketch_.ranks[r];
      rank.blocks.resize(blocks_);
      if (with_switch_) {
        std::vector<uint32_t> all;
        for (uint32_t q = 0; q < ranks_; ++q) all.push_back(q);
        rank.channels.push_back(fmt::format("channel sw = switch([{}])", fmt::join(all, ", ")));
      }
    }
    for (const char* name : {"s", "t", "u"}) {
      const uint32_t units = piped_ && !wide_ && one_in(dice_, 2) ? 2 + any(2) : 0;
      for (RankSketch& rank : sketch_.ranks) {
        rank.buffers.push_back({.name = name, .chunks = wide_ ? 2u : 1u, .units = units});
      }
    }
  }

  void begin() {
    body_.resize(processes());
    time_.assign(processes(), 0);
    settled_.assign(processes(), 0);
    known_.assign(processes(), Clock(processes(), 0));
    for (uint32_t r = 0; r < ranks_; ++r) {
      time_[caller(r)] = settled_[caller(r)] = 1;
      for (uint32_t b = 0; b < blocks_; ++b) known_[process(r, b)][caller(r)] = 1;
      for (uint32_t i = 0; i < outputs(); ++i) {
        accesses_[{r, fmt::format("output[{}]", i)}].push_back({caller(r), 1, true});
      }
      for (uint32_t i = 0; i < positions_; ++i) {
        const Place input = {r, fmt::format("input[{}]", i)};
        accesses_[origin(input)].push_back({caller(r), 1, true});
        values_[input] = {i, {r}};
      }
    }
  }

  /// Chunks of an output: a row for each rank if the plan gathers.
  uint32_t outputs() const { return gathers_ ? positions_ * ranks_ : positions_; }
  static uint32_t number(const std::string& name) {
    return static_cast<uint32_t>(std::stoul(name.substr(name.find('[') + 1)));
  }

  /// In place, an input lies where the output does.
  Place origin(const Place& place) const {
    if (!either_ || !place.name.starts_with("input")) return place;
    const uint32_t first = gathers_ ? place.rank * positions_ : 0;
    return {place.rank, fmt::format("output[{}]", first + number(place.name))};
  }

  /// What follows is another stretch: a pipeline of its own, or straight.
  void cut_here() {
    std::vector<size_t>& ends = cuts_.emplace_back();
    for (const auto& body : body_) ends.push_back(body.size());
  }

  // ---- order

  /// Lets `p` know of all that `q` has done.
  void tell(uint32_t q, uint32_t p, bool relaxed) {
    if (rank_of(q) == rank_of(p)) {
      if (one_in(dice_, 2)) return meet(rank_of(p));
      const std::string name = fmt::format("e{}{}", block_of(q), block_of(p));
      RankSketch& rank = sketch_.ranks[rank_of(p)];
      if (semaphores_.insert({rank_of(p), name}).second) rank.semaphores.push_back({name, 0});
      sync(q);
      op(q, "release " + name);
      op(p, "acquire " + name);
    } else {
      const std::string name = channel(q, p, !relaxed && one_in(dice_, 5));
      const std::string how = relaxed ? " relaxed" : "";
      if (!relaxed) sync(q);
      op(q, "signal " + name + how);
      op(p, "wait " + name + how);
    }
    sync(p);
    learn(p, q, relaxed);
  }

  void learn(uint32_t p, uint32_t q, bool relaxed) {
    if (relaxed) {
      known_[p][caller(rank_of(q))] = 1;
      return;
    }
    for (uint32_t i = 0; i < processes(); ++i) {
      known_[p][i] = std::max(known_[p][i], known_[q][i]);
    }
    known_[p][q] = std::max(known_[p][q], time_[q]);
  }

  void meet(uint32_t rank) {
    if (blocks_ < 2) return;
    const uint32_t a = process(rank, 0), b = process(rank, 1);
    for (const uint32_t p : {a, b}) op(p, "barrier 0..2");
    learn(a, b, false);
    learn(b, a, false);
    settled_[a] = time_[a];
    settled_[b] = time_[b];
  }

  std::string channel(uint32_t q, uint32_t p, bool port) {
    const std::string name =
        fmt::format("{}{}{}", port ? "n" : "c", std::min(p, q), std::max(p, q));
    if (channels_.insert(name).second) {
      connect(sketch_, port ? "port" : "memory", name, rank_of(std::min(p, q)),
              rank_of(std::max(p, q)));
    }
    return name;
  }

  /// Is about to touch a place: hears of all that has been done there.
  void touch(uint32_t p, const Place& place, bool write) {
    std::vector<Access>& list = accesses_[origin(place)];
    for (size_t i = 0; i < list.size(); ++i) {
      const Access old = list[i];
      if (!write && !old.write) continue;
      if (old.process == p) {
        if (settled_[p] < old.time) sync(p);
        continue;
      }
      if (known_[p][old.process] >= old.time || slips()) continue;
      const uint32_t r = rank_of(old.process);
      if (old.process == caller(r)) {
        tell(process(r, any(blocks_)), p, !one_in(dice_, 3));
      } else {
        tell(old.process, p, slips());
      }
    }
  }
  void note(uint32_t p, const Place& place, bool write) {
    accesses_[origin(place)].push_back({p, time_[p], write});
  }

  // ---- places

  std::string scratch() {
    static constexpr const char* kNames[] = {"s[0]", "t[0]", "u[0]"};
    return kNames[any(3)];
  }
  Value value_at(const Place& place) const {
    const auto found = values_.find(place);
    return found == values_.end() ? Value{} : found->second;
  }
  /// A place with something in it, at a rank.
  std::optional<Place> source(uint32_t rank, std::optional<uint32_t> position,
                              const std::vector<uint32_t>& without) {
    std::vector<Place> all;
    for (const auto& [place, value] : values_) {
      if (place.rank != rank || !value.known()) continue;
      if (position && value.position != *position) continue;
      if (std::ranges::any_of(without,
                              [&](uint32_t r) { return std::ranges::count(value.ranks, r); }))
        continue;
      if (std::ranges::any_of(all, [&](const Place& p) { return p == place; })) continue;
      all.push_back(place);
    }
    if (all.empty()) return std::nullopt;
    return all[any(static_cast<uint32_t>(all.size()))];
  }
  Place target(uint32_t rank, uint32_t position) {
    if (!one_in(dice_, 3)) return {rank, scratch()};
    const uint32_t row = gathers_ ? any(ranks_) : 0;
    return {rank, fmt::format("output[{}]", row * positions_ + position)};
  }
  Operand near(const Place& place) const { return {place.name, place}; }
  Operand far(uint32_t p, const Place& place, bool port = false) {
    return {channel(p, process(place.rank, block_of(p)), port) + "." + place.name, place};
  }
  uint32_t other_rank(uint32_t rank) { return (rank + 1 + any(ranks_ - 1)) % ranks_; }

  /// In place the same must be there as out of place: what is overwritten is no value any more.
  void set(const Place& place, const Value& value) {
    values_[place] = value;
    if (!either_ || !place.name.starts_with("output")) return;
    for (uint32_t i = 0; i < positions_; ++i) {
      const Place input = {place.rank, fmt::format("input[{}]", i)};
      if (origin(input) == place && !(value == Value{i, {place.rank}})) values_.erase(input);
    }
  }

  // ---- steps

  void step() {
    const uint32_t p = any(ranks_ * blocks_);
    const uint32_t kind = any(with_packets_ ? 12 : 7);
    if (kind >= 7) return kind < 10 && !slots_.empty() ? receive() : send(p);
    if (kind >= 5 && with_switch_) return at_switch(p);
    if (kind >= 3) return sum(p);
    move(p);
  }

  /// One op: sources are known, destinations get the value.
  void run(uint32_t p, const std::string& name, const std::vector<Operand>& dsts,
           const std::vector<Operand>& srcs, const std::vector<Place>& writes,
           const std::vector<Place>& reads, const Value& value, bool whole = false) {
    const bool parted = !whole && one_in(dice_, 6);
    std::vector<uint32_t> doers = {p};
    if (parted && blocks_ == 2 && one_in(dice_, 2)) doers.push_back(p ^ 1u);
    for (const uint32_t d : doers) {
      for (const Place& place : reads) touch(d, place, false);
      for (const Place& place : writes) touch(d, place, true);
    }
    std::vector<std::string> to, from;
    for (const Operand& o : dsts) to.push_back(o.text);
    for (const Operand& o : srcs) from.push_back(o.text);
    const std::string text =
        fmt::format("{} {} <- {}", name, fmt::join(to, ", "), fmt::join(from, ", "));
    for (uint32_t i = 0; i < (parted ? 2u : 1u); ++i) {
      const uint32_t d = doers[i % doers.size()];
      op(d, text + (parted ? fmt::format(" part: [{}, 2]", i) : ""));
      ++time_[d];
    }
    for (const uint32_t d : doers) {
      for (const Place& place : reads) note(d, place, false);
      for (const Place& place : writes) note(d, place, true);
    }
    for (const Place& place : writes) set(place, value);
  }

  void move(uint32_t p) {
    const uint32_t here = rank_of(p);
    const uint32_t kind = ranks_ == 1 ? 0 : any(4);
    const bool reads_far = kind == 1;
    const uint32_t from_rank = reads_far ? other_rank(here) : here;
    const auto from = source(from_rank, std::nullopt, {});
    if (!from) return;
    const Value value = value_at(*from);
    const uint32_t to_rank = kind >= 2 ? other_rank(here) : here;
    const Place to = target(to_rank, value.position);
    if (origin(to) == origin(*from)) return;
    if (kind == 3) return by_port(p, *from, to, value);
    const char* name = kind == 0 ? "copy" : kind == 1 ? "get" : "put";
    const Operand dst = kind == 2 ? far(p, to) : near(to);
    const Operand src = kind == 1 ? far(p, *from) : near(*from);
    run(p, name, {dst}, {src}, {to}, {*from}, value);
  }

  /// A port's put: the far end hears of it by the port's signal, this one by a flush.
  void by_port(uint32_t p, const Place& from, const Place& to, const Value& value) {
    touch(p, from, false);
    touch(p, to, true);
    const uint32_t peer = process(to.rank, block_of(p));
    const Operand dst = far(p, to, true);
    const std::string c = channel(p, peer, true);
    static constexpr const char* kOps[] = {"put", "put_with_signal", "put_with_signal_and_flush"};
    const uint32_t kind = any(3);
    op(p, fmt::format("{} {} <- {}", kOps[kind], dst.text, from.name));
    if (kind == 0) op(p, "signal " + c);
    if (kind < 2 && !slips()) op(p, "flush " + c);
    ++time_[p];
    op(peer, "wait " + c);
    sync(peer);
    learn(peer, p, false);
    ++time_[peer];
    note(p, from, false);
    accesses_[origin(to)].push_back({peer, time_[peer], true});
    set(to, value);
  }

  Value added(const Value& a, const Value& b) const {
    Value sum = a;
    sum.ranks.insert(sum.ranks.end(), b.ranks.begin(), b.ranks.end());
    std::ranges::sort(sum.ranks);
    return sum;
  }

  void sum(uint32_t p) {
    const uint32_t here = rank_of(p);
    const auto a = source(here, std::nullopt, {});
    if (!a) return;
    const Value x = value_at(*a);
    const bool reads_far = ranks_ > 1 && one_in(dice_, 2);
    const auto b = source(reads_far ? other_rank(here) : here, x.position, x.ranks);
    if (!b) return;
    const Value value = added(x, value_at(*b));
    const bool sends = ranks_ > 1 && one_in(dice_, 3);
    const Place to =
        one_in(dice_, 3) && !a->name.starts_with("input") ? *a : target(here, x.position);
    std::vector<Place> writes = {to};
    std::vector<Operand> dsts = {near(to)};
    if (sends) {
      writes.push_back(target(other_rank(here), x.position));
      dsts.push_back(far(p, writes[1]));
    }
    for (const Place& w : writes) {
      if (origin(w) == origin(*b) || (origin(w) == origin(*a) && !(w == *a))) return;
    }
    const std::string name =
        fmt::format("{}reduce{}", reads_far ? "read_" : "", sends ? "_send" : "");
    run(p, name, dsts, {near(*a), reads_far ? far(p, *b) : near(*b)}, writes, {*a, *b}, value);
  }

  void at_switch(uint32_t p) {
    const uint32_t here = rank_of(p);
    const std::string buffer = scratch();
    std::vector<Place> all;
    for (uint32_t r = 0; r < ranks_; ++r) all.push_back({r, buffer});
    if (one_in(dice_, 2)) {
      const auto from = source(here, std::nullopt, {});
      if (!from || from->name == buffer) return;
      return run(p, "switch_broadcast", {{"sw." + buffer, all[0]}}, {near(*from)}, all, {*from},
                 value_at(*from));
    }
    Value value;
    for (const Place& place : all) {
      const Value one = value_at(place);
      if (!one.known() || (value.known() && one.position != value.position)) return;
      for (const uint32_t r : one.ranks) {
        if (std::ranges::count(value.ranks, r)) return;
      }
      value.position = one.position;
      value = added(value, one);
    }
    if (one_in(dice_, 2)) {
      const Place to = target(here, value.position);
      if (to.name == buffer) return;
      return run(p, "switch_reduce", {near(to)}, {{"sw." + buffer, all[0]}}, {to}, all, value);
    }
    run(p, "switch_reduce_broadcast", {{"sw." + buffer, all[0]}}, {{"sw." + buffer, all[0]}}, all,
        all, value);
  }

  // ---- packets

  Place new_slot(uint32_t rank) {
    const std::string name = fmt::format("k{}", slot_count_++);
    const uint32_t copies = one_in(dice_, 8) ? 1 : one_in(dice_, 8) ? 3 : 2;
    sketch_.ranks[rank].buffers.push_back(
        {.name = name, .chunks = wide_ ? 2u : 1u, .copies = copies, .packets = format_});
    return {rank, name + "[0]"};
  }

  void send(uint32_t p) {
    const uint32_t here = rank_of(p);
    const auto from = source(here, std::nullopt, {});
    if (!from) return;
    const bool away = ranks_ > 1 && !one_in(dice_, 5);
    if (away && format_ != "LL128" && one_in(dice_, 3)) return send_by_port(p, *from);
    const Place slot = new_slot(away ? other_rank(here) : here);
    touch(p, *from, false);
    op(p, fmt::format("{} {} <- {}", away ? "put_packets" : "copy_packets",
                      away ? far(p, slot).text : slot.name, from->name));
    ++time_[p];
    note(p, *from, false);
    slots_.push_back({slot, value_at(*from)});
  }

  /// Packets are made here, and a port sends them as they lie.
  void send_by_port(uint32_t p, const Place& from) {
    const Place box = new_slot(rank_of(p)), slot = new_slot(other_rank(rank_of(p)));
    touch(p, from, false);
    op(p, fmt::format("copy_packets {} <- {}", box.name, from.name));
    ++time_[p];
    note(p, from, false);
    sync(p);
    const Operand dst = far(p, slot, true);
    op(p, fmt::format("put_packets {} <- {}", dst.text, box.name));
    if (!slips()) op(p, "flush " + dst.text.substr(0, dst.text.find('.')));
    slots_.push_back({slot, value_at(from)});
  }

  void receive() {
    const uint32_t i = any(static_cast<uint32_t>(slots_.size()));
    const Slot slot = slots_[i];
    slots_.erase(slots_.begin() + i);
    take(slot);
  }

  void take(const Slot& slot) {
    const uint32_t here = slot.place.rank, p = process(here, any(blocks_));
    if (ranks_ > 1 && one_in(dice_, 6)) return forward(p, slot);
    const Place to = target(here, slot.value.position);
    const auto x = source(here, slot.value.position, slot.value.ranks);
    if (!x || one_in(dice_, 5) || (origin(*x) == origin(to) && !(*x == to)))
      return unpack(p, slot, to);
    add_packets(p, slot, to, *x);
  }

  void forward(uint32_t p, const Slot& slot) {
    const Place next = new_slot(other_rank(rank_of(p)));
    const bool port = format_ != "LL128" && one_in(dice_, 3);
    op(p, fmt::format("read_put_packets {} <- {}", far(p, next, port).text, slot.place.name));
    ++time_[p];
    slots_.push_back({next, slot.value});
  }

  void unpack(uint32_t p, const Slot& slot, const Place& to) {
    run(p, "unpack_packets", {near(to)}, {near(slot.place)}, {to}, {}, slot.value, true);
  }

  /// Adds packets to `x`; perhaps keeps the sum in packets here, or sends it on in packets or
  /// plain.
  void add_packets(uint32_t p, const Slot& slot, const Place& to, const Place& x) {
    std::vector<Operand> srcs = {near(x), near(slot.place)}, dsts = {near(to)};
    if (one_in(dice_, 2)) std::swap(srcs[0], srcs[1]);
    std::vector<Place> writes = {to};
    const Value value = added(slot.value, value_at(x));
    const uint32_t here = rank_of(p), kind = any(ranks_ > 1 ? 5 : 2);
    static constexpr const char* kNames[] = {"reduce_packets", "reduce_copy_packets",
                                             "reduce_send_packets", "reduce_copy_send_packets",
                                             "reduce_packets_put"};
    std::vector<Place> slots;
    if (kind == 1 || kind == 3) {
      slots.push_back(new_slot(here));
      dsts.push_back(near(slots.back()));
    }
    if (kind == 2 || kind == 3) {
      slots.push_back(new_slot(other_rank(here)));
      dsts.push_back(far(p, slots.back()));
    }
    if (kind == 4) {
      writes.push_back(target(other_rank(here), value.position));
      dsts.push_back(far(p, writes.back()));
    }
    run(p, kNames[kind], dsts, srcs, writes, {x}, value, true);
    for (const Place& next : slots) slots_.push_back({next, value});
  }

  /// What was sent and nobody has read.
  void empty_slots() {
    for (uint32_t i = 0; i < 4 && !slots_.empty(); ++i) receive();
    for (const Slot& slot : std::exchange(slots_, {})) {
      unpack(process(slot.place.rank, any(blocks_)), slot,
             target(slot.place.rank, slot.value.position));
    }
  }

  // ---- the end

  void fill_outputs() {
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t i = 0; i < outputs(); ++i) {
        const Place output = {r, fmt::format("output[{}]", i)};
        if (gathers_) {
          gather(output, {i % positions_, {i / positions_}});
          continue;
        }
        if (value_at(output).known() || one_in(dice_, 2)) continue;
        const auto from = source(r, i, {});
        const uint32_t p = process(r, any(blocks_));
        if (!from || origin(*from) == output) continue;
        run(p, "copy", {near(output)}, {near(*from)}, {output}, {*from}, value_at(*from));
      }
    }
  }

  /// From wherever it is.
  void gather(const Place& output, const Value& wanted) {
    if (value_at(output) == wanted) return;
    std::vector<Place> all;
    for (const auto& [place, value] : values_) {
      if (value == wanted && !(place == output)) all.push_back(place);
    }
    if (all.empty()) return;
    const Place from = all[any(static_cast<uint32_t>(all.size()))];
    const bool here = from.rank == output.rank, puts = !here && one_in(dice_, 2);
    const uint32_t p = process(puts ? from.rank : output.rank, any(blocks_));
    run(p,
        here   ? "copy"
        : puts ? "put"
               : "get",
        {puts ? far(p, output) : near(output)}, {here || puts ? near(from) : far(p, from)},
        {output}, {from}, wanted);
  }

  /// The caller takes its buffers, and all may begin again.
  void close() {
    if (full_close_) return close_all();
    for (const auto& [place, list] : accesses_) {
      const bool callers = place.name.starts_with("in") || place.name.starts_with("out");
      if (!callers && one_in(dice_, 2)) continue;
      for (const Access& access : std::vector<Access>(list)) {
        const uint32_t r = place.rank;
        if (rank_of(access.process) == r || access.process >= ranks_ * blocks_) continue;
        bool heard = false;
        for (uint32_t b = 0; b < blocks_; ++b) {
          heard |= known_[process(r, b)][access.process] >= access.time;
        }
        if (!heard && !slips()) tell(access.process, process(r, any(blocks_)), false);
      }
    }
  }

  void close_all() {
    for (uint32_t r = 0; r < ranks_; ++r) meet(r);
    for (uint32_t r = 0; r < ranks_; ++r) sync(process(r, 0));
    const auto each_pair = [&](const std::string& what) {
      for (uint32_t r = 0; r < ranks_; ++r) {
        for (uint32_t q = 0; q < ranks_; ++q) {
          if (q == r) continue;
          if (one_in(dice_, 3 * slack_)) continue;
          op(process(r, 0), what + channel(process(r, 0), process(q, 0), false));
        }
      }
    };
    each_pair("signal ");
    each_pair("wait ");
  }

  void contract() {
    const std::string placed = either_ ? "either" : "false";
    if (with_packets_ && format_ == "sentinel") sketch_.types = "[f32]";
    if (gathers_) {
      sketch_.collective =
          fmt::format("allgather(ranks: {}, chunks: {}, inplace: {})", ranks_, positions_, placed);
      return;
    }
    for (uint32_t r = 0; r < ranks_; ++r) {
      for (uint32_t i = 0; i < positions_; ++i) {
        const Value value = value_at({r, fmt::format("output[{}]", i)});
        if (!value.known() || value.position != i) continue;
        for (uint32_t c = i; c <= (wide_ ? 1 : i); ++c) promise(r, c, value.ranks);
      }
    }
    sketch_.collective = fmt::format("custom(ranks: {0}, input: {1}, output: {1}, inplace: {2})",
                                     ranks_, wide_ ? 2 : positions_, placed);
  }

  void promise(uint32_t r, uint32_t c, const std::vector<uint32_t>& ranks) {
    const std::string value =
        ranks.size() == 1
            ? fmt::format("input[{}] at {}", c, ranks[0])
            : fmt::format("reduce(input[{}] at p for p in [{}])", c, fmt::join(ranks, ", "));
    sketch_.promises.push_back(fmt::format("output[{}] at {} = {}", c, r, value));
  }

  /// What the text of an op lacks: which reduction, and that operands have two chunks.
  std::string completed(std::string text) const {
    if (text.find("<-") == std::string::npos) return text;
    if (text.find("reduce") != std::string::npos) {
      const size_t part = text.find(" part:"), at = std::min(part, text.size());
      text.insert(at, part == std::string::npos ? " op: sum" : " op: sum,");
    }
    for (size_t at = 0; wide_ && (at = text.find("[0]", at)) != std::string::npos;) {
      text.replace(at, 3, "[0..2]");
    }
    return text;
  }

  void assemble() {
    cut_here();
    std::vector<bool> pipes;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      pipes.push_back(piped_ && !(cuts_.size() > 1 && one_in(dice_, 3)));
    }
    const uint32_t other = one_in(dice_, 2) ? unit_ : 16 * (1 + any(3));
    for (uint32_t p = 0; p < ranks_ * blocks_; ++p) {
      RankSketch& rank = sketch_.ranks[rank_of(p)];
      size_t begin = 0;
      for (size_t i = 0; i < cuts_.size(); ++i) {
        std::vector<std::string> ops;
        for (; begin < cuts_[i][p]; ++begin) ops.push_back(completed(body_[p][begin]));
        if (ops.empty()) continue;
        if (!pipes[i]) {
          rank.ops(block_of(p), ops);
        } else {
          rank.blocks[block_of(p)].push_back(
              {i == 0 ? unit_ : other, static_cast<uint32_t>(i), ops, wide_ ? 2u : 1u});
        }
      }
    }
    sketch_.ir_only = cuts_.size() > 1 && piped_;
  }

  Dice& dice_;
  Sketch sketch_;
  uint32_t ranks_ = 2, blocks_ = 1, positions_ = 1, unit_ = 16, slack_ = 8, slot_count_ = 0;
  bool either_ = false, piped_ = false, with_packets_ = false, with_switch_ = false;
  bool full_close_ = true, gathers_ = false, wide_ = false;
  std::vector<std::vector<size_t>> cuts_;  ///< where stretches end, by process
  std::string format_;
  std::vector<std::vector<std::string>> body_;  ///< by process
  std::vector<uint32_t> time_, settled_;
  std::vector<Clock> known_;
  std::map<Place, std::vector<Access>> accesses_;
  std::map<Place, Value> values_;
  std::set<std::pair<uint32_t, std::string>> semaphores_;
  std::set<std::string> channels_;
  std::vector<Slot> slots_;
};

}  // namespace

Sketch make_soup(Dice& dice) { return Soup(dice).make(); }

}  // namespace mscclc::random_programs
