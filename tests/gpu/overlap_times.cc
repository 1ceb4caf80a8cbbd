// What GEMMs that overlap take, with each backend, chunks and budgets, in one run: beside their
// GEMM alone and their collective alone, with results that are checked. By hand, on GPUs:
//
//   overlap_times --ranks 2 --type bf16 allgather_gemm:4096,8192,2560 gemm_reducescatter:…
//
// A shape is kind:m,k,n, as mscclc_overlap_config_t has them. Ranks are threads. --host tries the
// program without GPUs. It fails where a result is wrong (--within: 0.05 of it), or has other bits
// than the serial one.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/gpu.h"
#include "runtime/doors/c/mscclc.h"
#include "tests/gpu/stage/graphs.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Shape {
  std::string name;
  mscclc_overlap_kind_t kind;
  uint64_t m, k, n;
};

struct Settings {
  uint32_t ranks = 2;
  bool host = false;
  int runs = 50;
  double within = 0.05;  ///< of 1 and the value: what a right result is off by
  mscclc_dtype_t in = MSCCLC_BF16, out = MSCCLC_BF16;
  std::vector<Shape> shapes;
};

/// One way to make a shape.
struct Contender {
  std::string backend;
  uint32_t chunks, budget;
  std::string text() const {
    std::string all = backend;
    if (chunks != 0) all += ", " + std::to_string(chunks) + " chunks";
    if (budget != 0) all += ", budget " + std::to_string(budget);
    return all;
  }
};

/// Of any rank: all of them may come here at once, which exit() is not made for, while streams and
/// the library's threads are at work.
[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), mscclc_last_error());
  std::fflush(stdout);
  std::_Exit(1);
}
void ok(mscclc_result_t result, const char* what) {
  if (result != MSCCLC_SUCCESS) give_up(what);
}

bool sums(const Shape& shape) {
  return shape.kind == MSCCLC_GEMM_REDUCESCATTER || shape.kind == MSCCLC_GEMM_ALLREDUCE;
}
uint64_t bytes_of(mscclc_dtype_t type) {
  return type == MSCCLC_F32 ? 4 : type == MSCCLC_E4M3 ? 1 : 2;
}

/// Small numbers that all types have: -1, -0.5, 0, 0.5, 1.
float value_at(uint64_t seed, uint64_t i) {
  uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15 + i * 0xbf58476d1ce4e5b9;
  x ^= x >> 31;
  x *= 0x94d049bb133111eb;
  return static_cast<float>(static_cast<int>((x >> 40) % 5) - 2) / 2;
}

void put_value(mscclc_dtype_t type, float value, uint8_t* at) {
  const int twice = static_cast<int>(value * 2);
  const int size = std::abs(twice);
  const uint16_t sign = twice < 0 ? 0x8000 : 0;
  if (type == MSCCLC_F32) {
    std::memcpy(at, &value, sizeof value);
  } else if (type == MSCCLC_E4M3) {
    *at = static_cast<uint8_t>((sign >> 8) | (size == 0 ? 0 : size == 1 ? 0x30 : 0x38));
  } else {
    const uint16_t half =
        type == MSCCLC_F16 ? (size == 1 ? 0x3800 : 0x3c00) : (size == 1 ? 0x3f00 : 0x3f80);
    const uint16_t bits = static_cast<uint16_t>(sign | (size == 0 ? 0 : half));
    std::memcpy(at, &bits, sizeof bits);
  }
}

float out_value(mscclc_dtype_t type, const uint8_t* at) {
  uint32_t bits = 0;
  if (type == MSCCLC_F32) {
    std::memcpy(&bits, at, 4);
  } else {
    uint16_t high = 0;
    std::memcpy(&high, at, 2);
    bits = uint32_t{high} << 16;
  }
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// What ranks share: a meeting, and the longest of their times.
class Meeting {
 public:
  explicit Meeting(uint32_t ranks) : barrier_(static_cast<std::ptrdiff_t>(ranks)), times_(ranks) {}
  void meet() { barrier_.arrive_and_wait(); }
  double longest(uint32_t rank, double own) {
    times_[rank] = own;
    meet();
    const double most = *std::ranges::max_element(times_);
    meet();
    return most;
  }

 private:
  std::barrier<> barrier_;
  std::vector<double> times_;
};

/// A rank, with its matrices of one shape.
class RankTimes {
 public:
  RankTimes(const Settings& settings, uint32_t rank, mscclc_comm_t* comm, Meeting& meeting)
      : s_(settings), rank_(rank), comm_(comm), meeting_(meeting) {
    ok(mscclc_stream_create(comm_, &stream_), "a stream");
    mscclc::Diagnostics none;  // then there are only times without graphs
    if (!s_.host) graphs_ = mscclc::testing::cuda_graphs(true, none);
  }
  ~RankTimes() { (void)mscclc_stream_destroy(comm_, stream_); }

  /// Have all results been right so far, with the bits of the serial ones?
  bool right() const { return right_; }

  void run(const Shape& shape) {
    place(shape);
    const Time gemm = time_gemm(shape), moved = time_collective(shape);
    const double ideal = std::max(gemm.best(), moved.best());
    if (rank_ == 0) {
      std::printf("\n%s, %u ranks, %s\n", shape.name.c_str(), s_.ranks,
                  s_.in == MSCCLC_E4M3  ? "e4m3 to bf16"
                  : s_.in == MSCCLC_F32 ? "f32"
                                        : "bf16");
      std::printf("%-34s %10s %10s %8s  %s\n", "", "eager us", "graph us", "of ideal", "result");
      line("GEMM alone", gemm, ideal, "");
      line("collective alone", moved, ideal, "");
    }
    for (const Contender& one : contenders()) compete(shape, one, ideal);
    memory_.clear();
  }

 private:
  struct Time {
    double eager = 0, graph = 0;  ///< us; 0: none
    double best() const { return graph > 0 ? std::min(eager, graph) : eager; }
  };
  using Owned = std::unique_ptr<mscclc_memory_t, mscclc_result_t (*)(mscclc_memory_t*)>;

  static std::vector<Contender> contenders() {
    std::vector<Contender> all = {{"serial", 0, 0}, {"nccl", 0, 0}};
    for (const uint32_t chunks : {1u, 2u, 4u, 8u}) {
      for (const uint32_t budget : {8u, 16u, 32u}) all.push_back({"mscclc", chunks, budget});
      all.push_back({"copy_engine", chunks, 1});
    }
    return all;
  }

  uint8_t* take(uint64_t bytes) {
    mscclc_memory_t* made = nullptr;
    ok(mscclc_memory_create(comm_, bytes, &made), "memory");
    memory_.emplace_back(made, mscclc_memory_release);
    return static_cast<uint8_t*>(mscclc_memory_address(made));
  }
  uint8_t* matrix(uint64_t rows, uint64_t columns, uint64_t seed) {
    const uint64_t size = bytes_of(s_.in);
    std::vector<uint8_t> all(rows * columns * size);
    for (uint64_t i = 0; i < rows * columns; ++i) {
      put_value(s_.in, value_at(seed, i), all.data() + i * size);
    }
    uint8_t* const at = take(all.size());
    ok(mscclc_write(comm_, at, all.data(), all.size()), "a matrix");
    return at;
  }
  uint64_t a_rows(const Shape& shape) const {
    return shape.kind == MSCCLC_ALLGATHER_GEMM ? shape.m / s_.ranks : shape.m;
  }
  uint64_t out_rows(const Shape& shape) const {
    return shape.kind == MSCCLC_GEMM_REDUCESCATTER ? shape.m / s_.ranks : shape.m;
  }

  void place(const Shape& shape) {
    // For one rank's GEMM, all rows.
    a_ = matrix(shape.m, shape.k, 2 * rank_);
    b_ = matrix(shape.n, shape.k, 2 * rank_ + 1);  // [n, k]
    out_ = take(shape.m * shape.n * bytes_of(s_.out));
    message_ = take(2 * shape.m * std::max(shape.k * bytes_of(s_.in), shape.n * bytes_of(s_.out)));
  }

  mscclc_overlap_config_t config_of(const Shape& shape, const Contender& how) const {
    mscclc_overlap_config_t config = MSCCLC_OVERLAP_CONFIG_INIT;
    config.kind = shape.kind;
    config.device = s_.host ? MSCCLC_HOST : static_cast<int32_t>(rank_);
    config.m = shape.m;
    config.k = shape.k;
    config.n = &shape.n;
    config.b_transposed = 1;
    config.a_dtype = config.b_dtype = s_.in;
    config.out_dtype = s_.out;
    config.order = MSCCLC_ORDER_REPLICATED;
    config.backend = how.backend.c_str();
    config.chunks = how.chunks;
    config.budget = how.budget;
    return config;
  }

  void run_once(mscclc_overlap_t* object, mscclc_stream_t stream) {
    const void* b = b_;
    void* out = out_;
    mscclc_overlap_call_t call = MSCCLC_OVERLAP_CALL_INIT;
    call.a = a_;
    call.b = &b;
    call.out = &out;
    ok(mscclc_overlap_run(object, &call, stream), "a run");
  }

  /// Of one of `runs` that follow one another: the fastest of three tries of the slowest rank.
  double time_of(const std::function<void()>& runs, int count) {
    double best = 0;
    for (int i = 0; i < 4; ++i) {  // the first warms up
      meeting_.meet();
      const auto begin = Clock::now();
      runs();
      ok(mscclc_stream_synchronize(comm_, stream_), "runs");
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      const double longest = meeting_.longest(rank_, took.count() / count);
      if (i > 0 && (best == 0 || longest < best)) best = longest;
    }
    return best;
  }
  Time time_runs(const std::function<void()>& one) {
    Time time;
    const int count = s_.host ? 2 : s_.runs;
    const auto all = [&] {
      for (int i = 0; i < count; ++i) one();
    };
    time.eager = time_of(all, count);
    if (graphs_ == nullptr) return time;
    mscclc::Diagnostics said;
    const auto work = [&](mscclc::Diagnostics&) {
      all();
      return true;
    };
    const auto graph = graphs_->capture(stream_, work, said);
    const auto launch = [&] {
      if (!graph->launch(stream_, said)) give_up("a graph");
    };
    if (graph == nullptr) give_up("a capture");
    time.graph = time_of(launch, count);
    return time;
  }

  Time time_gemm(const Shape& shape) {
    Shape alone = shape;
    alone.kind = MSCCLC_ALLTOALL_GEMM;
    const Contender serial{"serial", 0, 0};
    const mscclc_overlap_config_t config = config_of(alone, serial);
    mscclc_overlap_t* object = nullptr;
    ok(mscclc_overlap_create(nullptr, &config, &object), "a GEMM");
    const Time time = time_runs([&] { run_once(object, s_.host ? nullptr : stream_); });
    ok(mscclc_overlap_destroy(object), "a GEMM");
    return time;
  }

  Time time_collective(const Shape& shape) {
    constexpr mscclc_kind_t kKinds[] = {0, MSCCLC_ALLGATHER, MSCCLC_REDUCESCATTER, MSCCLC_ALLREDUCE,
                                        MSCCLC_ALLTOALL};
    const uint64_t all = shape.m * (sums(shape) ? shape.n : shape.k);
    mscclc_call_t call = MSCCLC_CALL_INIT;
    call.kind = kKinds[shape.kind];
    call.dtype = sums(shape) ? s_.out : s_.in;
    call.count = shape.kind == MSCCLC_GEMM_ALLREDUCE ? all : all / s_.ranks;
    call.input = message_;
    call.output = message_ + all * bytes_of(call.dtype);
    return time_runs([&] { ok(mscclc_collective(comm_, &call, stream_), "a collective"); });
  }

  void compete(const Shape& shape, const Contender& how, double ideal) {
    const mscclc_overlap_config_t config = config_of(shape, how);
    mscclc_overlap_t* object = nullptr;
    if (mscclc_overlap_create(comm_, &config, &object) != MSCCLC_SUCCESS) {
      if (rank_ == 0) std::printf("%-34s %s\n", how.text().c_str(), mscclc_last_error());
      meeting_.meet();
      return;
    }
    const Time time = time_runs([&] { run_once(object, stream_); });
    const std::string result = check(shape, object, how);
    ok(mscclc_overlap_destroy(object), "an object");
    if (rank_ == 0) line(how.text(), time, ideal, result);
    meeting_.meet();
  }

  std::vector<uint8_t> output_of(const Shape& shape, mscclc_overlap_t* object) {
    std::vector<uint8_t> out(out_rows(shape) * shape.n * bytes_of(s_.out), 0xff);
    ok(mscclc_write(comm_, out_, out.data(), out.size()), "out");
    meeting_.meet();
    run_once(object, stream_);
    ok(mscclc_stream_synchronize(comm_, stream_), "a run");
    ok(mscclc_read(comm_, out.data(), out_, out.size()), "out");
    return out;
  }

  /// Some elements against the definition, and all bits against the serial one's of the same GEMMs.
  std::string check(const Shape& shape, mscclc_overlap_t* object, const Contender& how) {
    const std::vector<uint8_t> out = output_of(shape, object);
    double worst = 0;
    for (uint64_t i = 0; i < 64; ++i) {
      const uint64_t row = i * 7919 % out_rows(shape), column = i * 104729 % shape.n;
      const double expected = element(shape, row, column);
      const double got =
          out_value(s_.out, out.data() + (row * shape.n + column) * bytes_of(s_.out));
      const double off = std::abs(got - expected) / (1 + std::abs(expected));
      worst = std::max(worst, std::isnan(off) ? INFINITY : off);
    }
    worst = meeting_.longest(rank_, worst);
    const bool right = worst < s_.within;
    right_ &= right;
    std::string said = right ? "right" : "WRONG by " + std::to_string(worst);
    if (how.backend == "serial" || how.backend == "nccl") return said;
    const Contender like{"serial", how.chunks, how.budget};
    const mscclc_overlap_config_t config = config_of(shape, like);
    mscclc_overlap_t* serial = nullptr;
    ok(mscclc_overlap_create(comm_, &config, &serial), "the serial one");
    const bool differs = meeting_.longest(rank_, output_of(shape, serial) != out ? 1 : 0) > 0;
    ok(mscclc_overlap_destroy(serial), "the serial one");
    right_ &= !differs;
    return said + (differs ? ", OTHER BITS than serial" : ", serial's bits");
  }

  /// Of out, by the definition.
  double element(const Shape& shape, uint64_t row, uint64_t column) const {
    const auto product = [&](uint64_t a_seed, uint64_t a_row, uint64_t b_seed) {
      double sum = 0;
      for (uint64_t x = 0; x < shape.k; ++x) {
        sum += static_cast<double>(value_at(a_seed, a_row * shape.k + x)) *
               static_cast<double>(value_at(b_seed, column * shape.k + x));
      }
      return sum;
    };
    const uint64_t part = shape.m / s_.ranks, own_b = 2 * rank_ + 1;
    switch (shape.kind) {
      case MSCCLC_ALLGATHER_GEMM:
        return product(2 * (row / part), row % part, own_b);
      case MSCCLC_ALLTOALL_GEMM:
        return product(2 * (row / part), rank_ * part + row % part, own_b);
      default: {
        const uint64_t first = shape.kind == MSCCLC_GEMM_REDUCESCATTER ? rank_ * part : 0;
        double sum = 0;
        for (uint64_t p = 0; p < s_.ranks; ++p) sum += product(2 * p, first + row, 2 * p + 1);
        return sum;
      }
    }
  }

  void line(const std::string& name, const Time& time, double ideal, const std::string& result) {
    std::printf("%-34s %10.1f %10.1f %7.0f%%  %s\n", name.c_str(), time.eager, time.graph,
                100 * ideal / time.best(), result.c_str());
    std::fflush(stdout);
  }

  const Settings& s_;
  const uint32_t rank_;
  mscclc_comm_t* const comm_;
  Meeting& meeting_;
  bool right_ = true;
  mscclc_stream_t stream_ = nullptr;
  std::unique_ptr<mscclc::testing::Graphs> graphs_;
  std::vector<Owned> memory_;
  uint8_t *a_ = nullptr, *b_ = nullptr, *out_ = nullptr, *message_ = nullptr;
};

Shape shape_of(const std::string& text) {
  const std::pair<const char*, mscclc_overlap_kind_t> kinds[] = {
      {"allgather_gemm", MSCCLC_ALLGATHER_GEMM},
      {"gemm_reducescatter", MSCCLC_GEMM_REDUCESCATTER},
      {"gemm_allreduce", MSCCLC_GEMM_ALLREDUCE},
      {"alltoall_gemm", MSCCLC_ALLTOALL_GEMM}};
  const size_t colon = text.find(':');
  for (const auto& [name, kind] : kinds) {
    unsigned long long m = 0, k = 0, n = 0;
    if (colon == text.npos || text.substr(0, colon) != name) continue;
    if (std::sscanf(text.c_str() + colon + 1, "%llu,%llu,%llu", &m, &k, &n) == 3 && m * k * n > 0) {
      return {text, kind, m, k, n};
    }
  }
  std::fprintf(stderr, "'%s' is no shape: kind:m,k,n, such as gemm_allreduce:4096,4096,8192\n",
               text.c_str());
  std::exit(2);
}

Settings settings_of(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--host") {
      s.host = true;
    } else if (word == "--ranks") {
      s.ranks = static_cast<uint32_t>(std::atoi(value.c_str())), ++i;
    } else if (word == "--runs") {
      s.runs = std::max(1, std::atoi(value.c_str())), ++i;
    } else if (word == "--within") {
      s.within = std::atof(value.c_str()), ++i;
    } else if (word == "--type") {
      s.in = value == "e4m3" ? MSCCLC_E4M3 : value == "f32" ? MSCCLC_F32 : MSCCLC_BF16, ++i;
      s.out = value == "f32" ? MSCCLC_F32 : MSCCLC_BF16;
    } else {
      s.shapes.push_back(shape_of(word));
    }
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = settings_of(argc, argv);
  if (settings.shapes.empty() || settings.ranks < 2) {
    std::fprintf(stderr, "give shapes, and at least 2 ranks\n");
    return 2;
  }
  mscclc_unique_id_t id;
  ok(mscclc_unique_id(&id), "an id");
  Meeting meeting(settings.ranks);
  std::vector<std::thread> ranks;
  std::atomic<bool> right = true;
  for (uint32_t r = 0; r < settings.ranks; ++r) {
    ranks.emplace_back([&, r] {
      mscclc::Diagnostics said;
      const auto gpu = settings.host ? nullptr : mscclc::cuda::open_gpu(static_cast<int>(r), said);
      if (gpu != nullptr && !gpu->bind_thread(said)) give_up("a GPU");
      mscclc_config_t config = MSCCLC_CONFIG_INIT;
      config.device = settings.host ? MSCCLC_HOST : static_cast<int32_t>(r);
      mscclc_comm_t* comm = nullptr;
      ok(mscclc_comm_create(&comm, settings.ranks, &id, r, &config), "a communicator");
      {
        RankTimes times(settings, r, comm, meeting);
        for (const Shape& shape : settings.shapes) times.run(shape);
        if (!times.right()) right = false;
      }
      ok(mscclc_comm_destroy(comm), "a communicator");
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return right ? 0 : 1;
}
