// Ranks that are processes, and that end properly or are killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "transport/tcp_end.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// A rank that is a process. `body` runs in it, with links that know rank 0's address.
class ChildRank {
 public:
  ChildRank(int rank, int size, const std::function<void(const std::shared_ptr<TcpLinks>&)>& body) {
    int to_child[2], to_parent[2];
    EXPECT_EQ(pipe(to_child), 0);
    EXPECT_EQ(pipe(to_parent), 0);
    pid_ = fork();
    if (pid_ == 0) {
      auto links = *TcpLinks::Listen(TcpTestOptions(rank, size));
      WriteText(to_parent[1], links->address());
      std::vector<std::string> addresses(static_cast<size_t>(size), "127.0.0.1:1");
      addresses[0] = ReadText(to_child[0]);
      if (!links->SetPeers(addresses).ok()) _exit(1);
      body(links);
      links = nullptr;
      _exit(0);
    }
    write_ = to_child[1];
    address_ = ReadText(to_parent[0]);
  }
  ~ChildRank() {
    Kill();
    close(write_);
  }
  const std::string& address() const { return address_; }
  void Tell(const std::string& address) { WriteText(write_, address); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  void AwaitEnd() {
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pid_ = 0;
  }

 private:
  static void WriteText(int fd, std::string text) {
    text.resize(100, ' ');
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  static std::string ReadText(int fd) {
    std::string text(100, ' ');
    EXPECT_EQ(read(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return text.substr(0, text.find(' '));
  }
  pid_t pid_ = 0;
  int write_ = -1;
  std::string address_;
};

// Rank 0 with a child for each other rank.
std::shared_ptr<TcpLinks> MeetChildren(const std::vector<std::unique_ptr<ChildRank>>& children) {
  auto links = *TcpLinks::Listen(TcpTestOptions(0, static_cast<int>(children.size()) + 1));
  std::vector<std::string> addresses = {links->address()};
  for (const auto& child : children) {
    addresses.push_back(child->address());
    child->Tell(links->address());
  }
  EXPECT_TRUE(links->SetPeers(addresses).ok());
  return links;
}

TEST(TcpProcessesTest, AKilledRankIsNamedAndItsOperationsFail) {
  const auto endless = [](const std::shared_ptr<TcpLinks>& links) {
    TcpEnd end(links);
    std::vector<std::byte> memory = Pattern(size_t{256} << 20, links->rank());
    end.Start({SendTo(0, memory, 1)});
    while (true) end.Poll();
  };
  std::vector<std::unique_ptr<ChildRank>> children;
  for (int rank = 1; rank < 3; ++rank) {
    children.push_back(std::make_unique<ChildRank>(rank, 3, endless));
  }
  const auto links = MeetChildren(children);
  TcpEnd end(links);
  std::vector<std::byte> one(size_t{256} << 20), other(size_t{256} << 20), unmet(100), small(10);
  end.Start({ReceiveFrom(1, one, 1), ReceiveFrom(2, other, 2), SendTo(1, unmet, 3),
             ReceiveFrom(1, small, 4, 9)});
  const std::byte sign = Pattern(1001, 1)[1000];
  EXPECT_TRUE(PollUntil({&end}, [&] { return one[1000] == sign; }));
  children[0]->Kill();
  EXPECT_TRUE(PollUntil({&end}, [&] { return !links->CheckRanks().ok(); }));
  const std::string message(links->CheckRanks().message());
  EXPECT_THAT(message, HasSubstr("rank 1 is lost"));
  EXPECT_THAT(message, testing::Not(HasSubstr("rank 2")));
  EXPECT_TRUE(PollUntil({&end}, [&] {
    return end.events.size() >= 3 && end.StatusOf(4).ok() == false &&
           !absl::IsNotFound(end.StatusOf(4));
  }));
  for (const uint64_t cookie : {1, 3, 4}) {
    EXPECT_THAT(end.StatusOf(cookie), Fails(absl::StatusCode::kUnavailable, "rank 1"));
  }
  // Later ones fail at once, and those with the other rank end well.
  end.Start({SendTo(1, unmet, 5)});
  EXPECT_TRUE(PollUntil(
      {&end}, [&] { return end.StatusOf(2).ok() && !absl::IsNotFound(end.StatusOf(5)); }));
  EXPECT_TRUE(absl::IsUnavailable(end.StatusOf(5))) << end.StatusOf(5);
  EXPECT_TRUE(other == Pattern(other.size(), 2));
  EXPECT_TRUE(PollUntil({&end}, [&] { return end.transport->Part(); }));
}

// As workers of data loaders are: they live on when their parent is killed.
TEST(TcpProcessesTest, AKilledRankIsLostAlthoughItHasForked) {
  int lives[2];
  ASSERT_EQ(pipe(lives), 0);
  std::vector<std::unique_ptr<ChildRank>> children;
  children.push_back(std::make_unique<ChildRank>(1, 2, [&](const std::shared_ptr<TcpLinks>& links) {
    close(lives[1]);
    links->Connect(0);
    while (!links->IsConnected(0)) links->Progress();
    if (fork() == 0) {
      char end = 0;
      static_cast<void>(!read(lives[0], &end, 1));
      _exit(0);
    }
    static_cast<void>(links->SendControl(0, 0, {std::byte{3}}));
    while (true) links->Progress();
  }));
  const auto links = MeetChildren(children);
  int src = -1;
  std::vector<std::byte> record;
  EXPECT_TRUE(PollAllUntil([] {}, [&] { return links->PollControl(0, &src, &record); }));
  children[0]->Kill();
  EXPECT_TRUE(PollAllUntil([] {}, [&] { return !links->CheckRanks().ok(); }));
  EXPECT_THAT(std::string(links->CheckRanks().message()), HasSubstr("rank 1 is lost"));
  close(lives[1]);
  close(lives[0]);
}

TEST(TcpProcessesTest, AProperEndOfAProcessIsNoFailure) {
  std::vector<std::unique_ptr<ChildRank>> children;
  children.push_back(std::make_unique<ChildRank>(1, 2, [](const std::shared_ptr<TcpLinks>& links) {
    TcpEnd end(links);
    std::vector<std::byte> memory = Pattern(3000000, 1);
    end.Start({SendTo(0, memory, 1)});
    while (end.events.empty()) end.Poll();
    EXPECT_TRUE(links->SendControl(0, 0, {std::byte{3}}).ok());
  }));
  const auto links = MeetChildren(children);
  TcpEnd end(links);
  std::vector<std::byte> received(3000000);
  end.Start({ReceiveFrom(1, received, 1)});
  EXPECT_TRUE(PollUntil({&end}, [&] { return links->HasLeft(1); }));
  children[0]->AwaitEnd();
  EXPECT_TRUE(end.StatusOf(1).ok()) << end.StatusOf(1);
  EXPECT_TRUE(received == Pattern(received.size(), 1));
  EXPECT_TRUE(links->CheckRanks().ok());
  int src = -1;
  std::vector<std::byte> record;
  EXPECT_TRUE(links->PollControl(0, &src, &record));
}

}  // namespace
}  // namespace sluice
