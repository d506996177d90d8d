// Members as processes of their own, which are killed and stopped.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/store/free_port.h"
#include "world/store/raw_client.h"
#include "world/store/store_tools.h"

extern char** environ;

namespace sluice {
namespace {

constexpr char kAddress[] = "STORE_TEST_ADDRESS";
constexpr char kLeaseMs[] = "STORE_TEST_LEASE_MS";
constexpr char kPipe[] = "STORE_TEST_PIPE";

// A process that runs one test of this program. Killed with its owner.
class Child {
 public:
  explicit Child(const std::string& test) {
    std::string program = "/proc/self/exe";
    std::string filter = "--gtest_filter=" + test;
    std::string all = "--gtest_also_run_disabled_tests";
    char* const arguments[] = {program.data(), filter.data(), all.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
  ~Child() {
    Signal(SIGKILL);
    int outcome = 0;
    waitpid(pid_, &outcome, 0);
  }
  void Signal(int signal) const { kill(pid_, signal); }

 private:
  pid_t pid_ = -1;
};

std::unique_ptr<Store> StoreOfParent() {
  auto store = ConnectStore(std::getenv(kAddress), Limit(absl::Minutes(2)));
  return store.ok() ? *std::move(store) : nullptr;
}

void AwaitMember(Store& store) {
  WatchUntil(store, "m/", [](const StoreView& view) { return Shows(view, "m/1", "here"); });
}

void AwaitItsEnd(Store& store) { AwaitNone(store, "m/"); }

class StoreProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv(kAddress, server_->address().c_str(), 1);
    setenv(kLeaseMs, "3600000", 1);
  }

  // Another server, of a process of its own, and a client of it.
  std::unique_ptr<Store> ReachChild(absl::Duration timeout) {
    const auto address = store_->Get("serves", absl::Minutes(2));
    EXPECT_TRUE(address.ok()) << address.status();
    auto store = ConnectStore(*address, Limit(timeout));
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  const FreePort kept_;  // that nobody else is given the port of a server that is started again
  std::unique_ptr<StoreServer> server_ = ServeAt("127.0.0.1", kept_.port());
  std::unique_ptr<Store> store_ = Reach(*server_);
};

// What the children run. They say what they are told of their lease, at last.
void HoldUntilLost(Store& store) {
  int64_t lease_ms = 0;
  ASSERT_TRUE(absl::SimpleAtoi(std::getenv(kLeaseMs), &lease_ms));
  const auto lease = store.Hold("m/1", "here", absl::Milliseconds(lease_ms)).value();
  while (lease->status().ok()) absl::SleepFor(absl::Milliseconds(10));
  const absl::Status lost = lease->status();
  absl::Status said;
  do {
    said = store.Set("lost", absl::StatusCodeToString(lost.code()));
  } while (absl::IsUnavailable(said));
}

TEST(StoreChild, DISABLED_Holds) {
  const auto store = StoreOfParent();
  ASSERT_NE(store, nullptr);
  HoldUntilLost(*store);
}

TEST(StoreChild, DISABLED_HoldsByBeats) {
  const auto store = MakeFiveCalls(StoreOfParent());
  HoldUntilLost(*store);
}

TEST(StoreChild, DISABLED_HoldsAndForks) {
  const auto store = StoreOfParent();
  ASSERT_NE(store, nullptr);
  int fd = -1;
  ASSERT_TRUE(absl::SimpleAtoi(std::getenv(kPipe), &fd));
  const auto lease = store->Hold("m/1", "here", absl::Hours(1)).value();
  const pid_t child = fork();
  if (child == 0) {
    // As a worker does that outlives its parent. Ends with the test.
    char byte = 0;
    _exit(read(fd, &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_TRUE(store->Set("forked", "1").ok());
  absl::SleepFor(absl::Hours(1));
}

TEST(StoreChild, DISABLED_Serves) {
  const auto server = Serve();
  const auto store = StoreOfParent();
  ASSERT_NE(store, nullptr);
  EXPECT_TRUE(store->Set("serves", server->address()).ok());
  absl::SleepFor(absl::Hours(1));
}

TEST_F(StoreProcessTest, AHolderThatIsKilledIsGoneAtOnce) {
  Child holder("StoreChild.DISABLED_Holds");
  AwaitMember(*store_);
  // Its lease lasts an hour: only the end of its connection can tell.
  holder.Signal(SIGKILL);
  AwaitItsEnd(*store_);
}

TEST_F(StoreProcessTest, AHolderIsGoneThoughAChildOfItLives) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, 0), 0);
  ASSERT_EQ(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
  setenv(kPipe, absl::StrCat(ends[0]).c_str(), 1);
  {
    Child holder("StoreChild.DISABLED_HoldsAndForks");
    close(ends[0]);
    EXPECT_TRUE(store_->Get("forked", absl::Minutes(2)).ok());
    AwaitMember(*store_);
    holder.Signal(SIGKILL);
    AwaitItsEnd(*store_);
  }
  close(ends[1]);
}

TEST_F(StoreProcessTest, AHolderThatIsStoppedIsGoneAfterItsLeaseAndIsTold) {
  setenv(kLeaseMs, "1000", 1);
  Child holder("StoreChild.DISABLED_Holds");
  AwaitMember(*store_);
  holder.Signal(SIGSTOP);
  AwaitItsEnd(*store_);
  holder.Signal(SIGCONT);
  const auto told = store_->Get("lost", absl::Minutes(2)).value();
  EXPECT_EQ(told, "ABORTED");
}

TEST_F(StoreProcessTest, BeatsOfAKilledHolderStop) {
  setenv(kLeaseMs, "1000", 1);
  const auto watcher = MakeFiveCalls(Reach(*server_));
  Child holder("StoreChild.DISABLED_HoldsByBeats");
  AwaitMember(*watcher);
  holder.Signal(SIGKILL);
  AwaitItsEnd(*watcher);
}

TEST_F(StoreProcessTest, AHolderByBeatsThatIsStoppedIsTold) {
  setenv(kLeaseMs, "1000", 1);
  const auto watcher = MakeFiveCalls(Reach(*server_));
  Child holder("StoreChild.DISABLED_HoldsByBeats");
  AwaitMember(*watcher);
  holder.Signal(SIGSTOP);
  AwaitItsEnd(*watcher);
  holder.Signal(SIGCONT);
  const auto told = store_->Get("lost", absl::Minutes(2)).value();
}

TEST_F(StoreProcessTest, AServerThatIsKilledIsUnavailableAtOnce) {
  Child server("StoreChild.DISABLED_Serves");
  const auto store = ReachChild(absl::Hours(1));
  EXPECT_TRUE(store->Set("a", "1").ok());
  server.Signal(SIGKILL);
  absl::Status status;
  do {
    status = store->Get("never", absl::Hours(1)).status();
  } while (status.ok());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST_F(StoreProcessTest, AServerThatIsStoppedIsUnavailableToHoldersAfterTheirLease) {
  Child server("StoreChild.DISABLED_Serves");
  const auto store = ReachChild(absl::Minutes(2));
  const auto lease = store->Hold("m/1", "here", absl::Seconds(1)).value();
  server.Signal(SIGSTOP);
  const absl::Status status = store->Get("never", absl::Hours(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::IsUnavailable(lease->status())) << lease->status();
}

TEST_F(StoreProcessTest, AForkedChildOfAServerDoesNotKeepItsPort) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    close(ends[1]);
    char byte = 0;
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(ends[0]);
  server_.reset();
  const absl::Status gone = store_->Get("a", absl::Minutes(2)).status();
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  server_ = ServeAt("127.0.0.1", kept_.port());
  EXPECT_TRUE(Serves(*server_));
  close(ends[1]);
  int outcome = 0;
  EXPECT_EQ(waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace sluice
