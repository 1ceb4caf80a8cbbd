// mscclc-bench: times plans on this machine's GPUs beside peers, in one run, with nccl-tests'
// options and its table, and the ratio to the fastest peer.
//
//   mscclc-bench -g 4 -b 1K -e 16M -f 4 -G --peer nccl plans/allreduce_1shot.mscl plan.json
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "compiler/compile.h"
#include "executor/host/output_check.h"
#include "executor/lower.h"
#include "plans/plan_json.h"
#include "runtime/bootstrap/job.h"
#include "runtime/cuda/open.h"
#include "tools/bench/timing.h"
#include "tools/result_table.h"
#include "tools/sizes.h"

namespace mscclc::bench {
namespace {

struct Options {
  uint32_t gpus = 2, repeats = 9;
  std::string begin = "1K", end = "16M", factor = "4";
  std::string dtype = "f32", op = "sum";
  bool graph = false, every_size = false, in_place = false, check = true;
  std::vector<std::string> peers, plans;
};

using Plans = std::vector<std::shared_ptr<const Program>>;

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// A plan, or a program compiled for `ranks` ranks; after ':' more definitions, B=4,I=2.
std::shared_ptr<const Program> load_plan(const std::string& argument, uint32_t ranks) {
  const size_t colon = argument.find(':');
  const std::string path = argument.substr(0, colon);
  Sources sources;
  Diagnostics diagnostics;
  std::optional<Program> program;
  std::string text = read_file(path);
  if (path.ends_with(".json")) {
    program = read_plan(text, path, diagnostics);
  } else {
    FrontEndOptions front;
    front.defines.emplace_back("R", std::to_string(ranks));
    std::istringstream more(colon == std::string::npos ? "" : argument.substr(colon + 1));
    for (std::string item; std::getline(more, item, ',');) {
      const size_t equals = item.find('=');
      front.defines.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    }
    const FileId file = sources.add(path, std::move(text));
    program = compile(sources, file, front, {}, diagnostics);
  }
  if (!program || program->ranks.size() != ranks) {
    fmt::print(stderr, "{}\nmscclc-bench: cannot use '{}' for {} ranks\n",
               render_text(diagnostics, sources), argument, ranks);
    return nullptr;
  }
  if (colon != std::string::npos) program->name += argument.substr(colon);
  return std::make_shared<const Program>(std::move(*program));
}

/// What one contender did at one size.
struct Row {
  std::string name;
  double p50 = 0, p99 = 0;
  uint64_t wrong = 0;
};

/// One rank of the benchmark.
class Bench {
 public:
  Bench(const Options& options, Communicator& communicator, SpinBarrier& barrier)
      : options_(options), communicator_(communicator), barrier_(barrier) {}

  bool run(const Plans& plans, const std::vector<uint64_t>& sizes);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  bool open(const Plans& plans, uint64_t most);
  bool run_size(uint64_t bytes);
  bool check(Contender& contender, const Workload& workload, uint64_t& wrong);
  bool slowest(std::vector<double>& times);
  void print(uint64_t bytes, uint64_t count, const std::vector<Row>& rows);

  const Options& options_;
  Communicator& communicator_;
  SpinBarrier& barrier_;
  Diagnostics diagnostics_;
  const Contract* contract_ = nullptr;
  uint32_t align_ = 16;
  Dtype dtype_ = Dtype::f32;
  ReduceOp op_ = ReduceOp::sum;
  cudaStream_t stream_ = nullptr;
  uint64_t side_ = 0;  ///< bytes of each of the two buffers
  std::unique_ptr<Memory> buffers_;
  std::unique_ptr<RegisteredBuffer> registered_;
  std::vector<uint8_t> mirror_[2];
  std::vector<std::unique_ptr<Contender>> contenders_;
};

bool Bench::open(const Plans& plans, uint64_t most) {
  contract_ = &plans.front()->contract;
  align_ = plans.front()->launch.align;
  dtype_ = *find_dtype(options_.dtype);
  op_ = *find_reduce_op(options_.op);
  side_ = (most + 4095) / 4096 * 4096;
  buffers_ = communicator_.device().allocate(2 * side_, "the benchmark's buffers", diagnostics_);
  if (buffers_ == nullptr) return false;
  registered_ = communicator_.register_buffer(buffers_->data(), 2 * side_, diagnostics_);
  if (registered_ == nullptr) return false;
  for (const auto& plan : plans) {
    contenders_.push_back(
        make_plan_contender(communicator_, plan, most, options_.every_size, diagnostics_));
    if (contenders_.back() == nullptr) return false;
  }
  for (const std::string& peer : options_.peers) {
    contenders_.push_back(make_nccl_contender(communicator_, peer == "nccl-symmetric",
                                              buffers_->data(), buffers_->bytes(), diagnostics_));
    if (contenders_.back() == nullptr) return false;
  }
  stream_ = static_cast<cudaStream_t>(communicator_.device().create_stream(diagnostics_));
  return stream_ != nullptr;
}

bool Bench::check(Contender& contender, const Workload& w, uint64_t& wrong) {
  const Chunking chunking(*contract_, w.part, align_);
  const TestValues values(dtype_, info(dtype_).accumulate,
                          contract_->reduces() ? op_ : ReduceOp::call, contract_->ranks);
  const uint32_t rank = communicator_.rank();
  OutputCheck check(*contract_, w.part, align_, values, rank);
  const uint64_t in = chunking.buffer_bytes(Side::input, rank);
  const uint64_t out = chunking.buffer_bytes(Side::output, rank);
  mirror_[0].resize(std::max<uint64_t>(in, 1));
  mirror_[1].resize(std::max<uint64_t>(out, 1));
  Device& device = communicator_.device();
  for (uint64_t call = 0; call < 2; ++call) {
    check.fill(rank, call, mirror_[0].data(), mirror_[1].data());
    if (!device.write(w.output, mirror_[1].data(), out, diagnostics_) ||
        !device.write(w.input, mirror_[0].data(), in, diagnostics_) ||
        !communicator_.bootstrap().barrier("inputs are filled", diagnostics_) ||
        !contender.launch(stream_, diagnostics_) ||
        !communicator_.synchronize(stream_, diagnostics_) ||
        !device.read(mirror_[1].data(), w.output, out, diagnostics_)) {
      return false;
    }
    check.compare(rank, call, mirror_[1].data());
  }
  check.report(diagnostics_);
  wrong = check.wrong();
  return true;
}

/// Every repeat's time on the slowest rank; sorted.
bool Bench::slowest(std::vector<double>& times) {
  std::vector<std::vector<uint8_t>> all;
  const auto* bytes = reinterpret_cast<const uint8_t*>(times.data());
  if (!communicator_.bootstrap().all_gather({bytes, times.size() * sizeof(double)}, "times", all,
                                            diagnostics_)) {
    return false;
  }
  for (const std::vector<uint8_t>& rank : all) {
    for (size_t i = 0; i < times.size(); ++i) {
      double time = 0;
      std::memcpy(&time, rank.data() + i * sizeof time, sizeof time);
      times[i] = std::max(times[i], time);
    }
  }
  std::ranges::sort(times);
  return true;
}

bool Bench::run_size(uint64_t bytes) {
  Workload w{.contract = contract_, .dtype = dtype_, .op = op_};
  w.part = Chunking::part_for_message(*contract_, bytes, info(dtype_).bytes);
  const Chunking chunking(*contract_, w.part, align_);
  w.bytes = chunking.message_bytes();
  w.input = buffers_->data();
  w.output = buffers_->data() + side_;
  std::vector<Row> rows;
  std::vector<std::unique_ptr<Timed>> timed;
  const Batch batch = Batch::of(bytes, options_.graph);
  for (const auto& contender : contenders_) {
    if (!contender->prepare(w, diagnostics_)) {
      if (diagnostics_.has_errors()) return false;
      continue;
    }
    Row row{.name = contender->name()};
    if (options_.check && !check(*contender, w, row.wrong)) return false;
    auto one = std::make_unique<Timed>(*contender, stream_, batch, options_.graph);
    if (!one->start(diagnostics_)) return false;
    rows.push_back(row);
    timed.push_back(std::move(one));
  }
  std::vector<std::vector<double>> times(rows.size(), std::vector<double>(options_.repeats));
  for (uint32_t i = 0; i < options_.repeats; ++i) {
    for (size_t c = 0; c < rows.size(); ++c) {
      if (!timed[c]->repeat(barrier_, times[c][i], diagnostics_)) return false;
    }
  }
  for (size_t c = 0; c < rows.size(); ++c) {
    if (!slowest(times[c])) return false;
    rows[c].p50 = times[c][times[c].size() / 2];
    rows[c].p99 = times[c].back();
  }
  if (communicator_.rank() == 0) print(w.bytes, w.bytes / info(dtype_).bytes, rows);
  return true;
}

void Bench::print(uint64_t bytes, uint64_t count, const std::vector<Row>& rows) {
  double best_peer = 0;
  for (const Row& row : rows) {
    if (!row.name.starts_with("nccl")) continue;
    best_peer = best_peer == 0 ? row.p50 : std::min(best_peer, row.p50);
  }
  const double factor = bus_factor(contract_->kind, contract_->ranks);
  for (const Row& row : rows) {
    const double bandwidth = static_cast<double>(bytes) / row.p50 / 1000;
    fmt::print(
        "{:>12} {:>12} {:>6} {:>5} {:>10.2f} {:>10.2f} {:>8.2f} {:>8.2f} {:>7} {:>6.2f}  {}\n",
        bytes, count, options_.dtype, options_.op, row.p50, row.p99, bandwidth, bandwidth * factor,
        row.wrong, best_peer == 0 ? 0 : best_peer / row.p50, row.name);
  }
  std::fflush(stdout);
}

bool Bench::run(const Plans& plans, const std::vector<uint64_t>& sizes) {
  if (!open(plans, *std::ranges::max_element(sizes))) return false;
  if (communicator_.rank() == 0) {
    fmt::print("# {} on {} x {}, {}, out of place\n# ratio: time of the fastest peer / time\n",
               name(contract_->kind), communicator_.size(), communicator_.device().name(),
               options_.graph ? "CUDA graph" : "eager");
    fmt::print("{:>12} {:>12} {:>6} {:>5} {:>10} {:>10} {:>8} {:>8} {:>7} {:>6}  who\n", "bytes",
               "count", "type", "redop", "p50 us", "p99 us", "algbw", "busbw", "#wrong", "ratio");
  }
  return std::ranges::all_of(sizes, [&](uint64_t bytes) { return run_size(bytes); });
}

int run_rank(const Options& options, const Plans& plans, const std::vector<uint64_t>& sizes,
             std::unique_ptr<Bootstrap> bootstrap, SpinBarrier& barrier, Diagnostics& diagnostics) {
  const auto fail = [&](const Diagnostics& said) {
    fmt::print(stderr, "{}", render_text(said, Sources{}));
    return 3;
  };
  if (bootstrap == nullptr) return fail(diagnostics);
  std::shared_ptr<Device> device = cuda::open_gpu(static_cast<int>(bootstrap->rank()), diagnostics);
  if (device == nullptr || !device->bind_thread(diagnostics)) return fail(diagnostics);
  auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  if (communicator == nullptr) return fail(diagnostics);
  Bench bench(options, *communicator, barrier);
  return bench.run(plans, sizes) ? 0 : fail(bench.diagnostics());
}

/// Rank 0's process hosts the job and hands the id to the others.
int run_process(uint32_t rank, const Options& options, const Plans& plans,
                const std::vector<uint64_t>& sizes, SpinBarrier& barrier, const int ids[2]) {
  Diagnostics diagnostics;
  std::unique_ptr<Hub> hub;
  std::string id(UniqueId::kMostText, '\n');
  if (rank == 0) {
    auto job = host_job(
        {.size = options.gpus, .rank = 0, .one_machine = true, .timeout = std::chrono::seconds(60)},
        diagnostics);
    if (!job) return run_rank(options, plans, sizes, nullptr, barrier, diagnostics);
    hub = std::move(job->hub);
    const std::string text = job->id.text();
    id.replace(0, text.size(), text);
    for (uint32_t i = 1; i < options.gpus; ++i) {
      if (write(ids[1], id.data(), id.size()) < 0) return 3;
    }
  } else if (read(ids[0], id.data(), id.size()) != static_cast<ssize_t>(id.size())) {
    return 3;
  }
  const auto parsed = UniqueId::parse(id.substr(0, id.find('\n')), diagnostics);
  std::unique_ptr<Bootstrap> bootstrap;
  if (parsed) {
    bootstrap = join_job(*parsed, rank, options.gpus, std::chrono::seconds(60), std::move(hub),
                         diagnostics);
  }
  return run_rank(options, plans, sizes, std::move(bootstrap), barrier, diagnostics);
}

int run_all(const Options& options) {
  std::string error;
  const auto sizes =
      parse_sizes(fmt::format("{}:{}:{}", options.begin, options.end, options.factor), error);
  if (!sizes || !find_dtype(options.dtype) || !find_reduce_op(options.op)) {
    fmt::print(stderr, "mscclc-bench: {}\n", sizes ? "unknown data type or reduction" : error);
    return 2;
  }
  Plans plans;
  for (const std::string& argument : options.plans) {
    plans.push_back(load_plan(argument, options.gpus));
    if (plans.back() == nullptr) return 1;
  }
  void* shared =
      mmap(nullptr, sizeof(SpinBarrier), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ids[2];
  if (shared == MAP_FAILED || pipe(ids) != 0) return 2;
  auto* barrier = new (shared) SpinBarrier(options.gpus);
  std::vector<pid_t> children;
  for (uint32_t r = 0; r < options.gpus; ++r) {
    const pid_t child = fork();
    if (child == 0) _exit(run_process(r, options, plans, *sizes, *barrier, ids));
    children.push_back(child);
  }
  int code = 0;
  for (size_t left = children.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    const int own = WIFEXITED(status) ? WEXITSTATUS(status) : 3;
    if (own == 0) continue;
    code = own;
    // The others may spin for it.
    for (const pid_t child : children) {
      if (child != ended) kill(child, SIGKILL);
    }
  }
  return code;
}

}  // namespace
}  // namespace mscclc::bench

int main(int argc, char** argv) {
  mscclc::bench::Options options;
  CLI::App app("times plans on this machine's GPUs beside peers");
  app.add_option("-g,--ngpus", options.gpus, "GPUs, one rank each (default: 2)");
  app.add_option("-b,--minbytes", options.begin, "smallest message (default: 1K)");
  app.add_option("-e,--maxbytes", options.end, "largest message (default: 16M)");
  app.add_option("-f,--stepfactor", options.factor, "from one size to the next (default: 4)");
  app.add_option("-n,--repeats", options.repeats, "batches timed; the median counts (default: 9)");
  app.add_option("-d,--datatype", options.dtype, "data type (default: f32)");
  app.add_option("-o,--op", options.op, "reduction (default: sum)");
  app.add_flag("-G,--cudagraph", options.graph, "time replays of CUDA graphs");
  app.add_flag("--every-size", options.every_size, "also where a plan's 'select' does not reach");
  app.add_flag("!--no-check", options.check, "do not check results");
  app.add_option("--peer", options.peers, "nccl, nccl-symmetric")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"nccl", "nccl-symmetric"}));
  app.add_option("plans", options.plans, "programs or plans of one collective; prog.mscl:B=4,I=2")
      ->required();
  CLI11_PARSE(app, argc, argv);
  return mscclc::bench::run_all(options);
}
