// A socket by hand, for what no rank would say.
#ifndef SLUICE_TESTS_TRANSPORT_TCP_STRANGER_H_
#define SLUICE_TESTS_TRANSPORT_TCP_STRANGER_H_

#include <poll.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "net/address.h"
#include "net/socket.h"

namespace sluice {

class TcpStranger {
 public:
  // Connects to the last of the addresses.
  explicit TcpStranger(const std::string& address) {
    auto addresses = ParseAddresses(address);
    EXPECT_TRUE(addresses.ok()) << addresses.status();
    const char* call = nullptr;
    fd_ = ConnectTo(addresses->back(), &call);
    EXPECT_TRUE(fd_.is_open()) << call;
    pollfd ready = {fd_.get(), POLLOUT, 0};
    EXPECT_EQ(poll(&ready, 1, 60'000), 1);
    EXPECT_EQ(ConnectOutcome(fd_.get()), 0);
  }

  // False: it has been closed.
  bool Send(const void* data, size_t bytes) {
    return WriteSocket(fd_.get(), data, bytes) == static_cast<ssize_t>(bytes);
  }
  // Bytes read so far; -1 once it has been closed.
  ssize_t Read(void* data, size_t bytes) {
    while (read_ < bytes) {
      const ssize_t count =
          ReadSocket(fd_.get(), static_cast<std::byte*>(data) + read_, bytes - read_);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return -1;
      if (count < 0) break;
      read_ += static_cast<size_t>(count);
    }
    return static_cast<ssize_t>(read_);
  }
  // The next Read is of something else.
  void StartOver() { read_ = 0; }
  bool IsClosed() {
    char byte;
    const ssize_t count = ReadSocket(fd_.get(), &byte, 1);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }
  Fd Take() { return std::move(fd_); }

 private:
  Fd fd_;
  size_t read_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_TCP_STRANGER_H_
