// A soup of sums and moves, as it is made: what each process does, who knows of what, and what lies
// where. `soups.cc` says what a soup is; its steps, packets, order and end have a file each.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {

class Soup {
 public:
  explicit Soup(Dice& dice) : dice_(dice) {}

  Sketch make();

 private:
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
  void sync(uint32_t p);
  void declare();
  void begin();
  /// Chunks of an output: a row for each rank if the plan gathers.
  uint32_t outputs() const { return gathers_ ? positions_ * ranks_ : positions_; }
  static uint32_t number(const std::string& name) {
    return static_cast<uint32_t>(std::stoul(name.substr(name.find('[') + 1)));
  }
  /// In place, an input lies where the output does.
  Place origin(const Place& place) const;
  /// What follows is another stretch: a pipeline of its own, or straight.
  void cut_here();

  // ---- order

  /// Lets `p` know of all that `q` has done.
  void inform(uint32_t q, uint32_t p, bool relaxed);
  void learn(uint32_t p, uint32_t q, bool relaxed);
  void meet(uint32_t rank);
  std::string channel(uint32_t q, uint32_t p, bool port);
  /// Is about to touch a place: hears of all that has been done there.
  void touch(uint32_t p, const Place& place, bool write);
  void note(uint32_t p, const Place& place, bool write);

  // ---- places

  std::string scratch();
  Value value_at(const Place& place) const;
  /// A place with something in it, at a rank.
  std::optional<Place> source(uint32_t rank, std::optional<uint32_t> position,
                              const std::vector<uint32_t>& without);
  Place target(uint32_t rank, uint32_t position);
  Operand near(const Place& place) const { return {place.name, place}; }
  Operand far(uint32_t p, const Place& place, bool port = false);
  uint32_t other_rank(uint32_t rank) { return (rank + 1 + any(ranks_ - 1)) % ranks_; }
  /// In place the same must be there as out of place: what is overwritten is no value any more.
  void set(const Place& place, const Value& value);

  // ---- steps

  void step();
  /// One op: sources are known, destinations get the value.
  void run(uint32_t p, const std::string& name, const std::vector<Operand>& dsts,
           const std::vector<Operand>& srcs, const std::vector<Place>& writes,
           const std::vector<Place>& reads, const Value& value, bool whole = false);
  void move(uint32_t p);
  /// A port's put: the far end hears of it by the port's signal, this one by a flush.
  void by_port(uint32_t p, const Place& from, const Place& to, const Value& value);
  Value added(const Value& a, const Value& b) const;
  void sum(uint32_t p);
  void at_switch(uint32_t p);

  // ---- packets

  Place new_slot(uint32_t rank);
  void send(uint32_t p);
  /// Packets are made here, and a port sends them as they lie.
  void send_by_port(uint32_t p, const Place& from);
  void receive();
  void take(const Slot& slot);
  void forward(uint32_t p, const Slot& slot);
  void unpack(uint32_t p, const Slot& slot, const Place& to);
  /// Adds packets to `x`; perhaps keeps the sum in packets here, or sends it on in packets or
  /// plain.
  void add_packets(uint32_t p, const Slot& slot, const Place& to, const Place& x);
  /// What was sent and no op has read.
  void empty_slots();

  // ---- the end

  void fill_outputs();
  /// From wherever it is.
  void gather(const Place& output, const Value& wanted);
  /// The caller takes its buffers, and all may begin again.
  void close();
  void close_all();
  void contract();
  void promise(uint32_t r, uint32_t c, const std::vector<uint32_t>& ranks);
  /// What the text of an op lacks: which reduction, and that operands have two chunks.
  std::string completed(std::string text) const;
  void assemble();

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

}  // namespace mscclc::random_programs
