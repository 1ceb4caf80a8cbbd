#include "tools/bench/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "executor/lower.h"
#include "runtime/api/gpu.h"
#include "tools/base/result_table.h"
#include "tools/bench/base/statistics.h"
#include "tools/bench/measure/checker.h"
#include "tools/bench/measure/clock_rows.h"
#include "tools/bench/measure/run_log.h"
#include "tools/bench/report/table.h"
#include "tools/bench/results/comparison.h"
#include "tools/bench/results/record.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kAlign = 16;
constexpr uint64_t kPage = 4096;
constexpr std::chrono::seconds kPatience{20};  // of a call that hangs

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// A table's measurements in the making.
struct Table {
  CollectiveKind kind;
  Contract contract;
  Dtype dtype;
  ReduceOp op;
  bool graph;
  std::vector<Contender*> contenders;
  Result blank;  ///< what all its results have in common
};

/// A contender that is timed, and its times.
struct Taking {
  Contender* contender = nullptr;
  std::unique_ptr<Timed> timed;
  std::vector<double> times[kArounds];  ///< of each repeat, by Around
  std::vector<double> units;
  bool good = true;  ///< on this rank; else `trouble` says why not
  Diagnostics trouble;
};

class Session {
 public:
  Session(const BenchRun& run, Communicator& communicator, const RunLog& log)
      : run_(run),
        options_(run.options),
        arounds_(count_arounds(run.options)),
        communicator_(communicator),
        log_(log) {}
  ~Session() {
    contenders_.clear();
    if (stream_ != nullptr) communicator_.device().destroy_stream(stream_);
  }

  bool run();

 private:
  bool open();
  void open_contenders();
  void open_contender(const std::string& name);
  std::unique_ptr<Contender> make_contender(const std::string& name, Diagnostics& diagnostics);
  bool run_collective(CollectiveKind kind);
  std::vector<std::unique_ptr<Contender>> load_plans(CollectiveKind kind, Dtype dtype);
  /// Adds it to `loaded` if all ranks can.
  void load_plan(const BenchPlan& plan, Dtype dtype, bool own_kernels,
                 std::vector<std::unique_ptr<Contender>>& loaded);
  bool run_table(Table& table);
  bool run_size(const Table& table, uint64_t bytes, std::vector<Result>& results);
  bool surround(const Workload& workload, std::optional<Surroundings>& surroundings) const;
  bool measure(const Table& table, const Workload& workload, std::vector<Result>& rows);
  bool start_all(const Table& table, const Workload& workload,
                 const std::optional<Surroundings>& surroundings, std::vector<Result>& rows,
                 std::vector<Taking>& taking);
  bool stays_in(const Taking& t, const Workload& workload, bool& stays);
  void time_all(const Table& table, const Workload& workload, std::vector<Taking>& taking);
  bool finish(const Table& table, const Workload& workload, Taking& t, std::vector<Result>& rows);
  bool check_repeated(const Table& table, const Workload& workload, Taking& t,
                      std::vector<Result>& rows);
  bool prepare(Contender& contender, const Workload& workload, bool& takes_part);
  bool try_out(const Table& table, Contender& contender, const Workload& workload,
               std::vector<Result>& rows, bool& takes_part);
  void first_call(Contender& contender);
  bool check(const Table& table, Contender& contender, const Workload& workload,
             const Checker::Launch& launch, const std::string& when, std::vector<Result>& rows,
             bool& right);
  Workload workload_of(const Table& table, uint64_t bytes, bool in_place) const;
  Result& row_of(const Table& table, const Workload& workload, const Contender& contender,
                 std::vector<Result>& rows) const;
  void add_baselines_of_other_programs(const Table& table, uint64_t bytes,
                                       std::vector<Result>& rows) const;
  bool broke_off() const;
  bool end(Diagnostics& diagnostics) const;
  bool show_clocks(Timed& timed, const Contender& contender, Diagnostics& diagnostics);
  void at(std::string_view what) const;
  void at(const Table& table, const Contender& contender, const Workload& workload) const;

  const BenchRun& run_;
  const Options& options_;
  const uint32_t arounds_;  ///< ways in which calls are timed
  Communicator& communicator_;
  const RunLog& log_;
  cudaStream_t stream_ = nullptr;
  uint64_t side_ = 0;  ///< bytes of each of the two buffers
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<RegisteredBuffer> registered_;
  std::unique_ptr<PeerMemory> peers_;
  std::vector<std::unique_ptr<Contender>> contenders_;  ///< that are no plans
  std::unique_ptr<Checker> checker_;
  std::unique_ptr<ClockRows> clocks_;  ///< if they are asked for
  std::string collective_;
  std::set<std::string> called_;
  bool shown_first_plan_ = false;
};

/// After a hang nothing more can be launched: says so, and which it was.
bool Session::broke_off() const {
  Diagnostics said;
  if (communicator_.check(said)) return false;
  fmt::print(stderr, "{}", render_text(said, Sources{}));
  return true;
}

/// Says why the run ends. Returns false.
bool Session::end(Diagnostics& diagnostics) const {
  (void)communicator_.check(diagnostics);
  fmt::print(stderr, "{}", render_text(diagnostics, Sources{}));
  return false;
}

bool Session::open() {
  Diagnostics diagnostics;
  const uint64_t most = *std::ranges::max_element(options_.sizes) + options_.offset;
  side_ = (most + kPage - 1) / kPage * kPage;
  memory_ = communicator_.device().allocate(2 * side_, "the benchmark's buffers", diagnostics);
  if (memory_ != nullptr) {
    registered_ = communicator_.register_buffer(memory_->data(), 2 * side_, diagnostics);
  }
  stream_ = static_cast<cudaStream_t>(communicator_.device().create_stream(diagnostics));
  std::string why;
  if (options_.clocks) clocks_ = ClockRows::open(communicator_.device(), diagnostics);
  const bool able =
      registered_ != nullptr && stream_ != nullptr && (clocks_ != nullptr || !options_.clocks);
  if (!all_able(communicator_, able, diagnostics, why)) {
    if (communicator_.rank() == 0) fmt::print(stderr, "mscclc-bench: {}\n", why);
    return false;
  }
  checker_ = std::make_unique<Checker>(communicator_, stream_, options_.check);
  open_contenders();
  return true;
}

void Session::open_contenders() {
  if (options_.has_contender("copy") || options_.has_contender("handwritten")) {
    Diagnostics diagnostics;
    peers_ = PeerMemory::share(communicator_, memory_->data(), memory_->bytes(), diagnostics);
  }
  for (const std::string& name : options_.contenders) {
    if (name == "handwritten") {
      open_contender("handwritten-1shot");
      open_contender("handwritten-2shot");
      open_contender("handwritten-exchange");
      open_contender("handwritten-slices");
    } else if (name != "torch") {
      open_contender(name);
    }
  }
}

std::unique_ptr<Contender> Session::make_contender(const std::string& name,
                                                   Diagnostics& diagnostics) {
  if (name.starts_with("nccl")) {
    std::string file;
    auto made =
        make_nccl_contender(communicator_, name == "nccl-symmetric", *memory_, file, diagnostics);
    if (made != nullptr && name == "nccl") {
      log_.file_size("library " + file.substr(file.rfind('/') + 1), file);
    }
    return made;
  }
  if (peers_ == nullptr) {
    diagnostics.error("peer-memory", {}, "peers' memory could not be mapped");
    return nullptr;
  }
  if (name == "copy") return make_copy_contender(*peers_);
  if (name == "handwritten-1shot") return make_handwritten_one_shot(communicator_, diagnostics);
  if (name == "handwritten-exchange") return make_handwritten_exchange(communicator_, diagnostics);
  if (name == "handwritten-slices") {
    return make_handwritten_slices(communicator_, *peers_, side_, diagnostics);
  }
  return make_handwritten_two_shot(communicator_, *peers_, diagnostics);
}

/// What a plan's blocks were doing when.
bool Session::show_clocks(Timed& timed, const Contender& contender, Diagnostics& diagnostics) {
  if (clocks_ == nullptr || contender.role() != Role::plan) return true;
  std::string text;
  const auto unit = [&](Diagnostics& d) { return timed.run_unit(d); };
  if (!clocks_->read(unit, stream_, text, diagnostics)) return false;
  log_.print(fmt::format("# {}: cycles of rank 0's blocks\n{}", contender.name(), text));
  if (options_.between == 0) return true;
  const auto around = [&](Diagnostics& d) { return timed.run(Around::once, d); };
  if (!clocks_->read(around, stream_, text, diagnostics)) return false;
  log_.print(fmt::format("# {}: the same between other kernels\n{}", contender.name(), text));
  return true;
}

/// What this run is at, for who watches it.
void Session::at(std::string_view what) const {
  if (communicator_.rank() == 0) run_.watch.begin(what);
}
void Session::at(const Table& table, const Contender& contender, const Workload& w) const {
  at(fmt::format("{}, {} of {} bytes, {}, {}{}", contender.name(), collective_, w.bytes,
                 info(table.dtype).name, table.graph ? "CUDA graph" : "eager",
                 w.in_place ? ", in place" : ""));
}

void Session::open_contender(const std::string& name) {
  at("setting up " + name);
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  auto made = make_contender(name, diagnostics);
  std::string why;
  if (!all_able(communicator_, made != nullptr, diagnostics, why)) {
    log_.leave_out(name, "", why);
    return;
  }
  log_.start_up("setting up " + name, milliseconds_since(begin));
  contenders_.push_back(std::move(made));
}

bool Session::run() {
  if (!open()) return false;
  std::vector<CollectiveKind> kinds = options_.collectives;
  if (kinds.empty()) kinds = run_.plans.collectives();
  return std::ranges::all_of(kinds, [&](CollectiveKind kind) { return run_collective(kind); });
}

std::vector<std::unique_ptr<Contender>> Session::load_plans(CollectiveKind kind, Dtype dtype) {
  std::vector<std::unique_ptr<Contender>> loaded;
  for (const BenchPlan& plan :
       run_.plans.plans_for(kind, communicator_.size(), communicator_.worst_link())) {
    load_plan(plan, dtype, false, loaded);
    if (has_kernels_beside(communicator_.device(), plan)) load_plan(plan, dtype, true, loaded);
  }
  return loaded;
}

void Session::load_plan(const BenchPlan& plan, Dtype dtype, bool own_kernels,
                        std::vector<std::unique_ptr<Contender>>& loaded) {
  at("loading " + plan.program->name);
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  auto made = make_plan_contender(communicator_, plan, *std::ranges::max_element(options_.sizes),
                                  dtype, options_.every_size, own_kernels, diagnostics);
  std::string why;
  if (!all_able(communicator_, made != nullptr, diagnostics, why)) {
    log_.leave_out(plan.program->name, collective_, why);
    return;
  }
  log_.start_up("loading " + plan.program->name, milliseconds_since(begin), !shown_first_plan_);
  loaded.push_back(std::move(made));
}

bool Session::run_collective(CollectiveKind kind) {
  const auto plans = run_.plans.plans_for(kind, communicator_.size(), communicator_.worst_link());
  Contract contract;
  contract.kind = kind;
  contract.ranks = communicator_.size();
  contract.root = has_root(kind) ? options_.root : 0;
  if (!plans.empty()) contract = plans.front().program->contract;
  collective_ = name(kind);
  for (const Dtype dtype : options_.dtypes) {
    auto loaded = load_plans(kind, dtype);
    const size_t ops = contract.reduces() ? options_.ops.size() : 1;
    for (size_t i = 0; i < ops; ++i) {
      for (const bool graph : {false, true}) {
        if (!(graph ? options_.graph : options_.eager)) continue;
        Table table{.kind = kind,
                    .contract = contract,
                    .dtype = dtype,
                    .op = options_.ops[i],
                    .graph = graph,
                    .contenders = {},
                    .blank = {}};
        for (const auto* list : {&loaded, &contenders_}) {
          for (const auto& contender : *list) table.contenders.push_back(contender.get());
        }
        if (!run_table(table)) return false;
      }
    }
  }
  return true;
}

bool Session::run_table(Table& table) {
  Result& blank = table.blank;
  blank.collective = collective_;
  blank.dtype = info(table.dtype).name;
  blank.op = table.contract.reduces() ? name(table.op) : "none";
  blank.root = has_root(table.kind) ? static_cast<int64_t>(table.contract.root) : -1;
  blank.mode = table.graph ? "graph" : "eager";
  blank.offset = options_.offset;
  blank.ranks = communicator_.size();
  if (options_.between > 0) blank.between = fmt::format("{} us", options_.between);
  blank.bus_factor = bus_factor(table.kind, communicator_.size());
  log_.print(
      fmt::format("#\n# {}, {} ({}), {}, on {}{}\n{}", blank.collective, blank.dtype,
                  nccl_name(table.dtype), table.graph ? "CUDA graph" : "eager", log_.machine(),
                  blank.offset > 0 ? fmt::format(", buffers moved by {} bytes", blank.offset) : "",
                  bench_header()));
  std::vector<Result> results;
  uint64_t last = ~uint64_t{0};
  for (const uint64_t bytes : options_.sizes) {
    const uint64_t message = workload_of(table, bytes, false).bytes;
    if (message == last || message == 0) continue;  // the same number of whole elements
    last = message;
    if (!run_size(table, bytes, results)) return false;
  }
  if (results.empty()) return true;
  log_.print(bench_footer(tables_of(results).begin()->second));
  return true;
}

Workload Session::workload_of(const Table& table, uint64_t bytes, bool in_place) const {
  Workload w{.contract = &table.contract, .dtype = table.dtype, .op = table.op};
  w.in_place = in_place;
  w.behind_early = options_.between_early;
  w.part = Chunking::part_for_message(table.contract, bytes, info(table.dtype).bytes);
  const Chunking chunking(table.contract, w.part, kAlign);
  w.bytes = chunking.message_bytes();
  w.input = memory_->data() + options_.offset;
  w.output = w.input + side_;
  if (!in_place) return w;
  const CallerBuffers callers =
      caller_buffers(table.contract, chunking, communicator_.rank(), true);
  if (!callers.shared) return w;
  w.output = w.input;
  (callers.outer == kInput ? w.output : w.input) += callers.inner_offset;
  return w;
}

Result& Session::row_of(const Table& table, const Workload& w, const Contender& contender,
                        std::vector<Result>& rows) const {
  for (Result& row : rows) {
    if (row.who == contender.name()) return row;
  }
  Result row = table.blank;
  row.bytes = w.bytes;
  row.count = w.part / info(table.dtype).bytes;
  row.who = contender.name();
  row.role = contender.role();
  row.ordered_by = contender.ordered_by();
  rows.push_back(row);
  return rows.back();
}

void Session::add_baselines_of_other_programs(const Table& table, uint64_t bytes,
                                              std::vector<Result>& rows) const {
  for (const Result& other : run_.before.results) {
    if (table_of(other) == table_of(table.blank) && other.bytes == bytes) rows.push_back(other);
  }
}

bool Session::run_size(const Table& table, uint64_t bytes, std::vector<Result>& results) {
  std::vector<Result> rows;
  const Workload out = workload_of(table, bytes, false);
  if (options_.check > 0) {
    Diagnostics diagnostics;
    std::string why;
    const bool prepared = checker_->prepare(out, diagnostics);
    if (!all_able(communicator_, prepared, diagnostics, why)) {
      log_.leave_out("all", collective_, why, &out);
      return !broke_off();
    }
  }
  if (options_.out_of_place && !measure(table, out, rows)) return false;
  if (options_.in_place && table.contract.can_alias() &&
      !measure(table, workload_of(table, bytes, true), rows)) {
    return false;
  }
  add_baselines_of_other_programs(table, out.bytes, rows);
  std::vector<const Result*> pointers;
  for (const Result& row : rows) {
    pointers.push_back(&row);
    log_.append(result_line(row));
  }
  log_.print(bench_rows(pointers, options_.best));
  results.insert(results.end(), rows.begin(), rows.end());
  return true;
}

void Session::first_call(Contender& contender) {
  if (!called_.insert(contender.name()).second) return;
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  const bool done =
      contender.launch(stream_, diagnostics) && communicator_.synchronize(stream_, diagnostics);
  const bool plan = contender.role() == Role::plan;
  if (!done) return;  // told by the check
  log_.start_up("first call of " + contender.name(), milliseconds_since(begin),
                !plan || !shown_first_plan_);
  shown_first_plan_ |= plan;
}

/// Prepares a contender. All ranks take part, or none does: one alone would wait forever. False:
/// the run must end.
bool Session::prepare(Contender& contender, const Workload& w, bool& takes_part) {
  takes_part = false;
  Diagnostics diagnostics;
  std::string why;
  uint64_t ranks = contender.prepare(w, diagnostics) ? 1 : 0;
  if (all_able(communicator_, ranks != 0 || !diagnostics.has_errors(), diagnostics, why)) {
    if (!sum_over_ranks(communicator_, ranks, diagnostics)) return end(diagnostics);
    takes_part = ranks == communicator_.size();
    if (takes_part || ranks == 0) return true;
    why = fmt::format("{} of {} ranks would take part", ranks, communicator_.size());
  }
  log_.leave_out(contender.name(), collective_, why, &w);
  return !broke_off();
}

/// Prepares a contender and checks its results. False: the run must end.
bool Session::try_out(const Table& table, Contender& contender, const Workload& w,
                      std::vector<Result>& rows, bool& takes_part) {
  if (!prepare(contender, w, takes_part)) return false;
  if (!takes_part) return true;
  first_call(contender);
  return check(
      table, contender, w, [&](Diagnostics& d) { return contender.launch(stream_, d); }, "", rows,
      takes_part);
}

/// Compares what `launch` leaves. False: the run must end.
bool Session::check(const Table& table, Contender& contender, const Workload& w,
                    const Checker::Launch& launch, const std::string& when,
                    std::vector<Result>& rows, bool& right) {
  right = true;
  if (options_.check == 0 || !contender.has_results()) return true;
  Diagnostics diagnostics;
  std::string why;
  uint64_t wrong = 0;
  const bool ran = checker_->check(launch, w, wrong, diagnostics);
  right = all_able(communicator_, ran && wrong == 0, diagnostics, why);
  if (broke_off()) return false;
  if (!sum_over_ranks(communicator_, wrong, diagnostics)) return end(diagnostics);
  Result& row = row_of(table, w, contender, rows);
  std::optional<Times>& times = w.in_place ? row.in_place : row.out_of_place;
  if (!times) times.emplace();
  times->checked = ran;
  times->wrong = wrong;
  if (right) return true;
  times->time = 0;
  if (wrong > 0) why = fmt::format("{} wrong elements{}: {}", wrong, when, why);
  log_.leave_out(contender.name(), collective_, why, &w);
  return true;
}

/// Makes what stands around calls, if they are to be timed so. False: the run must end.
bool Session::surround(const Workload& w, std::optional<Surroundings>& surroundings) const {
  if (options_.between == 0) return true;
  Diagnostics diagnostics;
  surroundings = Surroundings::of(w, communicator_.rank(), options_, diagnostics);
  std::string why;
  if (all_able(communicator_, surroundings.has_value(), diagnostics, why)) return true;
  return end(diagnostics);
}

/// Those that take part, ready to be timed. False: the run must end.
bool Session::start_all(const Table& table, const Workload& w,
                        const std::optional<Surroundings>& surroundings, std::vector<Result>& rows,
                        std::vector<Taking>& taking) {
  const Batch batch = batch_of(options_, w.bytes, table.graph);
  for (Contender* contender : table.contenders) {
    bool takes_part = false;
    at(table, *contender, w);
    if (!try_out(table, *contender, w, rows, takes_part)) return false;
    if (!takes_part) continue;
    taking.emplace_back();
    Taking& t = taking.back();
    t.contender = contender;
    t.timed = std::make_unique<Timed>(*contender, stream_, batch, arounds_, surroundings);
    t.good = t.timed->start(t.trouble);
    bool stays = false;
    if (!stays_in(t, w, stays)) return false;
    if (!stays) taking.pop_back();
  }
  return true;
}

/// Has all gone well so far, on all ranks? Who is in trouble is left out. False: the run must end.
bool Session::stays_in(const Taking& t, const Workload& w, bool& stays) {
  std::string why;
  stays = all_able(communicator_, t.good, t.trouble, why);
  if (!stays) log_.leave_out(t.contender->name(), collective_, why, &w);
  return stays || !broke_off();
}

/// A batch of each in turn, and again. A rank in trouble still meets the others.
void Session::time_all(const Table& table, const Workload& w, std::vector<Taking>& taking) {
  for (uint32_t i = 0; i < options_.repeats * arounds_; ++i) {
    const uint32_t around = i % arounds_;
    for (Taking& t : taking) {
      at(table, *t.contender, w);
      double time = 0;
      if (t.good) {
        t.good = t.timed->repeat(run_.barrier, static_cast<Around>(around), time, t.trouble);
      } else {
        run_.barrier.meet();
      }
      t.times[around].push_back(time);
    }
  }
}

bool Session::measure(const Table& table, const Workload& w, std::vector<Result>& rows) {
  std::optional<Surroundings> surroundings;
  std::vector<Taking> taking;
  if (!surround(w, surroundings)) return false;
  if (!start_all(table, w, surroundings, rows, taking)) return false;
  time_all(table, w, taking);
  for (Taking& t : taking) {
    at(table, *t.contender, w);
    bool stays = false;
    if (!stays_in(t, w, stays)) return false;
    if (!stays) continue;
    t.good = t.timed->units(run_.barrier, t.units, t.trouble);
    if (!stays_in(t, w, stays)) return false;
    if (stays && !finish(table, w, t, rows)) return false;
  }
  return !broke_off();
}

/// Times of all ranks, and whether results are right once they were taken. False: the run must end.
bool Session::finish(const Table& table, const Workload& w, Taking& t, std::vector<Result>& rows) {
  Diagnostics diagnostics;
  if (!slowest_of_ranks(communicator_, t.units, diagnostics)) return end(diagnostics);
  for (uint32_t i = 0; i < arounds_; ++i) {
    if (!slowest_of_ranks(communicator_, t.times[i], diagnostics)) return end(diagnostics);
  }
  if (!show_clocks(*t.timed, *t.contender, diagnostics)) return end(diagnostics);
  Result& row = row_of(table, w, *t.contender, rows);
  std::optional<Times>& times = w.in_place ? row.in_place : row.out_of_place;
  if (!times) times.emplace();
  times->time = quantile(t.times[0], 0.5);
  times->p50 = quantile(t.units, 0.5);
  times->p99 = quantile(t.units, 0.99);
  const auto cost = [&](Around once, Around twice) {
    return quantile(
        added_cost(t.times[static_cast<size_t>(once)], t.times[static_cast<size_t>(twice)]), 0.5);
  };
  if (arounds_ > 1) times->between = cost(Around::once, Around::twice);
  if (arounds_ == kArounds) times->between_early = cost(Around::early_once, Around::early_twice);
  // Of calls back to back the last must still have the first one's input.
  return w.in_place || !t.contender->keeps_input() || check_repeated(table, w, t, rows);
}

/// Checks what calls leave as they were timed. False: the run must end.
bool Session::check_repeated(const Table& table, const Workload& w, Taking& t,
                             std::vector<Result>& rows) {
  bool right = true;
  const auto unit = [&](Diagnostics& d) { return t.timed->run_unit(d); };
  if (!check(table, *t.contender, w, unit, " after calls back to back", rows, right)) return false;
  for (const auto& [around, when] :
       {std::pair{Around::once, " between other kernels"},
        {Around::early_once, " between other kernels that let the next begin early"}}) {
    if (!right || static_cast<uint32_t>(around) >= arounds_) break;
    const auto run = [&, around = around](Diagnostics& d) { return t.timed->run(around, d); };
    if (!check(table, *t.contender, w, run, when, rows, right)) return false;
  }
  return true;
}

int broken(const Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", render_text(diagnostics, Sources{}));
  return 3;
}

}  // namespace

int run_session(const BenchRun& run, std::unique_ptr<Bootstrap> bootstrap) {
  Diagnostics diagnostics;
  const uint32_t rank = bootstrap->rank();
  const auto begin = Clock::now();
  std::optional<uint32_t> node;
  if (run.options.ranks_per_node > 0) node = rank / run.options.ranks_per_node;
  std::shared_ptr<Device> device = cuda::open_gpu(static_cast<int>(rank), diagnostics, node);
  if (device == nullptr || !device->bind_thread(diagnostics)) return broken(diagnostics);
  const double opened = milliseconds_since(begin);
  auto communicator =
      Communicator::create(std::move(bootstrap), device, {.timeout = kPatience}, diagnostics);
  if (communicator == nullptr) return broken(diagnostics);
  const RunLog log(*communicator, run.record_file);
  log.append(machine_line(log.machine()));
  log.start_up("opening a GPU", opened);
  log.start_up("opening a GPU and making a communicator", milliseconds_since(begin));
  log.file_size("program mscclc-bench, with compiler, runtime and kernels", "/proc/self/exe");
  Session session(run, *communicator, log);
  return session.run() ? 0 : 3;
}

}  // namespace mscclc::bench
