// A port of the loopback interface where nothing listens, and which no other process is given.
#ifndef SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_
#define SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {

// Kept by a socket that does not listen: who connects is refused, and a server may listen there.
class FreePort {
 public:
  FreePort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
    socklen_t bytes = sizeof(at);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    port_ = ntohs(at.sin_port);
  }
  ~FreePort() { close(fd_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;

  int port() const { return port_; }
  // As of a store on `host`.
  std::string address(const std::string& host = "127.0.0.1") const {
    return absl::StrCat("tcp://", host, ":", port_);
  }

 private:
  int fd_;
  int port_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_
