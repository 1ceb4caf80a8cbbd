#include "tests/fakes/verbs/objects.h"

#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>

#include "executor/shared_atomics.h"

namespace mscclc::verbs::fake {
namespace {

/// Where a queue pair is reached: a name without a file.
socklen_t address_of(uint32_t number, sockaddr_un& to) {
  to = {};
  to.sun_family = AF_UNIX;
  const int length =
      std::snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "mscclc-fake-verbs/%u", number);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

bool send_all(int socket, const void* from, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(from);
  while (bytes > 0) {
    const ssize_t n = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool receive_all(int socket, void* to, size_t bytes) {
  auto* at = static_cast<uint8_t*>(to);
  while (bytes > 0) {
    const ssize_t n = ::recv(socket, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

/// It brings back what is there, or was.
bool answers(uint32_t opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_RDMA_READ;
}

ibv_wc_opcode completed(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_READ) return IBV_WC_RDMA_READ;
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_RDMA_WRITE;
}

}  // namespace

FakeVerbs& state() { return *mscclc_fake_verbs(); }

Regions& Regions::of_process() {
  static Regions regions;
  return regions;
}

ibv_mr* Regions::add(ibv_pd* domain, void* data, size_t bytes, int access, uint8_t* memory) {
  const std::lock_guard lock(mutex_);
  const uint32_t key = next_++ << 8 | 0x5a;
  Region& region = regions_[key];
  region.mr = {domain->context, domain, data, bytes, 0, key, key};
  region.access = access;
  region.memory = memory;
  return &region.mr;
}

ibv_mr* Regions::add_file(ibv_pd* domain, int file, uint64_t offset, size_t bytes, uint64_t address,
                          int access, bool direct) {
  // The fake driver says so where in its file the dma-buf begins (tests/fakes/cuda).
  const off_t begin = ::lseek(file, 0, SEEK_CUR);
  if (begin < 0) return nullptr;
  const size_t mapped = offset + bytes;
  void* const map = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, begin);
  if (map == MAP_FAILED) return nullptr;
  ibv_mr* const mr = add(domain, reinterpret_cast<void*>(address), bytes, access,
                         static_cast<uint8_t*>(map) + offset);
  const std::lock_guard lock(mutex_);
  Region& region = regions_[mr->lkey];
  region.direct = direct;
  region.map = map;
  region.mapped = mapped;
  return mr;
}

void Regions::remove(ibv_mr* mr) {
  const std::lock_guard lock(mutex_);
  settle(mr->lkey);
  const Region& region = regions_[mr->lkey];
  if (region.map != nullptr) ::munmap(region.map, region.mapped);
  regions_.erase(mr->lkey);
}

uint8_t* Regions::find(ibv_pd* domain, uint32_t key, uint64_t address, uint64_t bytes, int access) {
  const auto found = regions_.find(key);
  if (found == regions_.end() || found->second.mr.pd != domain) return nullptr;
  const Region& region = found->second;
  const auto begin = reinterpret_cast<uint64_t>(region.mr.addr);
  const bool inside = address >= begin && address - begin <= region.mr.length &&
                      bytes <= region.mr.length - (address - begin);
  if (!inside || (region.access & access) != access) return nullptr;
  return region.memory + (address - begin);
}

void Regions::write(uint32_t key, uint8_t* to, const std::vector<uint8_t>& bytes) {
  if (fake::state().posted && regions_[key].map != nullptr) {
    posted_.push_back({key, to, bytes});
  } else {
    copy_words(to, bytes.data(), bytes.size());
  }
}

bool Regions::settle(uint32_t key) {
  const bool direct = regions_[key].direct;
  std::erase_if(posted_, [&](const Posted& posted) {
    if (regions_[posted.key].direct != direct) return false;
    copy_words(posted.to, posted.bytes.data(), posted.bytes.size());
    return true;
  });
  return direct;
}

void Completions::push(const ibv_wc& come) {
  const std::lock_guard lock(mutex_);
  come_.push_back(come);
  if (!armed_ || channel == nullptr) return;
  armed_ = false;
  ibv_cq* const self = this;
  (void)!::write(static_cast<Channel*>(channel)->write_end, &self, sizeof self);
}

int Completions::poll(int most, ibv_wc* to) {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (; count < most && !come_.empty(); ++count) {
    to[count] = come_.front();
    come_.pop_front();
  }
  return count;
}

void Completions::arm() {
  const std::lock_guard lock(mutex_);
  armed_ = true;
}

Pair::Pair(const ibv_qp_init_attr& wanted) : ibv_qp{}, wanted_(wanted) {}

bool Pair::open() {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return false;
  std::random_device random;
  for (int i = 0; i < 100; ++i) {
    sockaddr_un address{};
    qp_num = random() & 0xffffff;
    const socklen_t length = address_of(qp_num, address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0) continue;
    if (::listen(listener_, 1) != 0) return false;
    server_ = std::thread([this] { serve(); });
    sender_ = std::thread([this] { run_orders(); });
    return true;
  }
  return false;
}

Pair::~Pair() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const int socket : {listener_, out_, in_}) {
      if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
    }
  }
  changed_.notify_all();
  if (server_.joinable()) server_.join();
  if (sender_.joinable()) sender_.join();
  for (const int socket : {listener_, out_, in_}) {
    if (socket >= 0) ::close(socket);
  }
}

int Pair::modify(const ibv_qp_attr& to, int which) {
  const std::lock_guard lock(mutex_);
  if ((which & IBV_QP_ACCESS_FLAGS) != 0) access_ = to.qp_access_flags;
  if ((which & IBV_QP_PKEY_INDEX) != 0) fake::state().partition = to.pkey_index;
  if ((which & IBV_QP_AV) != 0) {
    fake::state().service_level = to.ah_attr.sl;
    fake::state().traffic_class = to.ah_attr.grh.traffic_class;
  }
  const FakeVerbs& limits = fake::state();
  if (limits.atomics && (which & IBV_QP_MAX_QP_RD_ATOMIC) != 0 &&
      to.max_rd_atomic > limits.most_begun) {
    return EINVAL;
  }
  if (to.qp_state == IBV_QPS_RTR) address_ = to;
  if (to.qp_state == IBV_QPS_RTS) sends_ = true;
  const bool in_order = to.qp_state == IBV_QPS_INIT || reached_ + 1 == to.qp_state;
  if (!in_order) return EINVAL;
  reached_ = to.qp_state;
  changed_.notify_all();
  return 0;
}

int Pair::send(const ibv_send_wr& order) {
  const std::lock_guard lock(mutex_);
  if (!sends_) return EINVAL;
  if (orders_.size() >= wanted_.cap.max_send_wr) return ENOMEM;
  Order mine{order, order.num_sge > 0 ? order.sg_list[0] : ibv_sge{}, {}};
  if ((order.send_flags & IBV_SEND_INLINE) != 0) {
    if (mine.source.length > wanted_.cap.max_inline_data) return EINVAL;
    const auto* from = reinterpret_cast<const uint8_t*>(mine.source.addr);
    mine.carried.assign(from, from + mine.source.length);
  }
  orders_.push_back(std::move(mine));
  changed_.notify_all();
  return 0;
}

int Pair::receive(const ibv_recv_wr& order) {
  const std::lock_guard lock(mutex_);
  if (receives_.size() >= wanted_.cap.max_recv_wr) return ENOMEM;
  receives_.push_back(order.wr_id);
  changed_.notify_all();
  return 0;
}

/// One order after the other; after one that has failed all others are flushed.
void Pair::run_orders() {
  bool failed = false;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !orders_.empty(); });
    hang_if_asked(lock);
    if (stop_) return;
    const Order order = orders_.front();
    const bool passes = failed || pass_wire(lock);
    if (stop_) return;
    lock.unlock();
    const ibv_wc_status status = failed    ? IBV_WC_WR_FLUSH_ERR
                                 : !passes ? IBV_WC_RETRY_EXC_ERR
                                           : carry_out(order);
    lock.lock();
    if (stop_) return;
    orders_.pop_front();
    failed |= status != IBV_WC_SUCCESS;
    complete(order.order, status);
  }
}

void Pair::hang_if_asked(std::unique_lock<std::mutex>& lock) {
  std::atomic<int64_t>& order = fake::state().hanging_order;
  if (order > 0 && --order == 0) changed_.wait(lock, [this] { return stop_; });
}

/// What is lost is sent again after a while. False: it has been in vain.
bool Pair::pass_wire(std::unique_lock<std::mutex>& lock) {
  Wire* const wire = fake::state().wire;
  if (wire == nullptr) return true;
  if (wire->passed++ >= wire->cut_after) {
    if (wire->silent) changed_.wait(lock, [this] { return stop_; });
    return false;
  }
  // Aligned: see tests/fakes/nccl/fake_nccl.cc.
  alignas(64) static thread_local std::minstd_rand random{std::random_device()()};
  if (random() % 1000 < wire->lost) {
    changed_.wait_for(lock, std::chrono::microseconds(wire->again_us), [this] { return stop_; });
  }
  return true;
}

void Pair::complete(const ibv_send_wr& order, ibv_wc_status status) {
  if (status == IBV_WC_SUCCESS && (order.send_flags & IBV_SEND_SIGNALED) == 0) return;
  ibv_wc come{};
  come.wr_id = order.wr_id;
  come.status = status;
  come.opcode = completed(order.opcode);
  come.qp_num = qp_num;
  static_cast<Completions*>(wanted_.send_cq)->push(come);
}

ibv_wc_status Pair::carry_out(const Order& order) {
  if (fake::state().failing_order > 0 && --fake::state().failing_order == 0) {
    return static_cast<ibv_wc_status>(fake::state().status.load());
  }
  Head head{};
  head.opcode = order.order.opcode;
  head.imm = order.order.imm_data;
  head.gid = address_.ah_attr.grh.dgid;
  head.lid = address_.ah_attr.is_global != 0 ? 0 : address_.ah_attr.dlid;
  const bool atomic = order.order.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  head.key = atomic ? order.order.wr.atomic.rkey : order.order.wr.rdma.rkey;
  head.address = atomic ? order.order.wr.atomic.remote_addr : order.order.wr.rdma.remote_addr;
  head.add = atomic ? order.order.wr.atomic.compare_add : 0;
  const bool answered = answers(head.opcode);
  head.bytes = answered ? 0 : order.source.length;
  std::vector<uint8_t> bytes = order.carried;
  if (bytes.size() < head.bytes) {
    Regions& regions = Regions::of_process();
    const std::lock_guard lock(regions.mutex());
    const uint8_t* const from =
        regions.find(pd, order.source.lkey, order.source.addr, head.bytes, 0);
    if (from == nullptr) return IBV_WC_LOC_PROT_ERR;
    bytes.assign(from, from + head.bytes);
  }
  uint64_t old = 0;
  if (atomic) ++fake::state().adds;
  const ibv_wc_status status = give(head, bytes, old);
  if (status != IBV_WC_SUCCESS || !answered) return status;
  const uint64_t length = atomic ? sizeof old : order.source.length;
  Regions& regions = Regions::of_process();
  const std::lock_guard lock(regions.mutex());
  uint8_t* const to =
      regions.find(pd, order.source.lkey, order.source.addr, length, IBV_ACCESS_LOCAL_WRITE);
  if (to == nullptr || length > sizeof old) return IBV_WC_LOC_PROT_ERR;
  copy_words(to, reinterpret_cast<const uint8_t*>(&old), length);
  return IBV_WC_SUCCESS;
}

bool Pair::reach_peer() {
  const std::lock_guard lock(mutex_);
  if (out_ >= 0 || stop_) return out_ >= 0;
  sockaddr_un address{};
  const socklen_t length = address_of(address_.dest_qp_num, address);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), length) == 0) {
    out_ = socket;
    return true;
  }
  ::close(socket);
  return false;
}

ibv_wc_status Pair::give(const Head& head, const std::vector<uint8_t>& bytes, uint64_t& old) {
  Answer answer{};
  if (!reach_peer() || !send_all(out_, &head, sizeof head) ||
      !send_all(out_, bytes.data(), bytes.size()) || !receive_all(out_, &answer, sizeof answer)) {
    return IBV_WC_RETRY_EXC_ERR;
  }
  old = answer.old;
  return static_cast<ibv_wc_status>(answer.status);
}

/// What the peer sends, until something is not for it or is refused.
void Pair::serve() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  {
    const std::lock_guard lock(mutex_);
    in_ = socket;
    if (stop_) return;
  }
  Head head{};
  std::vector<uint8_t> bytes;
  while (receive_all(socket, &head, sizeof head) && is_for_me(head)) {
    bytes.resize(head.bytes);
    if (!receive_all(socket, bytes.data(), bytes.size())) break;
    const Answer answer = take(head, bytes);
    if (!send_all(socket, &answer, sizeof answer) || answer.status != IBV_WC_SUCCESS) break;
  }
  ::shutdown(socket, SHUT_RDWR);
}

bool Pair::is_for_me(const Head& head) const {
  if (head.lid != 0) return head.lid == lid_of(context);
  ibv_gid_entry entry{};
  for (uint32_t i = 0; gid_at(context, i, entry); ++i) {
    if (std::memcmp(entry.gid.raw, head.gid.raw, sizeof head.gid.raw) == 0) return true;
  }
  return false;
}

Pair::Answer Pair::take(const Head& head, const std::vector<uint8_t>& bytes) {
  const bool atomic = head.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool read = head.opcode == IBV_WR_RDMA_READ;
  const int access = atomic ? IBV_ACCESS_REMOTE_ATOMIC
                     : read ? IBV_ACCESS_REMOTE_READ
                            : IBV_ACCESS_REMOTE_WRITE;
  Answer answer{IBV_WC_SUCCESS, 0};
  const bool message = head.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (message && !await_receive()) return {IBV_WC_REM_OP_ERR, 0};
  {
    Regions& regions = Regions::of_process();
    const std::lock_guard lock(regions.mutex());
    uint8_t* const to = regions.find(pd, head.key, head.address,
                                     atomic ? sizeof head.add
                                     : read ? 1
                                            : bytes.size(),
                                     access);
    if (to == nullptr || (access_ & static_cast<unsigned>(access)) == 0) {
      return {IBV_WC_REM_ACCESS_ERR, 0};
    }
    if (read) {
      if (regions.settle(head.key)) ++fake::state().direct_reads;
      ++fake::state().reads;
      answer.old = *to;
    } else if (!atomic) {
      regions.write(head.key, to, bytes);
    } else if (head.address % sizeof head.add != 0) {
      return {IBV_WC_REM_INV_REQ_ERR, 0};
    } else {
      std::atomic<int64_t>& lost = fake::state().lost_add;
      const bool done = lost == 0 || --lost != 0;
      answer.old = shared_word<uint64_t>(to).fetch_add(done ? head.add : 0);
    }
  }
  if (message) take_receive(head);
  return answer;
}

/// Waits for a receive, as a sender does that retries forever: nothing is written until there is
/// one. False: the pair ends.
bool Pair::await_receive() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || !receives_.empty(); });
  return !stop_;
}

/// REQUIRES: await_receive().
void Pair::take_receive(const Head& head) {
  const std::lock_guard lock(mutex_);
  ibv_wc come{};
  come.wr_id = receives_.front();
  come.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  come.wc_flags = IBV_WC_WITH_IMM;
  come.imm_data = head.imm;
  come.byte_len = head.bytes;
  come.qp_num = qp_num;
  receives_.pop_front();
  static_cast<Completions*>(wanted_.recv_cq)->push(come);
}

}  // namespace mscclc::verbs::fake
