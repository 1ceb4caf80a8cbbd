// The functions of libibverbs, for fake devices.
#include "tests/fakes/verbs/fake_verbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/fakes/verbs/objects.h"

namespace mscclc::verbs::fake {
namespace {

/// A device, with its number.
struct Device : ibv_device {
  uint32_t number = 0;
};

uint32_t number_of(const ibv_context* context) {
  return static_cast<const Device*>(context->device)->number;
}

/// True: this call is to fail.
bool fails(const char* call) {
  if (state().failing_call != call) return false;
  errno = state().error;
  return true;
}

template <class Object>
Object* made(Object* object) {
  ++state().objects;
  return object;
}

int poll(ibv_cq* queue, int most, ibv_wc* to) {
  return static_cast<Completions*>(queue)->poll(most, to);
}
int arm(ibv_cq* queue, int) {
  static_cast<Completions*>(queue)->arm();
  return 0;
}
int send(ibv_qp* pair, ibv_send_wr* orders, ibv_send_wr** refused) {
  ++fake::state().posts;
  for (; orders != nullptr; orders = orders->next) {
    *refused = orders;
    if (const int error = static_cast<Pair*>(pair)->send(*orders); error != 0) return error;
  }
  return 0;
}
int receive(ibv_qp* pair, ibv_recv_wr* orders, ibv_recv_wr** refused) {
  for (; orders != nullptr; orders = orders->next) {
    *refused = orders;
    if (const int error = static_cast<Pair*>(pair)->receive(*orders); error != 0) return error;
  }
  return 0;
}

}  // namespace

uint16_t lid_of(const ibv_context* context) {
  return static_cast<uint16_t>(number_of(context) + 7);
}

bool gid_at(const ibv_context* context, uint32_t index, ibv_gid_entry& to) {
  const uint32_t count = state().infiniband ? 1 : static_cast<uint32_t>(state().gids);
  if (index >= count) return false;
  to = {};
  to.gid_index = index;
  to.port_num = 1;
  const auto last = static_cast<uint8_t>(number_of(context) + 1);
  const bool mapped = index >= 2;
  constexpr uint8_t kLinkLocal[] = {0xfe, 0x80};
  constexpr uint8_t kMapped[] = {0xff, 0xff, 10, 99};
  if (mapped) {
    std::memcpy(to.gid.raw + 10, kMapped, sizeof kMapped);
  } else {
    std::memcpy(to.gid.raw, kLinkLocal, sizeof kLinkLocal);
  }
  to.gid.raw[15] = last;
  to.gid_type = state().infiniband ? IBV_GID_TYPE_IB
                : index % 2 == 0   ? IBV_GID_TYPE_ROCE_V1
                                   : IBV_GID_TYPE_ROCE_V2;
  return true;
}

}  // namespace mscclc::verbs::fake

namespace fake = mscclc::verbs::fake;

// The header has functions of some of these names.
#undef ibv_query_port
#undef ibv_reg_mr

extern "C" {

fake::FakeVerbs* mscclc_fake_verbs() {
  static fake::FakeVerbs state;
  return &state;
}

ibv_device** ibv_get_device_list(int* count) {
  const uint32_t devices = fake::state().devices;
  auto** list = new ibv_device*[devices + 1]();
  for (uint32_t i = 0; i < devices; ++i) {
    static fake::Device all[8];
    all[i].number = i;
    std::strcpy(all[i].name, "fake0");
    all[i].name[4] = static_cast<char>('0' + i);
    list[i] = &all[i];
  }
  *count = static_cast<int>(devices);
  return list;
}
void ibv_free_device_list(ibv_device** list) { delete[] list; }
const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_fork_status ibv_is_fork_initialized() {
  return static_cast<ibv_fork_status>(fake::state().forks);
}
int ibv_fork_init() {
  if (fake::state().objects > 0) return EINVAL;
  fake::state().forks = IBV_FORK_ENABLED;
  return 0;
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (fake::fails("open_device")) return nullptr;
  if (fake::state().forks == IBV_FORK_DISABLED) ++fake::state().not_ready;
  auto* context = new ibv_context();
  context->device = device;
  context->ops.poll_cq = fake::poll;
  context->ops.req_notify_cq = fake::arm;
  context->ops.post_send = fake::send;
  context->ops.post_recv = fake::receive;
  return fake::made(context);
}
int ibv_close_device(ibv_context* context) {
  --fake::state().objects;
  delete context;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* to) {
  *to = {};
  to->phys_port_cnt = 1;
  to->max_qp_wr = 1024;
  to->max_qp_rd_atom = fake::state().atomics ? fake::state().most_answered : 0;
  to->max_qp_init_rd_atom = fake::state().atomics ? fake::state().most_begun : 0;
  to->atomic_cap = fake::state().atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t, _compat_ibv_port_attr* attributes) {
  auto* to = reinterpret_cast<ibv_port_attr*>(attributes);
  const fake::FakeVerbs& state = fake::state();
  to->state = state.down == fake::number_of(context) ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  to->max_mtu = to->active_mtu = IBV_MTU_4096;
  to->gid_tbl_len = 8;
  to->lid = state.infiniband && state.lid ? fake::lid_of(context) : 0;
  to->link_layer = state.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t, uint32_t index, ibv_gid_entry* to, uint32_t,
                      size_t) {
  return fake::gid_at(context, index, *to) ? 0 : ENODATA;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (fake::fails("alloc_pd")) return nullptr;
  auto* domain = new ibv_pd();
  domain->context = context;
  return fake::made(domain);
}
int ibv_dealloc_pd(ibv_pd* domain) {
  --fake::state().objects;
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* data, size_t bytes, int access) {
  if (fake::fails("reg_mr")) return nullptr;
  if (bytes > fake::state().most_registered) {
    errno = ENOMEM;
    return nullptr;
  }
  const auto address = reinterpret_cast<uint64_t>(data);
  fake::FakeVerbs& state = fake::state();
  if (address % static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) != 0) ++state.in_pages;
  auto* memory = static_cast<uint8_t*>(data);
  if (address >= state.gpu_begin && address < state.gpu_end) {
    memory = state.peermem != nullptr ? state.peermem(address, bytes) : nullptr;
    errno = EFAULT;
    if (memory == nullptr) return nullptr;
  }
  return fake::made(fake::Regions::of_process().add(domain, data, bytes, access, memory));
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address, int file,
                          int access) {
  if (fake::fails("reg_dmabuf_mr")) return nullptr;
  ibv_mr* const mr =
      fake::Regions::of_process().add_file(domain, file, offset, bytes, address, access, false);
  return mr == nullptr ? nullptr : fake::made(mr);
}
int ibv_dereg_mr(ibv_mr* region) {
  --fake::state().objects;
  fake::Regions::of_process().remove(region);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  int ends[2];
  if (fake::fails("create_comp_channel") || ::pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  auto* channel = new fake::Channel();
  channel->context = context;
  channel->fd = ends[0];
  channel->write_end = ends[1];
  return fake::made(channel);
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  --fake::state().objects;
  auto* mine = static_cast<fake::Channel*>(channel);
  ::close(mine->fd);
  ::close(mine->write_end);
  delete mine;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel* channel, int) {
  if (fake::fails("create_cq")) return nullptr;
  auto* queue = new fake::Completions();
  queue->context = context;
  queue->channel = channel;
  return fake::made(queue);
}
int ibv_destroy_cq(ibv_cq* queue) {
  --fake::state().objects;
  delete static_cast<fake::Completions*>(queue);
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  *user = nullptr;
  return ::read(channel->fd, queue, sizeof *queue) == sizeof *queue ? 0 : -1;
}
void ibv_ack_cq_events(ibv_cq*, unsigned int) {}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  if (fake::fails("create_qp")) return nullptr;
  auto pair = std::make_unique<fake::Pair>(*wanted);
  pair->context = domain->context;
  pair->pd = domain;
  return pair->open() ? fake::made(pair.release()) : nullptr;
}
int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* to, int which) {
  if (fake::fails("modify_qp")) return errno;
  return static_cast<fake::Pair*>(pair)->modify(*to, which);
}
int ibv_destroy_qp(ibv_qp* pair) {
  --fake::state().objects;
  delete static_cast<fake::Pair*>(pair);
  return 0;
}

}  // extern "C"
