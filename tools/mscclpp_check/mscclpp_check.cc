// Runs a plan in the executor of MSCCL++ and checks every element: one process for each rank, the
// plan's collective from its `mscclc` key, buffers that are allocations of their own and buffers
// that lie inside larger ones, in and out of place, both packet types. tools/mscclpp_check.sh
// builds it against the user's MSCCL++ and runs it over the library; it is no part of our own
// build.
//
//   mscclpp_check PLAN [--dtype f16|f32|i32] [--chunk BYTES]… [--calls N] [--patience SECONDS]
//              [--wait stream|poll]
//
// One line for each form. Exit code 0: all right; 1: something wrong; 2: wrong use.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mscclpp/core.hpp>
#include <mscclpp/executor.hpp>
#include <mscclpp/gpu_data_types.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using Json = nlohmann::json;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "mscclpp_check: %s\n", why.c_str());
  std::_Exit(2);
}

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

/// What a plan says of itself.
struct Plan {
  std::string path, kind, in_place;
  int ranks = 0, root_shift = 0;
  std::vector<int64_t> counts;              ///< alltoallv, row by row
  std::vector<size_t> inputs{}, outputs{};  ///< chunks, by rank
  uint64_t least = 0, most = 0;             ///< bytes of the buffer that the executor compares
  bool packets = false;
};

Plan read_plan(const std::string& path) {
  std::ifstream file(path);
  if (!file) give_up("cannot read '" + path + "'");
  const Json json = Json::parse(file);
  const Json& contract = json.at("mscclc").at("contract");
  Plan plan{.path = path,
            .kind = contract.at("kind"),
            .in_place = contract.at("in_place"),
            .ranks = contract.at("ranks"),
            .root_shift = contract.value("shift", 0),
            .counts = contract.value("counts", std::vector<int64_t>()),
            .least = json.at("min_message_size"),
            .most = json.at("max_message_size"),
            .packets = json.at("protocol") == "LL"};
  for (const Json& gpu : json.at("gpus")) {
    plan.inputs.push_back(gpu.at("input_chunks"));
    plan.outputs.push_back(gpu.at("output_chunks"));
  }
  return plan;
}

/// A chunk of a rank's input.
struct Source {
  int rank;
  size_t chunk;
};

/// The inputs that output chunk `chunk` of `rank` is the sum of.
std::vector<Source> sources(const Plan& plan, int rank, size_t chunk) {
  const auto from_all = [&](size_t c) {
    std::vector<Source> all;
    for (int r = 0; r < plan.ranks; ++r) all.push_back({r, c});
    return all;
  };
  const auto world = static_cast<size_t>(plan.ranks), me = static_cast<size_t>(rank);
  if (plan.kind == "allreduce") return from_all(chunk);
  if (plan.kind == "reducescatter") return from_all(me * plan.outputs[me] + chunk);
  if (plan.kind == "allgather") {
    return {{static_cast<int>(chunk / plan.inputs[0]), chunk % plan.inputs[0]}};
  }
  if (plan.kind == "alltoall") {
    const size_t part = plan.inputs[0] / world;
    return {{static_cast<int>(chunk / part), me * part + chunk % part}};
  }
  if (plan.kind == "sendrecv") {
    const int n = plan.ranks;
    return {{((rank - plan.root_shift) % n + n) % n, chunk}};
  }
  if (plan.kind == "alltoallv") {
    // Counts are of units, which all have as many chunks.
    int64_t units = 0;
    for (size_t d = 0; d < world; ++d) units += plan.counts[d];
    const size_t per_unit = plan.inputs[0] / static_cast<size_t>(units);
    for (size_t s = 0; s < world; ++s) {
      const size_t row = static_cast<size_t>(plan.counts[s * world + me]) * per_unit;
      if (chunk < row) {
        size_t before = 0;
        for (size_t d = 0; d < me; ++d) before += static_cast<size_t>(plan.counts[s * world + d]);
        return {{static_cast<int>(s), before * per_unit + chunk}};
      }
      chunk -= row;
    }
  }
  give_up("no rule for the collective '" + plan.kind + "'");
}

/// A way to run the plan.
struct Form {
  size_t chunk;  ///< bytes
  bool in_place, inside;
  mscclpp::PacketType packets;
  std::string text() const {
    return std::to_string(chunk) + "-byte chunks, " + (in_place ? "in place" : "out of place") +
           (inside ? ", inside an allocation" : ", allocations of their own") +
           (packets == mscclpp::PacketType::LL8 ? ", LL8" : ", LL16");
  }
};

struct Options {
  std::string dtype = "f32";
  std::vector<size_t> chunks;
  int calls = 4;
  int patience = 20;
  bool poll = false;  ///< waits by polling
};

/// Chunks of the buffers that the executor compares with the plan's bounds, by rank.
const std::vector<size_t>& judged(const Plan& plan) {
  return plan.kind == "allgather" ? plan.outputs : plan.inputs;
}

bool fits(const Plan& plan, size_t chunk) {
  return std::ranges::all_of(judged(plan), [&](size_t chunks) {
    return chunks * chunk >= plan.least && chunks * chunk <= plan.most;
  });
}

/// The smallest chunks that the plan takes, and two larger ones.
std::vector<size_t> usual_chunks(const Plan& plan) {
  const size_t fewest = *std::ranges::min_element(judged(plan));
  const size_t least = std::max<size_t>(1, (plan.least + fewest * 16 - 1) / (fewest * 16)) * 16;
  return {least, least + 4096, 2 * least + 65536};
}

std::vector<Form> forms_of(const Plan& plan, const Options& options) {
  std::vector<Form> forms;
  for (const size_t chunk : options.chunks.empty() ? usual_chunks(plan) : options.chunks) {
    if (!fits(plan, chunk)) continue;
    for (const bool in_place : {false, true}) {
      if (plan.in_place == (in_place ? "no" : "yes")) continue;
      if (in_place && (plan.kind == "alltoallv" || plan.kind == "sendrecv")) continue;
      for (const bool inside : {false, true}) {
        forms.push_back({chunk, in_place, inside, mscclpp::PacketType::LL16});
        if (plan.packets) forms.push_back({chunk, in_place, inside, mscclpp::PacketType::LL8});
      }
    }
  }
  return forms;
}

/// What ranks and their parent share.
struct Shared {
  mscclpp::UniqueId id;
  std::atomic<int> id_there;
  std::atomic<int> form[64];  ///< by rank: the form that it is at
  std::atomic<int> wrong;     ///< forms with wrong elements, over all ranks
};

/// A small whole number: sums of them are exact in every type.
int value(int rank, size_t element, int call) {
  uint64_t x = (uint64_t(rank) * 1000003 + element) * 31 + uint64_t(call) + 1;
  x ^= x >> 13;
  x *= 0x9e3779b97f4a7c15;
  return static_cast<int>(x >> 59);
}

template <typename T>
T make(int v) {
  return static_cast<T>(v);
}
template <>
__half make<__half>(int v) {
  return __float2half(static_cast<float>(v));
}

/// A rank's input and output, and the allocations around them.
struct Buffers {
  char *input = nullptr, *output = nullptr;
};

Buffers allocate(const Plan& plan, const Form& form, int rank) {
  const auto me = static_cast<size_t>(rank);
  const size_t in = plan.inputs[me] * form.chunk, out = plan.outputs[me] * form.chunk;
  constexpr size_t kBefore = 4096, kAround = 3 * kBefore + 1000;  // no multiple of 16 per chunk
  const size_t shift = form.inside ? kBefore : 0, more = form.inside ? kAround : 0;
  const auto get = [&](size_t bytes) {
    char* at = nullptr;
    must(cudaMalloc(&at, bytes + more), "cudaMalloc");
    must(cudaMemset(at, 0xee, bytes + more), "cudaMemset");
    return at + shift;
  };
  if (!form.in_place) return {get(in), get(out)};
  char* both = get(std::max(in, out));
  if (plan.kind == "allgather") return {both + me * in, both};
  if (plan.kind == "reducescatter") return {both, both + me * out};
  return {both, both};
}

template <typename T>
class Checker {
 public:
  Checker(const Plan& plan, const Form& form, int rank)
      : plan_(plan), elements_(form.chunk / sizeof(T)), rank_(rank) {}

  void fill(char* input, int call) const {
    std::vector<T> data(plan_.inputs[static_cast<size_t>(rank_)] * elements_);
    for (size_t i = 0; i < data.size(); ++i) data[i] = make<T>(value(rank_, i, call));
    must(cudaMemcpy(input, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice), "fill");
  }

  /// Text of the first wrong element, or nothing.
  std::optional<std::string> check(const char* output, int call) const {
    std::vector<T> data(plan_.outputs[static_cast<size_t>(rank_)] * elements_);
    must(cudaMemcpy(data.data(), output, data.size() * sizeof(T), cudaMemcpyDeviceToHost), "check");
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < data.size(); ++i) {
      const T expected = wanted(i, call);
      if (std::memcmp(&data[i], &expected, sizeof(T)) == 0) continue;
      if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return std::nullopt;
    return std::to_string(wrong) + " of " + std::to_string(data.size()) +
           " elements wrong, the first is element " + std::to_string(first) + " in call " +
           std::to_string(call);
  }

 private:
  T wanted(size_t element, int call) const {
    int sum = 0;
    for (const Source& s : sources(plan_, rank_, element / elements_)) {
      sum += value(s.rank, s.chunk * elements_ + element % elements_, call);
    }
    return make<T>(sum);
  }

  const Plan& plan_;
  size_t elements_;
  int rank_;
};

/// Where each thread of this process stands, on standard error.
void show_stack(int) {
  void* frames[40];
  const int depth = backtrace(frames, 40);
  char line[64];
  const int length =
      std::snprintf(line, sizeof line, "-- thread %ld\n", static_cast<long>(syscall(SYS_gettid)));
  if (write(2, line, static_cast<size_t>(length)) < 0) return;
  backtrace_symbols_fd(frames, depth, 2);
}

void show_threads() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const long tid = std::stol(entry.path().filename());
    syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// Ends the process if a form takes too long.
class Watchdog {
 public:
  Watchdog(int seconds, int rank, const Form& form)
      : thread_([this, seconds, rank, text = form.text()] { watch(seconds, rank, text); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void watch(int seconds, int rank, const std::string& text) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::seconds(seconds), [this] { return done_; })) return;
    std::fprintf(stderr, "rank %d hangs: %s\n", rank, text.c_str());
    show_threads();
    std::_Exit(3);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

class RankRun {
 public:
  RankRun(const Plan& plan, const Options& options, Shared& shared, int rank)
      : plan_(plan), options_(options), shared_(shared), rank_(rank) {}

  void run(size_t first_form) {
    must(cudaSetDevice(rank_), "cudaSetDevice");
    auto bootstrap = std::make_shared<mscclpp::TcpBootstrap>(rank_, plan_.ranks);
    if (rank_ == 0) {
      shared_.id = bootstrap->createUniqueId();
      shared_.id_there = 1;
    }
    while (shared_.id_there == 0) std::this_thread::yield();
    bootstrap->initialize(shared_.id);
    auto communicator = std::make_shared<mscclpp::Communicator>(bootstrap);
    mscclpp::Executor executor(communicator);
    mscclpp::ExecutionPlan plan(plan_.path, rank_);
    const std::vector<Form> forms = forms_of(plan_, options_);
    for (size_t f = first_form; f < forms.size(); ++f) {
      shared_.form[rank_] = static_cast<int>(f);
      const Watchdog watchdog(options_.patience, rank_, forms[f]);
      bootstrap->barrier();
      if (options_.dtype == "f16") run_form<__half>(executor, plan, *bootstrap, forms[f]);
      if (options_.dtype == "f32") run_form<float>(executor, plan, *bootstrap, forms[f]);
      if (options_.dtype == "i32") run_form<int32_t>(executor, plan, *bootstrap, forms[f]);
    }
    shared_.form[rank_] = static_cast<int>(forms.size());
    bootstrap->barrier();
  }

 private:
  mscclpp::DataType type() const {
    if (options_.dtype == "f16") return mscclpp::DataType::FLOAT16;
    return options_.dtype == "f32" ? mscclpp::DataType::FLOAT32 : mscclpp::DataType::INT32;
  }

  template <typename T>
  void run_form(mscclpp::Executor& executor, const mscclpp::ExecutionPlan& plan,
                mscclpp::Bootstrap& bootstrap, const Form& form) {
    const auto me = static_cast<size_t>(rank_);
    const Buffers buffers = allocate(plan_, form, rank_);  // kept: contexts go by address
    const Checker<T> checker(plan_, form, rank_);
    cudaStream_t stream;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    std::optional<std::string> wrong;
    for (int call = 0; call < options_.calls && !wrong; ++call) {
      checker.fill(buffers.input, call);
      must(cudaDeviceSynchronize(), "fill");
      bootstrap.barrier();
      executor.execute(rank_, buffers.input, buffers.output, plan_.inputs[me] * form.chunk,
                       plan_.outputs[me] * form.chunk, type(), plan, stream, form.packets);
      wait(stream);
      wrong = checker.check(buffers.output, call);
      bootstrap.barrier();
    }
    must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    if (!wrong) return;
    ++shared_.wrong;
    std::printf("WRONG  %s: rank %d: %s\n", form.text().c_str(), rank_, wrong->c_str());
    std::fflush(stdout);
  }

  /// As callers do, or by polling, which leaves the driver to the executor's proxy.
  void wait(cudaStream_t stream) const {
    if (!options_.poll) return must(cudaStreamSynchronize(stream), "the executor's kernel");
    cudaError_t now = cudaSuccess;
    while ((now = cudaStreamQuery(stream)) == cudaErrorNotReady) std::this_thread::yield();
    must(now, "the executor's kernel");
  }

  const Plan& plan_;
  const Options& options_;
  Shared& shared_;
  const int rank_;
};

/// One process a rank, from form `first` on. How the first rank that failed has ended, or 0.
int run_ranks(const Plan& plan, const Options& options, Shared& shared, size_t first) {
  shared.id_there = 0;
  std::vector<pid_t> ranks;
  for (int r = 0; r < plan.ranks; ++r) {
    shared.form[r] = static_cast<int>(first);
    const pid_t child = fork();
    if (child < 0) give_up("fork failed");
    if (child == 0) {
      std::signal(SIGUSR1, show_stack);
      int code = 0;
      try {
        RankRun(plan, options, shared, r).run(first);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "rank %d: %s\n", r, e.what());
        code = 4;
      }
      std::fflush(stdout);
      std::_Exit(code);
    }
    ranks.push_back(child);
  }
  int worst = 0;
  for (int left = plan.ranks; left > 0; --left) {
    int status = 0;
    if (wait(&status) < 0) break;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0 || worst != 0) continue;
    worst = code;
    std::this_thread::sleep_for(std::chrono::seconds(3));  // the others say what they wait for
    for (const pid_t rank : ranks) kill(rank, SIGKILL);
  }
  return worst;
}

std::optional<Options> read_options(int argc, char** argv) {
  Options options;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc) return std::nullopt;
    const std::string text = argv[++i];
    if (name == "--dtype" && (text == "f16" || text == "f32" || text == "i32")) {
      options.dtype = text;
      continue;
    }
    if (name == "--wait" && (text == "stream" || text == "poll")) {
      options.poll = text == "poll";
      continue;
    }
    char* end = nullptr;
    const long number = std::strtol(text.c_str(), &end, 10);
    if (*end != '\0' || number <= 0) return std::nullopt;
    if (name == "--chunk" && number % 16 == 0) {
      options.chunks.push_back(static_cast<size_t>(number));
    } else if (name == "--calls") {
      options.calls = static_cast<int>(number);
    } else if (name == "--patience") {
      options.patience = static_cast<int>(number);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = argc < 2 ? std::nullopt : read_options(argc, argv);
  if (!options) {
    give_up(
        "usage: mscclpp_check PLAN [--dtype f16|f32|i32] [--chunk BYTES, a multiple of 16]... "
        "[--calls N] [--patience SECONDS] [--wait stream|poll]");
  }
  const Plan plan = read_plan(argv[1]);
  if (plan.ranks > 64) give_up("at most 64 ranks");
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap failed");
  Shared& shared = *new (memory) Shared();
  const std::vector<Form> forms = forms_of(plan, *options);
  if (forms.empty()) give_up("no size that the plan takes");
  int stuck = 0;
  for (size_t first = 0; first < forms.size();) {
    const int code = run_ranks(plan, *options, shared, first);
    if (code == 0) break;
    ++stuck;
    const auto at = static_cast<size_t>(std::max<int>(shared.form[0], shared.form[1]));
    if (at >= forms.size()) break;
    std::printf("%s  %s\n", code == 3 ? "HANG " : "ERROR", forms[at].text().c_str());
    std::fflush(stdout);
    first = at + 1;
  }
  const int bad = stuck + shared.wrong;
  std::printf("%s: %zu forms, %d wrong, %d stuck or failed\n", bad == 0 ? "right" : "FAILED",
              forms.size(), shared.wrong.load(), stuck);
  return bad == 0 ? 0 : 1;
}
