// From a block's push into the proxy's queue to the count at the other rank, over sockets: how long
// each stage takes. Two ranks are threads of this process, joined over loopback, so that all stages
// are timed by one clock. docs/records/performance_nodes.md cites the figures.
//
//   bazel run -c opt //tests/bench:port_latency
//   bazel run -c opt //tests/bench:port_latency -- 4096 2000      bytes of the put; rounds
//   bazel run --config=cuda //tests/bench:port_latency -- --gpus [4096 2000]
//
// With --gpus the ranks are GPUs 0 and 1, or both GPU 0 where there is one, as if of two machines:
// from and to host memory, from a GPU to host memory, and from a GPU to a GPU. The count always
// lies in host memory, where this program sees it.
//
// Each round is a put and a signal, posted when the one before has arrived, or after a pause in
// which the proxy has gone to sleep.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/port_slots.h"
#include "executor/shared_atomics.h"
#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"
#include "runtime/core/proxy/proxy.h"
#include "runtime/network/sockets/socket_end.h"
#include "runtime/network/sockets/socket_lane.h"
#include "runtime/support/memory/handle.h"

namespace {

using namespace mscclc;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kRoom = 1 << 20;

/// Memory of the other rank, by the addresses at which blocks name it.
class Window final : public NamedMemory {
 public:
  Window(ExposedId id, uint8_t* data, uint64_t bytes) : NamedMemory(id) {
    data_ = data;
    bytes_ = bytes;
  }
};

int64_t now() { return Clock::now().time_since_epoch().count(); }

/// When the orders of a round have come to the lane, and when it has returned from the last; 0: not
/// yet.
struct Stamps {
  std::atomic<int64_t> first{0}, last{0};
};

class StampedLane final : public Lane {
 public:
  StampedLane(std::unique_ptr<Lane> lane, Stamps& stamps)
      : lane_(std::move(lane)), stamps_(stamps) {}
  bool put(const RemotePlace& to, const void* from, uint64_t bytes,
           Diagnostics& diagnostics) override {
    stamps_.first = now();
    return lane_->put(to, from, bytes, diagnostics);
  }
  bool signal(const RemotePlace& count, uint64_t value, Diagnostics& diagnostics) override {
    signals_ = true;
    return lane_->signal(count, value, diagnostics);
  }
  bool complete(uint64_t* count, uint64_t value, Diagnostics& diagnostics) override {
    return lane_->complete(count, value, diagnostics);
  }
  void cork() override { lane_->cork(); }
  bool uncork(Diagnostics& diagnostics) override {
    const bool fine = lane_->uncork(diagnostics);
    if (std::exchange(signals_, false)) stamps_.last = now();
    return fine;
  }
  uint64_t room() override { return lane_->room(); }
  FlushState try_flush(Diagnostics& diagnostics) override { return lane_->try_flush(diagnostics); }

 private:
  const std::unique_ptr<Lane> lane_;
  Stamps& stamps_;
  bool signals_ = false;  ///< a signal of the round has been ordered
};

/// The rank that sends, and the memory of the one that receives.
class Pair {
 public:
  /// False: reported.
  bool open(Diagnostics& diagnostics) {
    const net::SocketOptions options{.interface = "=lo"};
    far_ = net::SocketNet::start(options, diagnostics);
    near_ = net::SocketNet::start(options, diagnostics);
    device_ = make_host_device(diagnostics);
    if (far_ == nullptr || near_ == nullptr || device_ == nullptr) return false;
    const ExposedId id = exposed_->add(memory_, data(), kRoom);
    end_ = net::await_socket_lane(1, far_, exposed_, {});
    known_ = regions_->add(0, std::make_unique<Window>(id, data(), kRoom));
    auto lane = net::open_socket_lane({.rank = 0, .offer = end_->offer()}, near_,
                                      std::chrono::seconds(20), diagnostics);
    if (lane == nullptr) return false;
    count_ = memory_->data();
    to_ = known_->data() + kLine;
    from_ = source_.data();
    return start_proxy(count_, std::move(lane), diagnostics);
  }

  /// GPUs 0 and 1, or GPU 0 twice, as of two nodes. False: reported.
  bool open_gpus(bool from_gpu, bool to_gpu, Diagnostics& diagnostics) {
    const int gpus = cuda::count_gpus(diagnostics);
    if (gpus == 0) return false;
    device_ = cuda::open_gpu(0, diagnostics, 0);
    far_device_ = cuda::open_gpu(gpus > 1 ? 1 : 0, diagnostics, 1);
    if (device_ == nullptr || far_device_ == nullptr) return false;
    const auto near_name = device_->link_name(diagnostics);
    const auto far_name = far_device_->link_name(diagnostics);
    if (!near_name || !far_name) return false;
    const auto there = device_->link_to(*far_name, diagnostics);
    const auto back = far_device_->link_to(*near_name, diagnostics);
    counts_ = far_device_->allocate_visible(kLine, "counts", diagnostics);
    data_ = allocate(*far_device_, to_gpu, diagnostics);
    sent_ = allocate(*device_, from_gpu, diagnostics);
    if (!there || !back || counts_ == nullptr || data_ == nullptr || sent_ == nullptr) return false;
    known_ = reach(*counts_, diagnostics);
    known_data_ = reach(*data_, diagnostics);
    if (known_ == nullptr || known_data_ == nullptr) return false;
    end_ = far_device_->await_lane({.rank = 0, .link = *back, .failed = fail}, diagnostics);
    if (end_ == nullptr) return false;
    auto lane = device_->open_lane(
        {.rank = 0, .offer = end_->offer(), .link = *there, .failed = fail}, diagnostics);
    count_ = reinterpret_cast<uint64_t*>(counts_->data());
    to_ = known_data_->data();
    from_ = sent_->data();
    return lane != nullptr &&
           start_proxy(reinterpret_cast<uint64_t*>(known_->data()), std::move(lane), diagnostics);
  }

  /// What a block does: two requests.
  void push(uint64_t bytes) {
    post({device::PortWhat::put, 0, reinterpret_cast<uint64_t>(to_),
          reinterpret_cast<uint64_t>(from_), bytes});
    post({device::PortWhat::signal, 0});
  }
  /// What a block of the other rank does.
  void await(uint64_t rounds) const {
    while (load_acquire<uint64_t>(count_) < rounds) {
    }
  }

  Stamps stamps;

 private:
  static constexpr uint64_t kLine = 64;  ///< of counts

  static void fail(const std::string& why) {
    fmt::print(stderr, "{}\n", why);
    std::abort();
  }
  static std::unique_ptr<Memory> allocate(Device& device, bool on_gpu, Diagnostics& diagnostics) {
    return on_gpu ? device.allocate(kRoom, "data", diagnostics)
                  : device.allocate_visible(kRoom, "data", diagnostics);
  }
  std::unique_ptr<Memory> reach(const Memory& memory, Diagnostics& diagnostics) {
    auto handle = far_device_->export_memory(memory.data(), memory.bytes(), diagnostics);
    if (!handle) return nullptr;
    kept_.push_back(handle->keep);
    return regions_->add(0, device_->reach_memory(*handle, diagnostics));
  }
  /// `arrived`: the count, as blocks name it.
  bool start_proxy(const uint64_t* arrived, std::unique_ptr<Lane> lane, Diagnostics& diagnostics) {
    Proxy::Ports ports{{{.used = true, .peer = 0, .arrived = arrived}}, {}, regions_};
    ports.lanes.push_back(std::make_unique<StampedLane>(std::move(lane), stamps));
    proxy_ =
        Proxy::start(device_, std::move(ports), {&claimed_, &seen_, &flushed_}, fail, diagnostics);
    return proxy_ != nullptr;
  }
  void post(const device::PortRequest& request) {
    const device::PortQueue& queue = proxy_->queue();
    const uint64_t number = claimed_++;
    while (load_acquire<uint64_t>(queue.handled) + queue.capacity() <= number) {
    }
    write_request(queue, number, request);
  }
  uint8_t* data() const { return reinterpret_cast<uint8_t*>(memory_->data()); }

  std::shared_ptr<std::vector<uint64_t>> memory_ =
      std::make_shared<std::vector<uint64_t>>(kRoom / sizeof(uint64_t));
  std::vector<uint8_t> source_ = std::vector<uint8_t>(kRoom, 1);
  uint64_t claimed_ = 0, seen_ = 0, flushed_ = 0;
  std::shared_ptr<ExposedMemory> exposed_ = std::make_shared<ExposedMemory>();
  std::shared_ptr<RemoteRegions> regions_ = std::make_shared<RemoteRegions>();
  std::shared_ptr<net::SocketNet> far_, near_;
  std::shared_ptr<Device> device_, far_device_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::unique_ptr<Memory> counts_, data_, sent_;
  std::unique_ptr<LaneEnd> end_;
  std::unique_ptr<Memory> known_, known_data_;
  uint64_t* count_ = nullptr;
  uint8_t* to_ = nullptr;  ///< as blocks name it
  const uint8_t* from_ = nullptr;
  std::unique_ptr<Proxy> proxy_;  ///< ends first
};

/// Times of one stage, in microseconds.
struct Times {
  void add(int64_t ticks) {
    all.push_back(std::chrono::duration<double, std::micro>(Clock::duration(ticks)).count());
  }
  double at(double part) {
    std::ranges::sort(all);
    return all[static_cast<size_t>(part * static_cast<double>(all.size() - 1))];
  }
  std::vector<double> all;
};

void print(const char* stage, Times& times) {
  fmt::print("  {:44} {:8.1f} {:8.1f} {:8.1f}\n", stage, times.at(0), times.at(0.5), times.at(0.9));
}

void measure(Pair& pair, uint64_t& done, uint64_t bytes, int rounds,
             std::chrono::milliseconds pause) {
  Times to_proxy, to_count, in_lane, all;
  for (int i = 0; i < rounds; ++i) {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    pair.stamps.last = 0;
    const int64_t pushed = now();
    pair.push(bytes);
    pair.await(++done);
    const int64_t seen = now();
    while (pair.stamps.last == 0) std::this_thread::yield();  // the count may be there before
    const int64_t taken = pair.stamps.first;
    to_proxy.add(taken - pushed);
    to_count.add(seen - taken);
    in_lane.add(pair.stamps.last - taken);
    all.add(seen - pushed);
  }
  fmt::print("put of {} bytes and a signal{}\n", bytes,
             pause.count() == 0 ? "" : fmt::format(", {} ms after the one before", pause.count()));
  print("until the proxy gives the put to the lane", to_proxy);
  print("from there, until the count is seen", to_count);
  print("  of this the proxy in the lane: send()", in_lane);
  print("all", all);
}

/// A byte there and back between two threads that wait in poll(), as the far thread does: half of
/// it is what TCP and waking a thread cost by themselves.
std::optional<Times> ping_pong(int rounds) {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || ::bind(listener, raw, length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, raw, &length) != 0) {
    return std::nullopt;
  }
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(near, raw, length) != 0) return std::nullopt;
  const int far = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  const int on = 1;
  for (const int socket : {near, far}) {
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const auto pass = [](int socket, bool first, int count, Times* times) {
    char byte = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t begin = now();
      if (first && ::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return;
      pollfd polled{socket, POLLIN, 0};
      if (::poll(&polled, 1, -1) != 1 || ::recv(socket, &byte, 1, 0) != 1) return;
      if (!first && ::send(socket, &byte, 1, MSG_NOSIGNAL) != 1) return;
      if (times != nullptr) times->add((now() - begin) / 2);
    }
  };
  Times times;
  std::thread answers([&] { pass(far, false, rounds, nullptr); });
  pass(near, true, rounds, &times);
  answers.join();
  for (const int socket : {listener, near, far}) ::close(socket);
  return times;
}

int report(const Diagnostics& diagnostics) {
  fmt::print(stderr, "{}", render_text(diagnostics, Sources()));
  return 1;
}

int measure_gpus(uint64_t bytes, int rounds) {
  for (const auto& [from_gpu, to_gpu] :
       {std::pair{false, false}, std::pair{true, false}, std::pair{true, true}}) {
    Diagnostics diagnostics;
    Pair pair;
    if (!pair.open_gpus(from_gpu, to_gpu, diagnostics)) return report(diagnostics);
    fmt::print("from {} to {}\n", from_gpu ? "a GPU" : "host memory",
               to_gpu ? "a GPU" : "host memory");
    uint64_t done = 0;
    measure(pair, done, bytes, rounds, std::chrono::milliseconds(0));
  }
  return 0;
}

int measure_host(uint64_t bytes, int rounds) {
  using std::chrono::milliseconds;
  Diagnostics diagnostics;
  Pair pair;
  if (!pair.open(diagnostics)) return report(diagnostics);
  uint64_t done = 0;
  measure(pair, done, bytes, rounds, milliseconds(0));
  measure(pair, done, bytes, std::min(rounds, 100), milliseconds(50));
  if (auto times = ping_pong(rounds)) {
    fmt::print("two threads over TCP, one way\n");
    print("a byte, both waiting in poll()", *times);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool gpus = argc > 1 && std::string_view(argv[1]) == "--gpus";
  const int first = gpus ? 2 : 1;
  const uint64_t bytes = argc > first ? std::strtoull(argv[first], nullptr, 10) : 1024;
  const int rounds = argc > first + 1 ? std::atoi(argv[first + 1]) : 5000;
  if (bytes == 0 || bytes > kRoom - 64 || rounds < 1) {
    fmt::print(stderr, "port_latency: 1 to {} bytes, and at least one round\n", kRoom - 64);
    return 2;
  }
  fmt::print("  {:44} {:>8} {:>8} {:>8}\n", "microseconds", "least", "median", "90 %");
  return gpus ? measure_gpus(bytes, rounds) : measure_host(bytes, rounds);
}
