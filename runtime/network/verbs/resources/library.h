// libibverbs, opened at run time: nothing is linked with it, so what is built here also runs where
// it is not installed. What its header defines inline (posting, polling) needs no function of it.
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "ir/support/result.h"

namespace mscclc::verbs {

/// The functions of libibverbs that are used, by their names there.
#define MSCCLC_VERBS_FUNCTIONS(F) \
  F(get_device_list)              \
  F(free_device_list)             \
  F(get_device_name)              \
  F(open_device)                  \
  F(close_device)                 \
  F(query_device)                 \
  F(query_port)                   \
  F(alloc_pd)                     \
  F(dealloc_pd)                   \
  F(reg_mr)                       \
  F(dereg_mr)                     \
  F(create_comp_channel)          \
  F(destroy_comp_channel)         \
  F(create_cq)                    \
  F(destroy_cq)                   \
  F(get_cq_event)                 \
  F(ack_cq_events)                \
  F(create_qp)                    \
  F(modify_qp)                    \
  F(destroy_qp)

struct Library {
#define MEMBER(name) decltype(&::ibv_##name) name = nullptr;
  MSCCLC_VERBS_FUNCTIONS(MEMBER)
#undef MEMBER
  decltype(&::_ibv_query_gid_ex) query_gid_ex = nullptr;
  decltype(&::ibv_reg_dmabuf_mr) reg_dmabuf_mr = nullptr;  ///< nullptr: the library is too old

  /// All of a port's attributes; 0, or an error of the system.
  int query_port_attributes(ibv_context* context, uint8_t port, ibv_port_attr& to) const;
};

/// What was opened stays open, as drivers that it loads do.
Result<Library> load_library(const std::string& file);

}  // namespace mscclc::verbs
