#include "runtime/bootstrap/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/bootstrap/tcp_bootstrap.h"

namespace mscclc {
namespace {

/// A launcher's names for the same things. A job is told from others by `job`.
struct Names {
  std::string_view launcher;
  Variable rank, size, size_else, local_rank;
  std::optional<Variable> local_size, machines;
  std::array<Variable, 2> job;
};

constexpr Names kLaunchers[] = {
    {"MSCCLC_RANK",
     Variable::MSCCLC_RANK,
     Variable::MSCCLC_WORLD_SIZE,
     Variable::MSCCLC_WORLD_SIZE,
     Variable::MSCCLC_LOCAL_RANK,
     std::nullopt,
     std::nullopt,
     {Variable::MASTER_PORT, Variable::MASTER_PORT}},
    {"torchrun",
     Variable::RANK,
     Variable::WORLD_SIZE,
     Variable::WORLD_SIZE,
     Variable::LOCAL_RANK,
     Variable::LOCAL_WORLD_SIZE,
     std::nullopt,
     {Variable::TORCHELASTIC_RUN_ID, Variable::MASTER_PORT}},
    {"Open MPI",
     Variable::OMPI_COMM_WORLD_RANK,
     Variable::OMPI_COMM_WORLD_SIZE,
     Variable::OMPI_COMM_WORLD_SIZE,
     Variable::OMPI_COMM_WORLD_LOCAL_RANK,
     Variable::OMPI_COMM_WORLD_LOCAL_SIZE,
     std::nullopt,
     {Variable::PMIX_NAMESPACE, Variable::OMPI_MCA_ess_base_jobid}},
    {"Slurm",
     Variable::SLURM_PROCID,
     Variable::SLURM_STEP_NUM_TASKS,
     Variable::SLURM_NTASKS,
     Variable::SLURM_LOCALID,
     std::nullopt,
     Variable::SLURM_STEP_NUM_NODES,
     {Variable::SLURM_JOB_ID, Variable::SLURM_STEP_ID}},
};

/// Ports that Linux gives to no outgoing connection, and that hardly anyone has registered.
constexpr uint32_t kFirstPort = 20000, kPorts = 12000;
/// Ports are tried in turn: another job may have worked out the same one.
constexpr uint32_t kCandidates = 4;
constexpr uint32_t kAboveMasterPort = 1000;
constexpr uint32_t kFirstFreePort = 1024, kEndOfPorts = 65536;

class Reader {
 public:
  Reader(const Environment& environment, std::string_view group, Diagnostics& diagnostics)
      : environment_(environment), group_(group), diagnostics_(diagnostics) {}

  std::optional<LaunchedRank> read() {
    environment_.warn_of_unknown(diagnostics_);
    const Names* names = find_launcher();
    if (names == nullptr || !read_ranks(*names) || !read_place(*names)) return std::nullopt;
    const auto timeout = environment_.number(Variable::MSCCLC_TIMEOUT, diagnostics_);
    if (failed_ || !timeout) return std::nullopt;
    launch_.timeout = std::chrono::seconds(*timeout);
    return std::move(launch_);
  }

 private:
  bool has(Variable variable) const { return environment_.has(variable); }

  /// nullopt: not set, or wrong, which ends the reading.
  std::optional<uint32_t> number(Variable variable) {
    if (!has(variable)) return std::nullopt;
    const auto value = environment_.number(variable, diagnostics_);
    if (!value) failed_ = true;
    return value;
  }
  std::optional<std::string> text(Variable variable) {
    if (!has(variable)) return std::nullopt;
    auto value = environment_.text(variable, diagnostics_);
    if (!value) failed_ = true;
    return value;
  }

  const Names* find_launcher() {
    for (const Names& names : kLaunchers) {
      const bool rank = has(names.rank), size = has(names.size) || has(names.size_else);
      if (rank && size) return &names;
      if ((rank || size) && names.rank == Variable::MSCCLC_RANK) {
        diagnostics_.error("bad-variable", {},
                           rank ? "MSCCLC_RANK is set, but MSCCLC_WORLD_SIZE is not"
                                : "MSCCLC_WORLD_SIZE is set, but MSCCLC_RANK is not");
        return nullptr;
      }
    }
    diagnostics_.error("no-launcher", {}, "nothing says which rank this process is")
        .notes.push_back({"start it with torchrun, mpirun or srun, or set MSCCLC_RANK, "
                          "MSCCLC_WORLD_SIZE and MSCCLC_ID"});
    return nullptr;
  }

  bool read_ranks(const Names& names) {
    launch_.launcher = names.launcher;
    const Variable size_name = has(names.size) ? names.size : names.size_else;
    const auto rank = number(names.rank), size = number(size_name);
    launch_.local_rank = number(names.local_rank);
    if (failed_) return false;
    if (*rank >= *size) {
      diagnostics_.error(
          "bad-variable", {},
          fmt::format("{} is {}, but {} is {}: ranks are 0 to {}", info(names.rank).name, *rank,
                      info(size_name).name, *size, *size - 1));
      return false;
    }
    launch_.rank = *rank;
    launch_.size = *size;
    const auto here = names.local_size ? number(*names.local_size) : std::nullopt;
    const auto machines = names.machines ? number(*names.machines) : std::nullopt;
    launch_.one_machine = *size == 1 || here == size || machines == 1;
    return !failed_;
  }

  bool read_place(const Names& names) {
    if (has(Variable::MSCCLC_ID)) return read_id();
    const bool master =
        has(Variable::MASTER_ADDR) && (has(Variable::MASTER_PORT) || has(Variable::MSCCLC_PORT));
    if (!master && !launch_.one_machine && names.launcher != "Slurm") return no_place();
    read_secret(names);
    if (launch_.one_machine) {
      launch_.where.host = "127.0.0.1";
    } else if (master) {
      launch_.where.host = text(Variable::MASTER_ADDR).value_or("");
    } else {
      launch_.where.host = first_host(text(Variable::SLURM_STEP_NODELIST).value_or(""));
      if (!failed_ && launch_.where.host.empty()) return no_place();
    }
    read_ports();
    return !failed_;
  }

  bool read_id() {
    const auto value = text(Variable::MSCCLC_ID);
    const auto id = value ? UniqueId::parse(*value, diagnostics_) : std::nullopt;
    if (!id) return false;
    launch_.by_id = true;
    launch_.where = Rendezvous::of(*id);
    if (!group_.empty()) derive_secret(id->secret, "");
    return true;
  }

  /// From what only the job knows, if the user says it, and from what tells jobs apart.
  void read_secret(const Names& names) {
    const std::string key = text(Variable::MSCCLC_SECRET).value_or("");
    std::string job(names.launcher);
    for (const Variable variable : names.job) {
      job += fmt::format("\n{}={}", info(variable).name, text(variable).value_or(""));
    }
    derive_secret({reinterpret_cast<const uint8_t*>(key.data()), key.size()}, job);
  }

  void derive_secret(std::span<const uint8_t> key, const std::string& job) {
    const std::string message = fmt::format("mscclc job\n{}\n{}", group_, job);
    const Digest digest =
        hmac_sha256(key, {{reinterpret_cast<const uint8_t*>(message.data()), message.size()}});
    std::copy_n(digest.begin(), launch_.where.secret.size(), launch_.where.secret.begin());
  }

  void read_ports() {
    std::vector<uint16_t>& ports = launch_.where.ports;
    if (const auto port = number(Variable::MSCCLC_PORT)) {
      ports = {static_cast<uint16_t>(*port)};
      return;
    }
    const auto master = number(Variable::MASTER_PORT);
    // Secrets of jobs differ, so ports that are worked out from them do, mostly.
    const Secret& secret = launch_.where.secret;
    const uint32_t random = secret[0] << 8 | secret[1];
    for (uint32_t i = 0; i < kCandidates; ++i) {
      const uint32_t above = kAboveMasterPort * (i + 1);
      const uint32_t port = master ? *master + above : kFirstPort + (random + above) % kPorts;
      ports.push_back(
          static_cast<uint16_t>(port < kEndOfPorts ? port : kFirstFreePort + (port - kEndOfPorts)));
    }
  }

  bool no_place() {
    diagnostics_
        .error("no-rendezvous", {},
               fmt::format("{} says that this is rank {} of {}, but nothing says where the "
                           "ranks meet",
                           launch_.launcher, launch_.rank, launch_.size))
        .notes.push_back(
            {"set MASTER_ADDR and MASTER_PORT (with mpirun: -x MASTER_ADDR=… -x "
             "MASTER_PORT=…) to rank 0's machine and a free port there, or MSCCLC_ID"});
    return false;
  }

  const Environment& environment_;
  const std::string group_;
  Diagnostics& diagnostics_;
  LaunchedRank launch_;
  bool failed_ = false;
};

bool is_local_name(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

HubOptions hub_options(const LaunchedRank& launch) {
  HubOptions options{.secret = launch.where.secret,
                     .size = launch.size,
                     .rank = launch.rank,
                     .timeout = launch.timeout};
  if (!launch.by_id && !launch.one_machine && !is_local_name(launch.where.host)) {
    // The host's name may mean another address here than elsewhere.
    options.ports = launch.where.ports;
    return options;
  }
  const std::string host = launch.where.host == "localhost" ? "127.0.0.1" : launch.where.host;
  for (const uint16_t port : launch.where.ports) {
    if (const auto address = Address::parse(host, port)) options.addresses.push_back(*address);
  }
  return options;
}

}  // namespace

std::optional<LaunchedRank> read_launch(const Environment& environment, std::string_view group,
                                        Diagnostics& diagnostics) {
  return Reader(environment, group, diagnostics).read();
}

std::unique_ptr<Bootstrap> make_bootstrap(const LaunchedRank& launch, Diagnostics& diagnostics) {
  if (launch.rank != 0) {
    return join(launch.where, launch.rank, launch.size, launch.timeout, nullptr, diagnostics);
  }
  Diagnostics listening;
  std::unique_ptr<Hub> hub = Hub::start(hub_options(launch), listening);
  if (!hub) {
    Diagnostic error = listening.all().front();
    const bool taken = error.code == "cannot-listen";
    if (!taken || !launch.by_id) {
      if (taken) error.notes.push_back({"MSCCLC_PORT sets another port, for all ranks"});
      diagnostics.add(std::move(error));
      return nullptr;
    }
  }
  // Without a hub: whoever made the id serves it, and holds its port.
  Rendezvous where = launch.where;
  if (hub) where.host = hub->address().host(), where.ports = {hub->address().port()};
  auto bootstrap =
      join(where, launch.rank, launch.size, launch.timeout, std::move(hub), diagnostics);
  return bootstrap;
}

std::optional<HostOptions> read_host_options(const Environment& environment,
                                             Diagnostics& diagnostics) {
  environment.warn_of_unknown(diagnostics);
  const auto timeout = environment.number(Variable::MSCCLC_TIMEOUT, diagnostics);
  auto interface = environment.text(Variable::MSCCLC_SOCKET_IFNAME, diagnostics);
  const bool wrong = environment.has(Variable::MSCCLC_SOCKET_IFNAME) && !interface;
  if (!timeout || wrong) return std::nullopt;
  return HostOptions{.interface = std::move(interface).value_or(""),
                     .timeout = std::chrono::seconds(*timeout)};
}

std::string first_host(std::string_view list) {
  std::string out;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      out += list[i];
      continue;
    }
    const size_t end = std::min(list.find(']', i), list.size());
    out += list.substr(i + 1, list.find_first_of(",-]", i) - i - 1);
    i = end;
  }
  return out;
}

}  // namespace mscclc
