#include "runtime/support/address/rendezvous.h"

namespace mscclc {

Rendezvous Rendezvous::of(const UniqueId& id) {
  if (id.local) return {.secret = id.secret, .local = true};
  return {.host = id.address.host(), .ports = {id.address.port()}, .secret = id.secret};
}

}  // namespace mscclc
