#include "tools/bench/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "executor/lower.h"
#include "runtime/api/gpu.h"
#include "tools/bench/measure/clock.h"
#include "tools/bench/ranks/gpu_share.h"
#include "tools/bench/report/table.h"
#include "tools/bench/results/comparison.h"
#include "tools/bench/results/record.h"
#include "tools/bench/support/hardware_queues.h"
#include "tools/bench/table_run.h"
#include "tools/io/progress.h"
#include "tools/io/result_table.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kAlign = 16;
constexpr uint64_t kPage = 4096;
constexpr std::chrono::seconds kPatience{20};  // of a call that hangs

class Session {
 public:
  Session(const BenchRun& run, Communicator& communicator, const RunLog& log)
      : run_(run),
        options_(run.options),
        communicator_(communicator),
        log_(log),
        bench_(run, communicator, log) {}
  ~Session() {
    contenders_.clear();
    if (bench_.stream != nullptr) communicator_.device().destroy_stream(bench_.stream);
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
  void load_plan(const BenchPlan& plan, Dtype dtype, bool compiled_kernels,
                 std::vector<std::unique_ptr<Contender>>& loaded);
  bool run_table(Table& table);
  bool run_size(const Table& table, uint64_t bytes, std::vector<Result>& results);
  Workload workload_of(const Table& table, uint64_t bytes, bool in_place) const;
  void add_baselines_of_other_programs(const Table& table, uint64_t bytes,
                                       std::vector<Result>& rows) const;

  const BenchRun& run_;
  const Options& options_;
  Communicator& communicator_;
  const RunLog& log_;
  uint64_t side_ = 0;  ///< bytes of each of the two buffers
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<RegisteredBuffer> registered_;
  std::unique_ptr<PeerMemory> peers_;
  std::vector<std::unique_ptr<Contender>> contenders_;  ///< that are no plans
  std::string collective_;
  Bench bench_;
};

bool Session::open() {
  Diagnostics diagnostics;
  const uint64_t most = *std::ranges::max_element(options_.sizes) + options_.offset;
  side_ = (most + kPage - 1) / kPage * kPage;
  memory_ = communicator_.device().allocate(2 * side_, "the benchmark's buffers", diagnostics);
  if (memory_ != nullptr) {
    registered_ = communicator_.register_buffer(memory_->data(), 2 * side_, diagnostics);
  }
  bench_.stream = static_cast<cudaStream_t>(communicator_.device().create_stream(diagnostics));
  if (options_.clocks) bench_.clocks = ClockRows::open(communicator_.device(), diagnostics);
  const bool able = registered_ != nullptr && bench_.stream != nullptr &&
                    (bench_.clocks != nullptr || !options_.clocks);
  if (const auto unable = any_unable(communicator_, able, diagnostics)) {
    if (communicator_.rank() == 0) fmt::print(stderr, "mscclc-bench: {}\n", unable->text());
    return false;
  }
  bench_.checker = std::make_unique<Checker>(communicator_, bench_.stream, options_.check);
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
  if (name.starts_with("nccl") && options_.ranks_per_gpu > 1) {
    diagnostics.error("gpu-share", {}, "NCCL refuses ranks of one machine that share a GPU");
    return nullptr;
  }
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

void Session::open_contender(const std::string& name) {
  bench_.at("setting up " + name);
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  auto made = make_contender(name, diagnostics);
  if (const auto unable = any_unable(communicator_, made != nullptr, diagnostics)) {
    log_.leave_out(name, "", unable->text());
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

void Session::load_plan(const BenchPlan& plan, Dtype dtype, bool compiled_kernels,
                        std::vector<std::unique_ptr<Contender>>& loaded) {
  bench_.at("loading " + plan.program->name);
  Diagnostics diagnostics;
  const auto begin = Clock::now();
  auto made =
      make_plan_contender(communicator_, plan, *std::ranges::max_element(options_.sizes), dtype,
                          options_.every_size, compiled_kernels, bench_.clocks.get(), diagnostics);
  if (const auto unable = any_unable(communicator_, made != nullptr, diagnostics)) {
    log_.leave_out(plan.program->name, collective_, unable->text());
    return;
  }
  log_.start_up("loading " + plan.program->name, milliseconds_since(begin),
                !bench_.shown_first_plan);
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
  std::optional<Progress> progress;
  if (communicator_.rank() == 0) progress.emplace("this table", options_.sizes.size());
  for (const uint64_t bytes : options_.sizes) {
    if (progress) progress->next(fmt::format("{} bytes", bytes));
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
  w.previous_allows_early = options_.between_early;
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

void Session::add_baselines_of_other_programs(const Table& table, uint64_t bytes,
                                              std::vector<Result>& rows) const {
  for (Result& other : recorded_for(table.blank, bytes, run_.before.results)) {
    rows.push_back(std::move(other));
  }
}

bool Session::run_size(const Table& table, uint64_t bytes, std::vector<Result>& results) {
  std::vector<Result> rows;
  const Workload out = workload_of(table, bytes, false);
  if (options_.check > 0) {
    Diagnostics diagnostics;
    const bool prepared = bench_.checker->prepare(out, diagnostics);
    if (const auto unable = any_unable(communicator_, prepared, diagnostics)) {
      log_.leave_out("all", collective_, unable->text(), &out);
      return !bench_.broke_off();
    }
  }
  TableRun run(bench_, table);
  if (options_.out_of_place && !run.measure(out, rows)) return false;
  if (options_.in_place && table.contract.can_alias() &&
      !run.measure(workload_of(table, bytes, true), rows)) {
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

int broken(const Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", render_text(diagnostics, Sources{}));
  return 3;
}

std::optional<uint32_t> node_of(uint32_t rank, const Options& options) {
  if (options.ranks_per_node == 0) return std::nullopt;
  return rank / options.ranks_per_node;
}

/// Lets NCCL believe that the node is a machine, so that it takes two ranks on one GPU.
void set_up_node(uint32_t node) {
  ::setenv("NCCL_HOSTID", fmt::format("node {}", node).c_str(), 1);
  ask_for_queues(kUsualQueues);
}

void share_processors(const Options& options, int gpus) {
  const auto threads = socket_threads(options, gpus, std::thread::hardware_concurrency());
  if (!threads) return;
  ::setenv(kSocketThreads, fmt::format("{}", *threads).c_str(), 0);
}

/// Whether this process is a client of MPS; nothing: the driver does not say.
std::optional<bool> has_mps() {
  int device = 0, has = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&has, cudaDevAttrMpsEnabled, device) == cudaSuccess) {
    return has != 0;
  }
  cudaGetLastError();  // nothing else is to find it
  return std::nullopt;
}

/// Can the ranks share GPUs as the command line says? False: reported.
bool can_share(const Options& options, Diagnostics& diagnostics) {
  if (options.ranks_per_gpu == 1) return true;
  const auto fault = share_fault(options.ranks_per_gpu, has_mps(), ::getenv(kMpsPercentage));
  if (!fault) return true;
  diagnostics.error("gpu-share", {}, fault->text());
  return false;
}

/// The rank's GPU, current in this thread; nullptr: reported.
std::shared_ptr<Device> open_device(uint32_t rank, int gpus, std::optional<uint32_t> node,
                                    const Options& options, Diagnostics& diagnostics) {
  if (options.ranks_per_gpu > 1) {
    ::setenv(kMpsPercentage, fmt::format("{}", share_in_percent(options.ranks_per_gpu)).c_str(), 0);
  }
  std::shared_ptr<Device> device = cuda::open_gpu(gpu_of(rank, options, gpus), diagnostics, node);
  const bool good =
      device != nullptr && device->bind_thread(diagnostics) && can_share(options, diagnostics);
  return good ? device : nullptr;
}

}  // namespace

int run_session(const BenchRun& run, std::unique_ptr<Bootstrap> bootstrap) {
  Diagnostics diagnostics;
  const uint32_t rank = bootstrap->rank();
  const auto begin = Clock::now();
  const std::optional<uint32_t> node = node_of(rank, run.options);
  if (node) set_up_node(*node);
  const int gpus = run.options.ranks_per_node > 0 ? cuda::count_gpus(diagnostics) : 0;
  share_processors(run.options, gpus);
  const auto device = open_device(rank, gpus, node, run.options, diagnostics);
  if (device == nullptr) return broken(diagnostics);
  const double opened = milliseconds_since(begin);
  auto communicator =
      Communicator::create(std::move(bootstrap), device, {.timeout = kPatience}, diagnostics);
  if (communicator == nullptr) return broken(diagnostics);
  const RunLog log(*communicator, gpus_in_use(run.options, gpus), run.record_file);
  log.append(machine_line(log.machine()));
  log.start_up("opening a GPU", opened);
  log.start_up("opening a GPU and making a communicator", milliseconds_since(begin));
  log.file_size("program mscclc-bench, with compiler, runtime and kernels", "/proc/self/exe");
  Session session(run, *communicator, log);
  return session.run() ? 0 : 3;
}

}  // namespace mscclc::bench
