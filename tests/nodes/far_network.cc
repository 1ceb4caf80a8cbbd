#include "tests/nodes/far_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <random>

namespace mscclc::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxPacket = 2048;
constexpr size_t kDestination = 16;  // of an IPv4 header

/// 10.77.0.1 is node 0.
in_addr address_of(uint32_t node) { return {htonl((10u << 24) + (77u << 16) + node + 1)}; }

bool set_up(const Fd& socket, const char* name) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

bool set_address(const Fd& socket, const char* name, unsigned long what, in_addr value) {
  ifreq request{};
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = value;
  std::memcpy(&request.ifr_addr, &address, sizeof address);
  return ::ioctl(socket.get(), what, &request) == 0;
}

void write_file(const char* path, const std::string& text) { std::ofstream(path) << text; }

/// A network namespace needs the rights of root, if only of a namespace of users.
bool leave_network() {
  if (::unshare(CLONE_NEWNET) == 0) return true;
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
  write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
  return true;
}

}  // namespace

std::string FarNetwork::address(uint32_t node) {
  const in_addr address = address_of(node);
  char text[INET_ADDRSTRLEN] = {};
  return ::inet_ntop(AF_INET, &address, text, sizeof text);
}

bool FarNetwork::make_node(uint32_t node) {
  if (!leave_network()) return false;
  namespaces_.emplace_back(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  wires_.emplace_back(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ifreq request{};
  std::strncpy(request.ifr_name, kInterface, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return namespaces_.back().valid() && ::ioctl(wires_.back().get(), TUNSETIFF, &request) == 0 &&
         set_address(socket, kInterface, SIOCSIFADDR, address_of(node)) &&
         set_address(socket, kInterface, SIOCSIFNETMASK, {htonl(0xffffff00)}) &&
         set_up(socket, kInterface) && set_up(socket, "lo");
}

std::string FarNetwork::make(uint32_t nodes) {
  const Fd home(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  for (uint32_t node = 0; node < nodes; ++node) {
    if (make_node(node)) continue;
    const int error = errno;
    (void)!::setns(home.get(), CLONE_NEWNET);
    return "no network of its own for a node: " + error_text(error);
  }
  (void)!::setns(home.get(), CLONE_NEWNET);  // not permitted to all; the tests do without
  void* const shared =
      ::mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return error_text(errno);
  faults_ = new (shared) Faults;
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    pass_packets();
  }
  return process_ < 0 ? error_text(errno) : "";
}

FarNetwork::~FarNetwork() {
  if (process_ > 0) ::kill(process_, SIGKILL), ::waitpid(process_, nullptr, 0);
  if (faults_ != nullptr) ::munmap(faults_, sizeof(Faults));
}

void FarNetwork::enter(uint32_t node) const {
  if (::setns(namespaces_[node].get(), CLONE_NEWNET) != 0) std::abort();
}

// Packets wait in the order of their times.
void FarNetwork::pass_packets() {
  struct Packet {
    int to;
    std::vector<uint8_t> bytes;
  };
  std::multimap<Clock::time_point, Packet> waiting;
  std::mt19937 random(7);
  const auto happens = [&](uint32_t of_thousand) { return random() % 1000 < of_thousand; };
  const auto take = [&](const Fd& wire) {
    std::vector<uint8_t> bytes(kMaxPacket);
    const ssize_t n = ::read(wire.get(), bytes.data(), bytes.size());
    if (n < 20 || bytes[0] >> 4 != 4) return n > 0;  // what else the system sends
    in_addr to{};
    std::memcpy(&to, bytes.data() + kDestination, sizeof to);
    const uint32_t node = ntohl(to.s_addr) - ntohl(address_of(0).s_addr);
    const bool cut = faults_->passed >= faults_->cut_after;
    if (node >= wires_.size() || cut || happens(faults_->lost)) return true;
    ++faults_->passed;
    bytes.resize(static_cast<size_t>(n));
    const auto delay = std::chrono::microseconds(faults_->delay_us);
    waiting.emplace(Clock::now() + (happens(faults_->reordered) ? 4 * delay : delay),
                    Packet{wires_[node].get(), std::move(bytes)});
    return true;
  };
  for (;;) {
    std::vector<pollfd> polled;
    for (const Fd& wire : wires_) polled.push_back({wire.get(), POLLIN, 0});
    timespec rest{0, 50'000'000};
    if (!waiting.empty()) {
      const auto left = waiting.begin()->first - Clock::now();
      rest.tv_nsec = std::max<int64_t>(0, std::chrono::nanoseconds(left).count());
    }
    ::ppoll(polled.data(), polled.size(), &rest, nullptr);
    for (const Fd& wire : wires_) {
      for (int i = 0; i < 64 && take(wire); ++i) {
      }
    }
    while (!waiting.empty() && waiting.begin()->first <= Clock::now()) {
      const Packet& packet = waiting.begin()->second;
      (void)!::write(packet.to, packet.bytes.data(), packet.bytes.size());
      waiting.erase(waiting.begin());
    }
  }
}

}  // namespace mscclc::testing
