#include "tools/lsp/wire.h"

#include <catch2/catch.hpp>
#include <vector>

using namespace mscclc::lsp;

namespace {

struct Read {
  std::vector<std::string> messages;
  bool broken = false;
  std::string error;
};

/// Feeds the bytes in pieces of a size.
Read read(const std::string& bytes, size_t piece) {
  Wire wire;
  Read out;
  for (size_t at = 0; at < bytes.size() && !out.broken; at += piece) {
    wire.feed(std::string_view(bytes).substr(at, piece));
    for (std::string message;;) {
      const Wire::Got got = wire.next(message);
      if (got == Wire::Got::message) out.messages.push_back(message);
      out.broken = got == Wire::Got::broken;
      if (got != Wire::Got::message) break;
    }
  }
  out.error = wire.error();
  return out;
}

}  // namespace

TEST_CASE("wire: messages come out as they went in, whatever the pieces") {
  const std::string bytes = framed(Json("a")) +
                            "content-length:  2\r\nContent-Type: x; charset=utf-8\r\n\r\n{}" +
                            framed(Json::array({1, 2})) + "Content-Length: 0\r\n\r\n";
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, bytes.size()}) {
    const Read got = read(bytes, piece);
    CHECK_FALSE(got.broken);
    CHECK(got.messages == std::vector<std::string>{"\"a\"", "{}", "[1,2]", ""});
  }
}

TEST_CASE("wire: half a message is none") {
  const std::string bytes = framed(Json("abc"));
  CHECK(read(bytes.substr(0, bytes.size() - 1), 3).messages.empty());
}

TEST_CASE("wire: what is no header breaks the stream, with a reason") {
  const std::pair<std::string, const char*> cases[] = {
      {"Content-Length: -1\r\n\r\n", "must be a number"},
      {"Content-Length: 1e3\r\n\r\n", "must be a number"},
      {"Content-Length: \r\n\r\n", "must be a number"},
      {"Content-Length: 99999999999999999999999\r\n\r\n", "must be a number"},
      {"Content-Length: 67108865\r\n\r\n", "must be a number"},
      {"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "must be a number"},
      {"Content-Type: x\r\n\r\n{}", "without Content-Length"},
      {"\r\n\r\n", "without Content-Length"},
      {"GET / HTTP/1.1\r\n\r\n", "without ':'"},
      {std::string(5000, 'a'), "more than 4096 bytes"},
  };
  for (const auto& [bytes, why] : cases) {
    const Read got = read(bytes, 100);
    INFO(bytes.substr(0, 60));
    CHECK(got.broken);
    CHECK(got.messages.empty());
    CHECK(got.error.find(why) != std::string::npos);
    CHECK(got.error.size() < 300);
  }
}
