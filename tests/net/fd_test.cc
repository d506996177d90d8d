// Descriptors with an owner: when they are closed, and what a forked child has of them.
#include "net/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "gtest/gtest.h"
#include "net/socket.h"

namespace sluice {
namespace {

int OpenDescriptors() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(FdTest, ClosesWithItsOwnerOnce) {
  const int before = OpenDescriptors();
  {
    Fd one(dup(0));
    Fd other = std::move(one);
    EXPECT_FALSE(one.is_open());  // NOLINT(bugprone-use-after-move): that is what it is about
    EXPECT_TRUE(IsOpen(other.get()));
    one = Fd(dup(0));
    EXPECT_EQ(OpenDescriptors(), before + 2);
    one = std::move(other);
    one.Close();
    one.Close();
  }
  EXPECT_EQ(OpenDescriptors(), before);
  errno = ENOENT;
  Fd(dup(0)).Close();
  EXPECT_EQ(errno, ENOENT);
}

// Both the copies of a child and those of a process that was started in another way end with it.
TEST(FdTest, AChildHasNoneAndHoldsNoConnection) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  Fd near(sockets[0]);
  const Fd far(sockets[1]);
  const int outside = fcntl(near.get(), F_DUPFD_CLOEXEC, 0);  // as a child that knows no Fd has it
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = !near.is_open() && !far.is_open() && !IsOpen(sockets[0]) &&
                       !IsOpen(sockets[1]) && Fd(dup(0)).is_open();
    close(ends[1]);
    char byte = 0;
    _exit(right && read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_TRUE(near.is_open() && IsOpen(sockets[0]));
  near.Close();
  char byte = 0;
  EXPECT_EQ(read(far.get(), &byte, 1), 0) << "the connection has ended, though copies are open";
  close(ends[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(outside);
}

TEST(FdTest, SocketsThatCannotBeLeaveNothingOpen) {
  const int before = OpenDescriptors();
  const char* call = nullptr;
  const SocketAddress nobodys = *MakeAddress("192.0.2.1", 0);
  EXPECT_FALSE(ListenAt(nobodys, 1, true, &call).is_open());
  EXPECT_EQ(errno, EADDRNOTAVAIL);
  EXPECT_STREQ(call, "bind");
  EXPECT_FALSE(ConnectTo(*MakeAddress("255.255.255.255", 1), &call).is_open());
  EXPECT_STREQ(call, "connect");
  {
    const Fd listener = ListenAt(*MakeAddress("::1", 0), 1, true, &call);
    if (!listener.is_open()) GTEST_SKIP() << "this host has no IPv6";
    const Fd held = ListenAt(AddressOfSocket(listener.get()), 1, true, &call);
    EXPECT_EQ(errno, EADDRINUSE);
    EXPECT_FALSE(held.is_open());
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

}  // namespace
}  // namespace sluice
