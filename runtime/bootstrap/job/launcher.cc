#include "runtime/bootstrap/job/launcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/bootstrap/job/launchers.h"
#include "runtime/support/address/address.h"
#include "runtime/support/sha256.h"

namespace mscclc {
namespace {

/// Ports that Linux gives to no outgoing connection, and that hardly anyone has registered.
constexpr uint32_t kFirstPort = 20000, kPorts = 12000;
/// Ports are tried in turn: another job may have worked out the same one.
constexpr uint32_t kCandidates = 4;
constexpr uint32_t kAboveMasterPort = 1000;
constexpr uint32_t kFirstFreePort = 1024, kEndOfPorts = 65536;

HostOptions options_to_meet(const Environment& environment, Diagnostics& wrong) {
  Diagnostics none;
  const auto usual = read_host_options(Environment(Environment::Values{}), none);
  return read_host_options(environment, wrong).value_or(*usual);
}

class Reader {
 public:
  Reader(const Environment& environment, std::string_view group, Diagnostics& diagnostics)
      : environment_(environment), group_(group), diagnostics_(diagnostics) {}

  std::optional<LaunchedRank> read() {
    const LauncherNames* names = find_launcher();
    if (names == nullptr || !read_ranks(*names) || !read_place(*names)) return std::nullopt;
    if (failed_) return std::nullopt;
    const HostOptions options = options_to_meet(environment_, launch_.wrong);
    launch_.timeout = options.timeout;
    launch_.silence = options.silence;
    if (!launch_.where.host.empty())
      launch_.where.announced_at = kFirstPort + random_of_secret() % kPorts;
    warn_of_secret();
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

  const LauncherNames* find_launcher() {
    for (const LauncherNames& names : kLaunchers) {
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

  bool read_ranks(const LauncherNames& names) {
    launch_.launcher = names.launcher;
    launch_.by_environment = true;
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

  bool read_place(const LauncherNames& names) {
    if (has(Variable::MSCCLC_ID)) return read_id();
    const bool master = has(Variable::MASTER_ADDR);
    const bool port = has(Variable::MASTER_PORT) || has(Variable::MSCCLC_PORT);
    const bool slurm = names.launcher == "Slurm";  // ports can be worked out from its numbers
    if (!launch_.one_machine && !slurm && !(master && port)) return no_place();
    read_secret(names);
    launch_.where.local = true;
    if (launch_.one_machine) return !failed_;
    if (master) {
      launch_.where.host = text(Variable::MASTER_ADDR).value_or("");
    } else {
      launch_.where.host = first_host(text(Variable::SLURM_STEP_NODELIST).value_or(""));
      if (!failed_ && launch_.where.host.empty()) return no_place();
    }
    read_ports();
    return !failed_;
  }

  bool read_id() {
    const auto id = UniqueId::of_variable(environment_, diagnostics_);
    if (!id) return false;
    launch_.by_id = true;
    launch_.where = Rendezvous::of(*id);
    launch_.where.local = true;
    if (!group_.empty()) derive_secret(id->secret, "");
    return true;
  }

  /// From what only the job knows, if the user says it, and from what distinguishes jobs.
  void read_secret(const LauncherNames& names) {
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

  uint32_t random_of_secret() const {
    const Secret& secret = launch_.where.secret;
    return secret[0] << 8 | secret[1];
  }

  void read_ports() {
    std::vector<uint16_t>& ports = launch_.where.ports;
    if (const auto port = number(Variable::MSCCLC_PORT)) {
      ports = {static_cast<uint16_t>(*port)};
      return;
    }
    const auto master = number(Variable::MASTER_PORT);
    // Secrets of jobs differ, so ports that are worked out from them do, mostly.
    const uint32_t random = random_of_secret();
    for (uint32_t i = 0; i < kCandidates; ++i) {
      const uint32_t above = kAboveMasterPort * (i + 1);
      const uint32_t port = master ? *master + above : kFirstPort + (random + above) % kPorts;
      ports.push_back(
          static_cast<uint16_t>(port < kEndOfPorts ? port : kFirstFreePort + (port - kEndOfPorts)));
    }
  }

  void warn_of_secret() {
    if (launch_.by_id || launch_.one_machine || launch_.rank != 0) return;
    if (has(Variable::MSCCLC_SECRET)) return;
    diagnostics_.warning(
        "guessable-secret", {},
        "the ranks of this job may run on several machines and know each other by what its "
        "launcher says, which others on the network may guess: set MSCCLC_SECRET to something "
        "random, the same for all ranks, or MSCCLC_ID");
  }

  bool no_place() {
    const bool master = has(Variable::MASTER_ADDR);
    diagnostics_
        .error("no-rendezvous", {},
               fmt::format("{} says that this is rank {} of {}, but nothing says {} the ranks meet",
                           launch_.launcher, launch_.rank, launch_.size,
                           master ? "at which port of MASTER_ADDR" : "where"))
        .notes.push_back(
            {master ? "set MASTER_PORT (with mpirun: -x MASTER_PORT=…) to a free port there"
                    : "set MASTER_ADDR and MASTER_PORT (with mpirun: -x MASTER_ADDR=… -x "
                      "MASTER_PORT=…) to rank 0's machine and a free port there, or MSCCLC_ID"});
    return false;
  }

  const Environment& environment_;
  const std::string group_;
  Diagnostics& diagnostics_;
  LaunchedRank launch_;
  bool failed_ = false;
};

}  // namespace

std::optional<LaunchedRank> read_launch(const Environment& environment, std::string_view group,
                                        Diagnostics& diagnostics) {
  return Reader(environment, group, diagnostics).read();
}

std::optional<LaunchedRank> read_launch(std::string_view group, Diagnostics& diagnostics) {
  return read_launch(Environment::of_process(), group, diagnostics);
}

std::optional<HostOptions> read_host_options(const Environment& environment,
                                             Diagnostics& diagnostics) {
  const auto timeout = environment.timeout(diagnostics);
  auto interface = environment.text(Variable::MSCCLC_SOCKET_IFNAME, diagnostics);
  const bool wrong = environment.has(Variable::MSCCLC_SOCKET_IFNAME) && !interface;
  const auto family = socket_family(environment, diagnostics);
  const auto silence = environment.number(Variable::MSCCLC_SILENCE, diagnostics);
  if (!timeout || !silence || !family || wrong) return std::nullopt;
  return HostOptions{.interface = std::move(interface).value_or(""),
                     .family = *family,
                     .timeout = *timeout,
                     .silence = std::chrono::seconds(*silence)};
}

std::optional<HostOptions> read_host_options(Diagnostics& diagnostics) {
  return read_host_options(Environment::of_process(), diagnostics);
}

HostOptions host_options_to_meet(Diagnostics& wrong) {
  return options_to_meet(Environment::of_process(), wrong);
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
