#include "tools/lsp/serve.h"

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <thread>

#include "tools/lsp/wire.h"

using namespace mscclc::lsp;

namespace {

struct Ended {
  int code;
  std::vector<Json> answers;
};

/// Runs a server that reads these bytes and then the end of the stream.
Ended served(const std::string& bytes) {
  std::array<int, 2> in, out;
  REQUIRE(::pipe(in.data()) == 0);
  REQUIRE(::pipe(out.data()) == 0);
  std::thread writer([&] {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t count = ::write(in[1], bytes.data() + at, bytes.size() - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    ::close(in[1]);
  });
  std::string answers;
  std::thread reader([&] {
    std::array<char, 4096> buffer;
    for (ssize_t count; (count = ::read(out[0], buffer.data(), buffer.size())) > 0;) {
      answers.append(buffer.data(), static_cast<size_t>(count));
    }
  });
  Ended ended{serve(in[0], out[1], {}), {}};
  ::close(out[1]);
  reader.join();
  writer.join();
  ::close(in[0]);
  ::close(out[0]);
  Wire wire;
  wire.feed(answers);
  for (std::string message; wire.next(message) == Wire::Got::message;) {
    ended.answers.push_back(Json::parse(message));
  }
  return ended;
}

std::string request(int id, const char* method) {
  return framed({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}});
}

}  // namespace

TEST_CASE("serve: from the beginning to the end of a session") {
  const Ended ended = served(request(1, "initialize") + request(2, "shutdown") +
                             framed({{"jsonrpc", "2.0"}, {"method", "exit"}}));
  CHECK(ended.code == 0);
  REQUIRE(ended.answers.size() == 2);
  CHECK(ended.answers[0]["id"] == 1);
  CHECK(ended.answers[1]["id"] == 2);
}

TEST_CASE("serve: the end of the stream ends the server") {
  CHECK(served("").code == 1);
  CHECK(served(request(1, "initialize")).code == 1);
}

TEST_CASE("serve: what is no header is answered, and ends the server") {
  const Ended ended = served(request(1, "initialize") + "nonsense\r\n\r\n");
  CHECK(ended.code == 1);
  REQUIRE(!ended.answers.empty());
  CHECK(ended.answers.back()["error"]["code"] == -32700);
}
