// The explorer's state machine: what processes do, and in which orders it is tried. Not for use
// outside the explorer.
#pragma once

#include <string>
#include <vector>

#include "tests/explore/explore.h"
#include "tests/explore/state.h"
#include "tests/explore/steps.h"
#include "tests/explore/users.h"
#include "tests/explore/values.h"

namespace mscclc::explorer {

class Explorer {
 public:
  /// `model` is that of the program under the same options.
  Explorer(const Program& program, const ExploreOptions& options, Model model)
      : program_(program),
        options_(options),
        model_(std::move(model)),
        users_(model_, options.same_bits),
        forms_(options.order) {}

  Exploration run();

 private:
  State start() const;
  bool enabled(const State& s, size_t p) const;
  void take(State& s, size_t p);
  void perform(State& s, size_t p);
  void run_on(State& s, size_t p);
  void advance(State& s, size_t p) const;
  bool finished(const State& s) const;
  /// A step that hides accesses from races: of a caller, or the call-th that a proxy does.
  struct Hiding {
    size_t process;
    uint32_t call, step;
  };
  std::vector<Hiding> hiding_steps() const;
  static bool is(const Hiding* held, const State& s, size_t p) {
    return held != nullptr && held->process == p && held->call == s.processes[p].call &&
           held->step == s.processes[p].step;
  }
  bool contended(const State& s, size_t p) const;
  bool leads_to_contended(const State& s, size_t p) const;
  void go_on_alone(State& s, const Hiding* held);
  std::vector<size_t> choices(const State& s, const Hiding* held) const;
  void search(const Hiding* held);

  void hear(State& s, const Step& step, uint32_t call, Knowledge& knows) const;
  bool polled(const State& s, const Step& step, uint32_t call) const;
  std::vector<size_t> meeting(const State& s, size_t p) const;
  bool strands_gone(const State& s, uint32_t rank, uint32_t call) const;
  void access(State& s, const Step& step, uint32_t call, Knowledge& knows);
  /// Packets are read as such, which needs no order after their writer, or moved as they lie, by a
  /// proxy, perhaps for a block that has seen all of them.
  enum class Packets : uint8_t { polled, raw, raw_seen };
  /// What an op stores, and which reads that depends on.
  struct Stored {
    uint16_t value = 0, stamp = 0;
    bool hollow = false;  ///< Element::hollow
    Events from = {};
  };
  uint16_t load(State& s, const Op& op, const Element& e, uint32_t call, uint16_t event,
                Knowledge& knows, Packets packets, Stored& stored);
  void store(State& s, const Cell& cell, uint32_t call, uint16_t event, const Knowledge& knows,
             const Stored& stored);
  static void empty(State& s, const Element& e, uint32_t call, uint16_t event);
  void move(State& s, const Op& op, const Element& e, uint32_t call, uint16_t event,
            Knowledge& knows, Packets packets);
  uint16_t applied_to(const Op& op, size_t dst, uint16_t arguments);
  static bool over(const State& s, uint16_t writer, uint16_t event, const Knowledge& knows);
  /// Is every store known that may have been read?
  bool read(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  bool polled_hollow(uint16_t event, uint32_t cell) const;
  uint16_t conflict(const State& s, uint32_t cell, uint16_t event, const Knowledge& knows) const;
  void write(State& s, uint32_t cell, uint16_t event, const Knowledge& knows);
  /// As enabled(), and the step is not put off.
  bool can_move(const State& s, size_t p, const Hiding* held) const;
  void serve(State& s, size_t p);
  static void signal(Counter& c, const Knowledge* published, const Events& entry);
  void acquire(Counter& c, uint32_t semaphore, Knowledge& knows);
  /// Has a flag been raised as often as in all calls up to this one?
  bool is_raised(const State& s, uint32_t flag, uint32_t call) const {
    return s.flags[flag].raised >= (call + 1) * model_.flags[flag].raises;
  }
  bool may_go(const State& s, const Process& p, const Step& step, uint32_t call) const;
  void raise(State& s, const Process& p, const Step& step, ProcessState& state);
  void take_region(State& s, const Process& p, const Step& step, ProcessState& state);
  const ProcessState& caller_of(const State& s, uint32_t rank) const;
  bool has_flag(uint32_t rank, const CallerCell& cell) const;
  void begin(State& s, const Process& p, const Step& step, ProcessState& state);
  void end(State& s, const Process& p, const Step& step, ProcessState& state);
  void check_output(const State& s, uint32_t rank, uint32_t call);
  bool holds_promise(const State& s, uint32_t rank, uint32_t call, const CallerCell& own);

  const Step& step_of(const State& s, size_t p) const {
    return model_.processes[p].steps[s.processes[p].step];
  }
  /// What a rank knew when it began a call.
  Events& entry(State& s, uint32_t rank, uint32_t call) const {
    return s.entries[call * program_.ranks.size() + rank];
  }
  const Events& entry_of_writer(State& s, uint16_t writer) const;
  uint16_t event(const Step& step, uint32_t call) const {
    return static_cast<uint16_t>(call * model_.events + step.event);
  }
  uint16_t number(std::vector<Contribution> multiset, const Form& form = {}) {
    if (values_.full()) fail(Verdict::too_large, "too many values");
    return values_.full() ? uint16_t{0} : values_.number(std::move(multiset), form);
  }
  void fail(Verdict verdict, std::string reason) {
    if (found_.verdict != Verdict::right) return;
    found_.verdict = verdict;
    found_.reason = std::move(reason);
  }
  void fail_race(uint16_t earlier, uint16_t later, uint32_t cell);
  std::string describe(uint16_t event) const;

  const Program& program_;
  const ExploreOptions& options_;
  const Model model_;
  const Users users_;
  Values values_;
  Forms forms_;
  Exploration found_;
};

}  // namespace mscclc::explorer
