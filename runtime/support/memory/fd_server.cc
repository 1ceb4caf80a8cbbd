// Tickets: u8 version, 16 random bytes that name the socket, 16 secret bytes that name the
// descriptor. The socket is in the abstract namespace and takes packets: a request is one packet,
// the secret; the answer is one packet, the version and the range that is offered, and with it the
// descriptor. A request for what is not there gets no answer: the connection ends.
//
// One thread serves; it never waits for a client. A connection that says nothing is given up after
// a while, and as there are few at a time, later ones wait in the socket's backlog.
#include "runtime/support/memory/fd_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "runtime/support/failed_call.h"
#include "runtime/support/fixed_times.h"
#include "runtime/support/memory/fd_socket.h"
#include "runtime/support/process/per_process.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMaxClients = 32;

Fd duplicate(const Fd& fd) { return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

struct Client {
  Fd socket;
  Clock::time_point deadline;
};

struct Offered {
  std::shared_ptr<const Fd> fd;
  MemoryRange range;
};

class Server final : public FdServer {
 public:
  Server(FdTicket ticket, Fd listener, Fd waker)
      : ticket_(ticket),
        listener_(std::move(listener)),
        waker_(std::move(waker)),
        spare_(duplicate(waker_)) {
    thread_ = quiet_thread("mscclc-fds", [this] { serve(); });
  }
  ~Server() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake(waker_);
    if (thread_.joinable()) thread_.join();
  }
  bool has_thread(Diagnostics& diagnostics) const {
    return has_started(thread_, "the server of descriptors", diagnostics);
  }

  std::vector<uint8_t> offer(int fd, const MemoryRange& range, Diagnostics& diagnostics) override {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) {
      report_failed_call(diagnostics, "fd-offer", "cannot offer descriptor {}", fd);
      return {};
    }
    return offer(std::make_shared<const Fd>(std::move(copy)), range, diagnostics);
  }

  std::vector<uint8_t> offer(std::shared_ptr<const Fd> fd, const MemoryRange& range,
                             Diagnostics& diagnostics) override {
    FdTicket ticket = ticket_;
    fill_random(ticket.secret);
    const std::lock_guard lock(mutex_);
    offers_.emplace(ticket.secret, Offered{std::move(fd), range});
    return ticket.bytes();
  }

  void withdraw(const std::vector<uint8_t>& bytes) override {
    const std::optional<FdTicket> ticket = FdTicket::read(bytes);
    if (!ticket) return;
    const std::lock_guard lock(mutex_);
    offers_.erase(ticket->secret);
  }

 private:
  bool stopped() {
    const std::lock_guard lock(mutex_);
    return stop_;
  }

  void serve() {
    while (!stopped()) {
      try {
        serve_some();
      } catch (const std::bad_alloc&) {
        clients_.clear();  // they say that they got nothing
      }
    }
  }

  void serve_some() {
    std::vector<pollfd> polled = {{waker_.get(), POLLIN, 0}};
    const bool accepts = clients_.size() < kMaxClients && Clock::now() >= accept_again_;
    polled.push_back({accepts ? listener_.get() : -1, POLLIN, 0});
    for (const Client& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), wait_ms());
    drain(waker_);
    answer_clients(polled);
    if (!spare_.valid() && clients_.empty()) spare_ = duplicate(waker_);
    if (polled[1].revents != 0) accept_one();
  }

  /// Until the next deadline; -1: nothing is due.
  int wait_ms() const {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = Clock::time_point::max();
    for (const Client& client : clients_) next = std::min(next, client.deadline);
    if (accept_again_ > now) next = std::min(next, accept_again_);
    if (next == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    return static_cast<int>(std::max<int64_t>(left, 0));
  }

  /// polled[2 + i] is clients_[i].
  void answer_clients(const std::vector<pollfd>& polled) {
    const Clock::time_point now = Clock::now();
    std::vector<Client> waiting;
    for (size_t i = 0; i < clients_.size(); ++i) {
      if (polled[2 + i].revents != 0) {
        answer(clients_[i].socket);
      } else if (now < clients_[i].deadline) {
        waiting.push_back(std::move(clients_[i]));
      }
    }
    clients_ = std::move(waiting);
  }

  void answer(const Fd& socket) {
    FdSecret secret;
    if (!receive_secret(socket, secret)) return;
    const std::lock_guard lock(mutex_);
    const auto found = offers_.find(secret);
    // A client that does not take it gets nothing, and reports that itself.
    if (found != offers_.end()) (void)send_fd(socket, *found->second.fd, found->second.range);
  }

  Fd accept_client() const {
    return Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  void accept_one() {
    Fd socket = accept_client();
    if (!socket.valid() && spare_.valid() && is_out_of_descriptors(errno)) {
      spare_.reset();
      socket = accept_client();
    }
    if (!socket.valid()) {
      // Without free descriptors the listener stays readable: leave it alone for a moment.
      if (is_out_of_descriptors(errno) || errno == ENOMEM || errno == ENOBUFS) {
        accept_again_ = Clock::now() + kNoDescriptors;
      }
      return;
    }
    if (same_user(socket)) clients_.push_back({std::move(socket), Clock::now() + kTimeToProve});
  }

  const FdTicket ticket_;
  const Fd listener_, waker_;
  /// Makes room for one client where the process has no descriptors left: a peer that waits for an
  /// answer holds up all ranks, also those that could say what is wrong. The thread's.
  Fd spare_;
  std::vector<Client> clients_;     // the thread's
  Clock::time_point accept_again_;  // the thread's
  std::mutex mutex_;
  std::map<FdSecret, Offered> offers_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<FdServer> FdServer::start(Diagnostics& diagnostics) {
  FdTicket ticket;
  fill_random(ticket.socket);
  Fd listener = listen_for_fds(ticket);
  Fd waker;
  if (listener.valid()) waker = make_waker();
  if (!waker.valid()) {
    report_failed_call(diagnostics, "fd-server", "cannot serve descriptors");
    return nullptr;
  }
  auto server = std::make_unique<Server>(ticket, std::move(listener), std::move(waker));
  return server->has_thread(diagnostics) ? std::move(server) : nullptr;
}

namespace {

struct Shared {
  std::mutex mutex;
  std::weak_ptr<FdServer> server;
};

}  // namespace

std::shared_ptr<FdServer> FdServer::of_process(Diagnostics& diagnostics) {
  auto& shared = process_wide<Shared>();
  const std::lock_guard lock(shared.mutex);
  std::shared_ptr<FdServer> server = shared.server.lock();
  if (server == nullptr) shared.server = server = FdServer::start(diagnostics);
  return server;
}

}  // namespace mscclc
