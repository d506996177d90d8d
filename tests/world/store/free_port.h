// A port of the loopback interface where nothing listens, and which no other process is given.
#ifndef SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_
#define SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_

#include <sys/socket.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "net/socket.h"

namespace sluice {

// Kept by a socket that does not listen: who connects is refused, and a server may listen there.
class FreePort {
 public:
  FreePort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    SetSocketOption(fd_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const SocketAddress at = *MakeAddress("127.0.0.1", 0);
    EXPECT_EQ(bind(fd_.get(), at.get(), at.length), 0);
  }

  int port() const { return AddressOfSocket(fd_.get()).port(); }
  // As of a store on `host`.
  std::string address(const std::string& host = "127.0.0.1") const {
    return absl::StrCat("tcp://", host, ":", port());
  }

 private:
  const Fd fd_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_FREE_PORT_H_
