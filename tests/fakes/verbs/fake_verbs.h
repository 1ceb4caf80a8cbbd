// A libibverbs for tests, opened by MSCCLC_IBV_SO: devices whose queue pairs reach those of other
// processes of this machine over unix sockets, and that fail when asked to. It does what devices
// do: sources are read after the order, keys and bounds are checked, a message waits for a receive.
// Of RDMA reads there are those of one byte. It is a libmlx5, too (MSCCLC_MLX5_SO).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace mscclc::verbs::fake {

/// What joins devices of several processes, and goes wrong: in memory that these share.
struct Wire {
  std::atomic<uint64_t> passed{0};              ///< orders so far
  std::atomic<uint64_t> cut_after{UINT64_MAX};  ///< orders; then no device gets an answer any more
  std::atomic<bool> silent{false};              ///< once cut, devices report no error either
  std::atomic<uint32_t> lost{0};                ///< so many of 1000 orders are sent again,
  std::atomic<uint32_t> again_us{0};            ///< after so long
};

/// What the devices are, and what fails. Changes hold for what is asked of the library later.
struct FakeVerbs {
  uint32_t devices = 2;      ///< fake0, fake1, ... of one port each
  uint32_t down = 99;        ///< the port of this device is down
  bool infiniband = false;   ///< otherwise RoCE
  bool lid = true;           ///< InfiniBand: ports have one
  bool atomics = true;       ///< devices add to memory
  int most_begun = 16;       ///< additions and reads of a queue pair at a time, begun by a device
  int most_answered = 16;    ///< ... and answered by it
  int forks = 2;             ///< ibv_fork_status: unneeded, until forks do harm
  int gids = 4;              ///< of a RoCE port; the first and the third are of RoCE v1
  std::string failing_call;  ///< such as "create_qp"
  int error = 12;            ///< with which it fails
  uint64_t most_registered = UINT64_MAX;  ///< bytes in one region
  uint64_t gpu_begin = 0, gpu_end = 0;  ///< addresses of GPUs' memory, which nothing here can read
  /// Where that memory is, if nvidia-peermem is loaded.
  uint8_t* (*peermem)(uint64_t address, uint64_t bytes) = nullptr;
  /// What is written to a dma-buf is seen only once one is read by the same PCI function, as on a
  /// PCI bus that is slow.
  bool posted = false;
  bool mlx5 = false;                     ///< libmlx5 knows the devices
  int path_error = 0;                    ///< instead of their data-direct functions' paths
  std::atomic<int64_t> data_direct{0};   ///< regions of these functions that were made
  std::atomic<int64_t> not_ready{0};     ///< devices opened while forks did harm,
  std::atomic<int64_t> in_pages{0};      ///< regions that did not begin with a page
  std::atomic<int64_t> adds{0};          ///< additions that were carried out
  std::atomic<int64_t> reads{0};         ///< RDMA reads that were carried out
  std::atomic<int64_t> direct_reads{0};  ///< ... by data-direct functions
  std::atomic<int64_t> posts{0};         ///< calls that gave a device orders, one or a list
  std::atomic<int> service_level{0}, traffic_class{0}, partition{0};  ///< of the last queue pair
  std::atomic<int64_t> objects{0};        ///< made and not ended, contexts and regions included
  std::atomic<int64_t> lost_add{0};       ///< 1: the next addition is answered, and not done; ...
  std::atomic<int64_t> failing_order{0};  ///< 1: the next order fails; 2: the one after it; ...
  std::atomic<int> status{4};             ///< with which it fails (ibv_wc_status)
  std::atomic<int64_t> hanging_order{0};  ///< likewise: it and those after it are never done
  Wire* wire = nullptr;                   ///< nullptr: nothing goes wrong on the way
};

}  // namespace mscclc::verbs::fake

/// The library's state: by dlsym().
extern "C" mscclc::verbs::fake::FakeVerbs* mscclc_fake_verbs();
