#include "tests/lsp/client.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

namespace mscclc::testing {

using Json = LspClient::Json;

LspClient::LspClient(const std::string& mscclc) {
  std::array<int, 2> in, out;
  if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) throw std::runtime_error("no pipe");
  child_ = ::fork();
  if (child_ == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
    ::execl(mscclc.c_str(), mscclc.c_str(), "lsp", "--stdio", nullptr);
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  ::signal(SIGPIPE, SIG_IGN);
}

LspClient::~LspClient() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    end();
  }
  ::close(from_);
}

int LspClient::end() {
  if (to_ >= 0) ::close(to_);
  to_ = -1;
  int status = 0;
  ::waitpid(child_, &status, 0);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string LspClient::framed(const Json& message) {
  const std::string text = message.dump();
  return fmt::format("Content-Length: {}\r\n\r\n{}", text.size(), text);
}

void LspClient::write(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::write(to_, bytes.data() + at, bytes.size() - at);
    if (count <= 0) return;
    at += static_cast<size_t>(count);
  }
}

bool LspClient::read_more() {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(from_, buffer.data(), buffer.size());
  if (count <= 0) return false;
  bytes_.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

Json LspClient::read() {
  size_t end;
  while ((end = bytes_.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more()) return nullptr;
  }
  const size_t length = std::stoul(bytes_.substr(bytes_.find(':') + 1));
  const size_t begin = end + 4;
  while (bytes_.size() < begin + length) {
    if (!read_more()) return nullptr;
  }
  const Json message = Json::parse(bytes_.substr(begin, length));
  bytes_.erase(0, begin + length);
  return message;
}

Json LspClient::request(const std::string& method, const Json& params) {
  const int id = ++last_id_;
  write(framed({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}));
  for (;;) {
    Json message = read();
    if (message.is_null()) throw std::runtime_error("no answer to " + method);
    if (!message.contains("method") && message["id"] == id) return message;
    kept_.push_back(std::move(message));
  }
}

void LspClient::notify(const std::string& method, const Json& params) {
  write(framed({{"jsonrpc", "2.0"}, {"method", method}, {"params", params}}));
}

Json LspClient::wait_for(const std::string& method) {
  for (;;) {
    const auto found = std::ranges::find_if(
        kept_, [&](const Json& message) { return message.value("method", "") == method; });
    if (found != kept_.end()) {
      Json params = (*found)["params"];
      kept_.erase(found);
      return params;
    }
    Json message = read();
    if (message.is_null()) return nullptr;
    kept_.push_back(std::move(message));
  }
}

}  // namespace mscclc::testing
