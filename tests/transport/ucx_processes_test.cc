// Ranks over UCX that are processes: one that is killed, one that is stopped, and what a rank holds
// of messages that it has not asked for.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/exit_code.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "transport/ucx/ucx_worker.h"
#include "transport/ucx_settings.h"

extern char** environ;

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{400};
constexpr size_t kLargeBytes = size_t{64} << 20;
enum Tag : int { kGoTag, kStartedTag, kToChildTag, kFromChildTag, kUnmetTag, kSilentTag };

void WriteAll(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(fd, at, bytes);
    if (count <= 0) return;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
}

bool ReadAll(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = read(fd, at, bytes);
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

void WriteText(int fd, const std::string& text) {
  const size_t bytes = text.size();
  WriteAll(fd, &bytes, sizeof(bytes));
  WriteAll(fd, text.data(), bytes);
}

std::string ReadText(int fd) {
  size_t bytes = 0;
  if (!ReadAll(fd, &bytes, sizeof(bytes))) return "";
  std::string text(bytes, '\0');
  return ReadAll(fd, text.data(), bytes) ? text : "";
}

// A rank, and its one transport.
struct Rank {
  std::shared_ptr<UcxWorker> worker;
  std::unique_ptr<Transport> transport;
  std::vector<TransportEvent> events;

  void Poll() {
    std::vector<TransportEvent> some(8);
    const auto count = transport->Poll(absl::MakeSpan(some));
    ASSERT_TRUE(count.ok()) << count.status();
    for (int n = 0; n < *count; ++n) events.push_back(some[static_cast<size_t>(n)]);
  }
  const TransportEvent* EventOf(uint64_t cookie) const {
    for (const TransportEvent& event : events) {
      if (event.cookie == cookie) return &event;
    }
    return nullptr;
  }
  void Until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      Poll();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "stuck";
      std::this_thread::yield();
    }
  }
  void UntilEnded(uint64_t cookie) {
    Until([this, cookie] { return EventOf(cookie) != nullptr; });
  }
};

absl::Status Meet(Rank& rank, int own, int in, int out) {
  auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
  if (!worker.ok()) return worker.status();
  rank.worker = *std::move(worker);
  WriteText(out, rank.worker->address());
  std::vector<std::string> addresses(2, rank.worker->address());
  addresses[static_cast<size_t>(1 - own)] = ReadText(in);
  if (absl::Status status = rank.worker->SetPeers(own, addresses); !status.ok()) return status;
  auto transport = rank.worker->OpenTransport(0);
  if (!transport.ok()) return transport.status();
  rank.transport = *std::move(transport);
  return rank.transport->Reserve(4096);
}

TransportOp Op(TransportOp::Kind kind, int peer, int tag, std::vector<std::byte>& data,
               uint64_t cookie) {
  return {kind, peer, tag, data.data(), data.size(), cookie};
}
constexpr auto kSend = TransportOp::Kind::kSend;
constexpr auto kReceive = TransportOp::Kind::kReceive;

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// --- The child, which is rank 1.

// Starts to receive and to send, says so, and never ends.
void HoldForEver(Rank& rank) {
  std::vector<std::byte> word(1);
  std::vector<std::byte> in(kLargeBytes);
  std::vector<std::byte> out(kLargeBytes);
  const TransportOp ops[] = {Op(kReceive, 0, kToChildTag, in, 1),
                             Op(kSend, 0, kFromChildTag, out, 2),
                             Op(kSend, 0, kStartedTag, word, 3)};
  if (!rank.transport->Start(ops).ok()) return;
  while (true) rank.Poll();
}

// Says by how much it has grown with messages that it has not asked for.
void MeasureForEver(Rank& rank) {
  std::vector<std::byte> word(1);
  for (uint64_t word_number : {1, 2}) {
    if (!rank.transport->Start({Op(kReceive, 0, kGoTag, word, word_number)}).ok()) return;
    if (word_number == 2) break;
    rank.UntilEnded(word_number);
  }
  const int64_t before = ResidentBytes();
  rank.UntilEnded(2);
  // They are on their way no longer, if they ever were.
  for (int look = 0; look < 20000; ++look) rank.Poll();
  const int64_t grown = ResidentBytes() - before;
  WriteAll(STDOUT_FILENO, &grown, sizeof(grown));
  while (true) rank.Poll();
}

int RunChild(const std::string& what) {
  Rank rank;
  if (const absl::Status status = Meet(rank, 1, STDIN_FILENO, STDOUT_FILENO); !status.ok()) {
    std::fprintf(stderr, "child: %s\n", status.ToString().c_str());
    return 1;
  }
  if (what == "hold") HoldForEver(rank);
  if (what == "measure") MeasureForEver(rank);
  return 1;
}

// --- The parent, which is rank 0.

class UcxProcessesTest : public testing::TestWithParam<UcxSettings> {
 protected:
  void SetUp() override {
    ApplyUcxSettings(GetParam());
    if (const std::string why = WhyNoUcx(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override {
    EndChild();
    for (const int fd : {to_child_, from_child_}) {
      if (fd >= 0) close(fd);
    }
  }

  void StartChild(const char* what) {
    int in[2];
    int out[2];
    ASSERT_EQ(pipe(in), 0);
    ASSERT_EQ(pipe(out), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    std::string program = "/proc/self/exe";
    std::string flag = "child";
    std::string mode = what;
    char* const arguments[] = {program.data(), flag.data(), mode.data(), nullptr};
    ASSERT_EQ(posix_spawn(&child_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_child_ = in[1];
    from_child_ = out[0];
    const absl::Status status = Meet(rank_, 0, from_child_, to_child_);
    ASSERT_TRUE(status.ok()) << status;
  }

  void EndChild() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(std::exchange(child_, -1), nullptr, 0);
  }

  Rank rank_;
  pid_t child_ = -1;
  int to_child_ = -1;
  int from_child_ = -1;
};

TEST_P(UcxProcessesTest, NamesARankThatIsKilled) {
  StartChild("hold");
  std::vector<std::byte> word(1);
  std::vector<std::byte> in(kLargeBytes);
  std::vector<std::byte> out(kLargeBytes);
  const TransportOp ops[] = {Op(kReceive, 1, kStartedTag, word, 1),
                             Op(kReceive, 1, kFromChildTag, in, 2),
                             Op(kSend, 1, kToChildTag, out, 3), Op(kSend, 1, kUnmetTag, out, 4),
                             Op(kReceive, 1, kSilentTag, word, 5)};
  ASSERT_TRUE(rank_.transport->Start(ops).ok());
  rank_.UntilEnded(1);
  EndChild();
  // All end, also those that were in the middle.
  rank_.Until([this] { return rank_.transport->outstanding() == 0; });
  for (const uint64_t cookie : {uint64_t{4}, uint64_t{5}}) {
    const TransportEvent* const event = rank_.EventOf(cookie);
    ASSERT_NE(event, nullptr);
    EXPECT_THAT(event->status,
                Fails(absl::StatusCode::kUnavailable, "rank 1 is not reached by rank 0"));
  }
  for (const uint64_t cookie : {uint64_t{2}, uint64_t{3}}) {
    const TransportEvent* const event = rank_.EventOf(cookie);
    ASSERT_NE(event, nullptr);
    EXPECT_TRUE(event->status.ok() || absl::IsUnavailable(event->status)) << event->status;
  }
  EXPECT_TRUE(absl::IsUnavailable(rank_.worker->CheckRanks()));
  EXPECT_TRUE(rank_.transport->Part());  // nobody lives that would have to hear it
}

// Neither what is asked of it nor the end waits for a rank that does nothing.
TEST_P(UcxProcessesTest, ARankThatIsStoppedHoldsNobodyUp) {
  StartChild("hold");
  std::vector<std::byte> word(1);
  auto memory = std::make_shared<std::vector<std::byte>>(kLargeBytes);
  ASSERT_TRUE(rank_.transport->Start({Op(kReceive, 1, kStartedTag, word, 1)}).ok());
  rank_.UntilEnded(1);
  kill(child_, SIGSTOP);
  const TransportOp ops[] = {Op(kReceive, 1, kFromChildTag, *memory, 2),
                             Op(kSend, 1, kUnmetTag, *memory, 3),
                             Op(kReceive, 1, kSilentTag, *memory, 4)};
  ASSERT_TRUE(rank_.transport->Start(ops).ok());
  for (int look = 0; look < 100; ++look) rank_.Poll();
  rank_.transport->Withdraw();
  rank_.UntilEnded(4);
  EXPECT_EQ(rank_.EventOf(4)->status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(rank_.transport->Part());
  rank_.transport->KeepUntilOver(std::exchange(memory, nullptr));
  rank_.transport = nullptr;
  rank_.worker = nullptr;
}

// More than sockets hold by themselves: a copy of all of it would be seen.
TEST_P(UcxProcessesTest, AReceiverHoldsNothingThatItHasNotAskedFor) {
  constexpr int kSmall = 2000;
  constexpr int kLarge = 100;
  StartChild("measure");
  std::vector<std::byte> word(1);
  std::vector<std::byte> small(size_t{16} << 10);
  std::vector<std::byte> large(size_t{1} << 20);
  ASSERT_TRUE(rank_.transport->Start({Op(kSend, 1, kGoTag, word, 1)}).ok());
  rank_.UntilEnded(1);
  for (int n = 0; n < kSmall; ++n) {
    ASSERT_TRUE(rank_.transport->Start({Op(kSend, 1, kUnmetTag, small, 100)}).ok());
  }
  for (int n = 0; n < kLarge; ++n) {
    ASSERT_TRUE(rank_.transport->Start({Op(kSend, 1, kSilentTag, large, 100)}).ok());
  }
  ASSERT_TRUE(rank_.transport->Start({Op(kSend, 1, kGoTag, word, 2)}).ok());
  rank_.UntilEnded(2);
  int64_t grown = -1;
  EXPECT_TRUE(ReadAll(from_child_, &grown, sizeof(grown)));
  EXPECT_EQ(rank_.EventOf(100), nullptr);
  EXPECT_EQ(rank_.transport->outstanding(), kSmall + kLarge);
  // All of it would be 130 MB. The address sanitizer keeps books of its own.
  EXPECT_LT(grown, int64_t{oracle::kSanitized ? 16 : 4} << 20);
  RecordProperty("grown", static_cast<int>(grown));
  std::printf("the receiver has grown by %lld bytes\n", static_cast<long long>(grown));
}

INSTANTIATE_TEST_SUITE_P(Ucx, UcxProcessesTest,
                         testing::Values(UcxSettings{"tcp", ""}, UcxSettings{"tcp,cma", ""},
                                         UcxSettings{"tcp", "1"}, UcxSettings{"tcp", "inf"}));

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "child") return sluice::RunChild(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return sluice::ExitCode(RUN_ALL_TESTS());
}
