// What the fake library makes: completion queues, memory regions and queue pairs.
#pragma once

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/fakes/verbs/fake_verbs.h"

namespace mscclc::verbs::fake {

FakeVerbs& state();

/// The memory that devices of this process may use, by key. Its users hold the mutex, so that a
/// region that has ended is not touched any more.
class Regions {
 public:
  static Regions& of_process();
  /// `memory`: where the bytes are, which keys' holders find at `data`.
  ibv_mr* add(ibv_pd* domain, void* data, size_t bytes, int access, uint8_t* memory);
  /// A dma-buf, mapped here; nullptr: errno says why. `direct`: for the data-direct function.
  ibv_mr* add_file(ibv_pd* domain, int file, uint64_t offset, size_t bytes, uint64_t address,
                   int access, bool direct);
  void remove(ibv_mr* region);
  /// Where `bytes` bytes at `address` are, if the key allows `access` there; nullptr: it does not.
  /// REQUIRES: mutex().
  uint8_t* find(ibv_pd* domain, uint32_t key, uint64_t address, uint64_t bytes, int access);
  /// Writes to a region. REQUIRES: find() has found `to` there; mutex().
  void write(uint32_t key, uint8_t* to, const std::vector<uint8_t>& bytes);
  /// What was written to dma-bufs on the path of the region that `key` names is there. True:
  /// that is the data-direct function's. REQUIRES: mutex().
  bool settle(uint32_t key);
  std::mutex& mutex() { return mutex_; }

 private:
  struct Region {
    ibv_mr mr;
    int access;
    uint8_t* memory;
    bool direct = false;
    void* map = nullptr;  ///< of a dma-buf
    size_t mapped = 0;
  };
  struct Posted {
    uint32_t key;
    uint8_t* to;
    std::vector<uint8_t> bytes;
  };
  std::mutex mutex_;
  uint32_t next_ = 1;
  std::map<uint32_t, Region> regions_;
  std::vector<Posted> posted_;
};

struct Channel : ibv_comp_channel {
  int write_end = -1;
};

struct Completions : ibv_cq {
  void push(const ibv_wc& come);
  int poll(int most, ibv_wc* to);
  void arm();

 private:
  std::mutex mutex_;
  std::deque<ibv_wc> come_;
  bool armed_ = false;
};

/// A queue pair: one thread sends its orders, another carries out what its peer sends.
class Pair : public ibv_qp {
 public:
  explicit Pair(const ibv_qp_init_attr& wanted);
  ~Pair();
  /// False: there is no place for it; errno says why.
  bool open();
  int modify(const ibv_qp_attr& to, int which);
  int send(const ibv_send_wr& order);
  int receive(const ibv_recv_wr& order);

 private:
  /// An order with its own copies of what it carries.
  struct Order {
    ibv_send_wr order;
    ibv_sge source;
    std::vector<uint8_t> carried;
  };
  /// What goes over the socket before the bytes.
  struct Head {
    uint32_t opcode, imm, key, bytes;
    uint64_t address, add;
    ibv_gid gid;   ///< of the receiver
    uint32_t lid;  ///< the same, without a GID
  };
  struct Answer {
    int32_t status;
    uint64_t old;
  };

  void run_orders();
  void hang_if_asked(std::unique_lock<std::mutex>& lock);
  bool pass_wire(std::unique_lock<std::mutex>& lock);
  ibv_wc_status carry_out(const Order& order);
  bool reach_peer();
  ibv_wc_status give(const Head& head, const std::vector<uint8_t>& bytes, uint64_t& old);
  void complete(const ibv_send_wr& order, ibv_wc_status status);
  void serve();
  Answer take(const Head& head, const std::vector<uint8_t>& bytes);
  bool is_for_me(const Head& head) const;
  bool await_receive();
  void take_receive(const Head& head);

  const ibv_qp_init_attr wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Order> orders_;
  std::deque<uint64_t> receives_;
  ibv_qp_attr address_{};  ///< of the peer
  unsigned access_ = 0;
  int reached_ = IBV_QPS_RESET;
  bool stop_ = false, sends_ = false;
  int listener_ = -1, out_ = -1, in_ = -1;
  std::thread sender_, server_;
};

/// The addresses of a device's port, as index and entry.
bool gid_at(const ibv_context* context, uint32_t index, ibv_gid_entry& to);
uint16_t lid_of(const ibv_context* context);

}  // namespace mscclc::verbs::fake
