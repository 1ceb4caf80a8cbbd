// Writes the inputs that bootstrap_fuzz, lane_fuzz and rows_fuzz start from: seeds FOLDER, into
// FOLDER/bootstrap, FOLDER/lane and FOLDER/rows. They are binary, or text that lies elsewhere, so
// they are made, not kept.
#include <fstream>
#include <string>

#include "compiler/rows/library.h"
#include "ir/rows/print_row.h"
#include "runtime/bootstrap/wire/frames.h"
#include "runtime/support/memory/fd_socket.h"
#include "runtime/support/memory/handle.h"
#include "tests/fuzz/lane_orders.h"

namespace {

using namespace mscclc;
using Bytes = std::vector<uint8_t>;

std::string folder;

void write(const std::string& name, char kind, std::span<const uint8_t> bytes) {
  std::ofstream file(folder + "/" + name, std::ios::binary);
  file.put(kind);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write(const std::string& name, char kind, const std::string& text) {
  write(name, kind, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void write_frames() {
  const Bytes data = {1, 2, 3};
  const std::vector<Bytes> frames = {
      wire::frame(wire::Challenge{}),
      wire::frame(wire::Hello{.rank = 1, .size = 2, .process = 3}),
      wire::frame(wire::Welcome{.timeout_ms = 1000, .silence_ms = 2000, .hub_rank = 0}),
      wire::frame(wire::Refused{wire::Refusal::other_ends}),
      wire::frame(wire::Gather{.step = 0, .name = "x", .data = data}),
      wire::frame(wire::Gathered{0, {data, {}, data}}),
      wire::frame(wire::Failure{wire::FailureKind::died, "why"}),
      wire::give_up_frame("why"),
      wire::frame(WaitReport{{0, 1}, "why"}),
      wire::frame(wire::FrameKind::answer),
      wire::frame(wire::FrameKind::heartbeat),
      wire::frame(wire::FrameKind::goodbye),
  };
  Bytes stream;
  for (size_t i = 0; i < frames.size(); ++i) {
    write("payload" + std::to_string(i), 'p', std::span(frames[i]).subspan(8));
    write("frame" + std::to_string(i), 's', frames[i]);
    stream.insert(stream.end(), frames[i].begin(), frames[i].end());
  }
  write("stream", 's', stream);
  Bytes step = frames[4];
  step.insert(step.end(), frames[4].begin(), frames[4].end());
  write("step", 's', step);
  const Bytes changes = {0, 0, 4, 1};
  write("records", 'r', changes);
  write("record", 'r',
        Bytes{17, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
}

void write_texts() {
  write("id4", 'i', "mscclc1/10.0.0.1/24123/000102030405060708090a0b0c0d0eff");
  write("id", 'i', "mscclc1/local/0/000102030405060708090a0b0c0d0eff");
  write("id6", 'i', "mscclc1/2001:db8::1/1/ffffffffffffffffffffffffffffffff");
  write("torchrun", 'e',
        "RANK=3\nWORLD_SIZE=8\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=node7\n"
        "MASTER_PORT=64000\nTORCHELASTIC_RUN_ID=run\nMSCCLC_TIMEOUT=30");
  write("mpirun", 'e',
        "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=4\nOMPI_COMM_WORLD_LOCAL_RANK=1\n"
        "OMPI_COMM_WORLD_LOCAL_SIZE=4\nPMIX_NAMESPACE=x\nMSCCLC_SECRET=hush");
  write("srun", 'e',
        "SLURM_PROCID=5\nSLURM_NTASKS=16\nSLURM_LOCALID=1\nSLURM_STEP_NUM_NODES=4\n"
        "SLURM_JOB_ID=4711\nSLURM_STEP_ID=0\nSLURM_STEP_NODELIST=rack[2-3]node[07-10],gpu1");
  write("by_hand", 'e',
        "MSCCLC_RANK=0\nMSCCLC_WORLD_SIZE=2\nMSCCLC_LOCAL_RANK=0\n"
        "MSCCLC_ID=mscclc1/10.0.0.1/24123/000102030405060708090a0b0c0d0eff\nMSCCLC_PORTS=1");
}

void write_handles() {
  Bytes handle;
  encode({.bytes = 100,
          .offset = 28,
          .allocation = 4096,
          .offers = {{HandleKind::same_process, {1, 2, 3}}, {HandleKind::cuda_ipc, Bytes(64, 7)}}},
         handle);
  write("handle", 'h', handle);
  write("ticket", 'h', FdTicket{}.bytes());
}

void write_lanes() {
  using testing::append, testing::LaneOrder;
  Bytes orders;
  for (const uint64_t memory : {testing::kForgotten, testing::kExposed, testing::kFreed}) {
    append(orders, LaneOrder{LaneOrder::kPut, memory, 16, 3});
    orders.insert(orders.end(), {1, 2, 3});
    append(orders, LaneOrder{LaneOrder::kSignal, memory, 8, 1});
  }
  append(orders, LaneOrder{LaneOrder::kFlush, 0, 0, 1});
  write("orders", 'e', orders);
  for (const uint64_t beyond : {0, 1}) {  // all there is, and a byte more
    const uint64_t count = testing::kExposedBytes + beyond;
    Bytes whole;
    append(whole, LaneOrder{LaneOrder::kPut, testing::kExposed, 0, count});
    whole.resize(whole.size() + count, 7);
    write("whole" + std::to_string(beyond), 'e', whole);
  }
  Bytes answers;
  for (const uint64_t number : {uint64_t{1}, uint64_t{2}, testing::kGone}) append(answers, number);
  write("answers", 'l', answers);
}

/// The library's row functions, one by one.
void write_rows() {
  for (const rows::Function& function : rows::library()) {
    std::ofstream(folder + "/" + function.name) << rows::print(function);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = std::string(argv[1]) + "/bootstrap";
  write_frames();
  write_texts();
  write_handles();
  folder = std::string(argv[1]) + "/lane";
  write_lanes();
  folder = std::string(argv[1]) + "/rows";
  write_rows();
  return 0;
}
