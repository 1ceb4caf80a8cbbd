#include "plans/format/wire/location_codec.h"

#include <algorithm>

namespace mscclc {
namespace {

/// a + b, around the ends of the range.
int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

}  // namespace

void LocationWriter::begin_rank(uint64_t rank_bytes) {
  budget_ = kImpliedPerByte * rank_bytes;
  values_.resize(program_.names().size());
  known_.resize(program_.names().size());
  ++rank_;
}

void LocationWriter::op(const Op& op) {
  if (op.locations.count == 0) {
    out_.need(2);
    out_.literal("0,");
    return;
  }
  const std::span<const Location> all = program_.locations.of(op.locations);
  for (size_t i = 0; i < all.size();) {
    location(all[i], i == 0);
    int64_t step = 0;
    const size_t run = run_length(all.subspan(i), step);
    if (run > 0) {
      out_.need(64);
      out_.integer(-static_cast<int64_t>(all[i].site) - 1);
      out_.literal(",-1,");
      out_.number64(run);
      out_.character(',');
      out_.integer(step);
      out_.character(',');
      values_[program_.sites[all[i].site].variables.back()] =
          program_.values(all[i + run].values).back();
    }
    i += 1 + run;
  }
}

void LocationWriter::location(const Location& location, bool first) {
  const std::vector<NameId>& variables = program_.sites[location.site].variables;
  const std::span<const int64_t> values = program_.values(location.values);
  size_t known = 0;
  while (known < values.size() && known_[variables[known]] == rank_ &&
         values_[variables[known]] == values[known]) {
    ++known;
  }
  if (known > 0 && !afford(known)) known = 0;
  out_.need(48);
  if (!first) out_.character('-');
  out_.number(location.site + 1);
  out_.character(',');
  out_.number(static_cast<uint32_t>(values.size() - known));
  out_.character(',');
  for (size_t i = known; i < values.size(); ++i) {
    out_.need(24);
    out_.integer(values[i]);
    out_.character(',');
    values_[variables[i]] = values[i];
    known_[variables[i]] = rank_;
  }
}

/// How many locations after the first of `rest` continue it in equal steps, and can be afforded; 0
/// if it is not worth a run.
size_t LocationWriter::run_length(std::span<const Location> rest, int64_t& step) {
  const auto last_value = [&](size_t i) { return program_.values(rest[i].values).back(); };
  const size_t variables = program_.sites[rest[0].site].variables.size();
  const size_t most = std::min<uint64_t>(rest.size() - 1, budget_ / (1 + variables));
  size_t run = 0;
  while (run < most && same_but_last(rest[run], rest[run + 1])) {
    const int64_t difference = wrapping_sub(last_value(run + 1), last_value(run));
    if (run == 0) step = difference;
    if (difference != step) break;
    ++run;
  }
  if (run < 2) return 0;
  return afford(run * (1 + variables)) ? run : 0;
}

bool LocationWriter::same_but_last(const Location& a, const Location& b) const {
  if (a.site != b.site || a.values.count == 0) return false;
  const std::span<const int64_t> x = program_.values(a.values), y = program_.values(b.values);
  return std::equal(x.begin(), x.end() - 1, y.begin());
}

bool LocationWriter::afford(uint64_t values) {
  if (values > budget_) return false;
  budget_ -= values;
  return true;
}

LocationReader::LocationReader(Program& program, uint64_t plan_bytes)
    : program_(program), budget_(kImpliedPerByte * plan_bytes) {}

void LocationReader::begin_rank(std::span<Op> ops) {
  ops_ = ops;
  values_.resize(program_.names().size());
  known_.resize(program_.names().size());
  ++rank_;
  state_ = State::site;
  begun_ = 0;
}

const char* LocationReader::take(int64_t number) {
  switch (state_) {
    case State::site:
      return take_site(number);
    case State::count:
      return take_count(number);
    case State::value:
      return take_value(number);
    case State::run_length:
      return take_run_length(number);
    case State::run_step:
      break;
  }
  return take_run_step(number);
}

const char* LocationReader::end() const {
  if (state_ != State::site) return "the list ends within a location";
  if (begun_ != ops_.size()) return "there are more ops than locations";
  return nullptr;
}

const char* LocationReader::take_site(int64_t number) {
  further_ = number < 0;
  if (further_) {
    if (begun_ == 0 || ops_[begun_ - 1].locations.count == 0) {
      return "another location of an op that has none";
    }
  } else {
    if (begun_ == ops_.size()) return "there are more locations than ops";
    ops_[begun_++].locations = {};
    if (number == 0) return nullptr;
  }
  const uint64_t index = (further_ ? 0 - static_cast<uint64_t>(number) : number) - uint64_t{1};
  if (index >= program_.sites.size()) return "not a site";
  last_site_ = site_;
  site_ = static_cast<uint32_t>(index);
  state_ = State::count;
  return nullptr;
}

const char* LocationReader::take_count(int64_t number) {
  const std::vector<NameId>& variables = site().variables;
  if (number == -1) {
    if (!further_ || site_ != last_site_ || variables.empty()) {
      return "a run must continue a location of the same op and site";
    }
    state_ = State::run_length;
    return nullptr;
  }
  if (number < 0 || static_cast<uint64_t>(number) > variables.size()) {
    return "more values than the site has variables";
  }
  missing_ = static_cast<size_t>(number);
  current_.clear();
  const size_t implied = variables.size() - missing_;
  if (implied > 0 && !afford(implied)) return "more locations than a plan of this size can have";
  for (size_t i = 0; i < implied; ++i) {
    if (known_[variables[i]] != rank_)
      return "leaves out the value of a variable that had none yet";
    current_.push_back(values_[variables[i]]);
  }
  if (missing_ == 0) {
    append();
  } else {
    state_ = State::value;
  }
  return nullptr;
}

const char* LocationReader::take_value(int64_t number) {
  const NameId variable = site().variables[current_.size()];
  values_[variable] = number;
  known_[variable] = rank_;
  current_.push_back(number);
  if (--missing_ == 0) append();
  return nullptr;
}

const char* LocationReader::take_run_length(int64_t number) {
  // Bounded first, so that the product below cannot overflow.
  if (number < 1 || static_cast<uint64_t>(number) > budget_ ||
      !afford(static_cast<uint64_t>(number) * (1 + current_.size()))) {
    return "more locations than a plan of this size can have";
  }
  run_ = static_cast<uint64_t>(number);
  state_ = State::run_step;
  return nullptr;
}

const char* LocationReader::take_run_step(int64_t step) {
  for (uint64_t i = 0; i < run_; ++i) {
    current_.back() = wrapping_add(current_.back(), step);
    append();
  }
  values_[site().variables.back()] = current_.back();
  return nullptr;
}

/// Gives the present op the location that has been read.
void LocationReader::append() {
  program_.locations.extend(ops_[begun_ - 1].locations, {site_, program_.append(current_)});
  state_ = State::site;
}

bool LocationReader::afford(uint64_t values) {
  if (values > budget_ || program_.integers.size() + values > kNone) return false;
  budget_ -= values;
  return true;
}

}  // namespace mscclc
