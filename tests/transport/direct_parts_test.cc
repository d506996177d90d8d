// What direct copies are made of: queues and claims between threads, segments, copies by the
// kernel.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <latch>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "transport/direct/available_memory.h"
#include "transport/direct/direct_channel.h"
#include "transport/direct/direct_copy.h"
#include "transport/direct/process_memory.h"
#include "transport/direct/shared_segment.h"

namespace sluice {
namespace {

template <typename T>
std::unique_ptr<T> Zeroed() {
  return std::make_unique<T>();
}

TEST(DirectQueueTest, WordsComeInOrderThroughASmallQueue) {
  constexpr uint32_t kWords = 10000;
  const auto queue = Zeroed<DirectQueue>();
  std::thread sender([&queue] {
    DirectMessage message;
    for (message.op = 0; message.op < kWords;) {
      if (queue->Push(message)) {
        ++message.op;
      } else {
        std::this_thread::yield();
      }
    }
  });
  DirectMessage message;
  for (uint32_t next = 0; next < kWords;) {
    if (queue->Pop(&message)) {
      ASSERT_EQ(message.op, next++);
    } else {
      std::this_thread::yield();
    }
  }
  sender.join();
  EXPECT_FALSE(queue->Pop(&message));
}

TEST(DirectQueueTest, TakesNoMoreThanItHolds) {
  const auto queue = Zeroed<DirectQueue>();
  for (uint64_t i = 0; i < DirectQueue::kCapacity; ++i) EXPECT_TRUE(queue->Push({}));
  EXPECT_FALSE(queue->Push({}));
  DirectMessage message;
  EXPECT_TRUE(queue->Pop(&message));
  EXPECT_TRUE(queue->Push({}));
}

// Claims pieces until there are none, and writes its own mark on each.
void Work(DirectClaims* claims, std::vector<int>* pieces, int mark) {
  uint64_t piece = 0;
  while (claims->Claim(&piece)) {
    (*pieces)[piece] += mark;
    claims->Finish(1);
  }
}

TEST(DirectClaimsTest, EachPieceHasOneEnd) {
  constexpr uint64_t kPieces =
      100'000;  // so that both are at it for long, on a loaded machine, too
  const auto claims = Zeroed<DirectClaims>();
  for (int round = 0; round < 20; ++round) {
    EXPECT_FALSE(claims->used());
    std::vector<int> pieces(kPieces);
    claims->Begin(kPieces, 4096);
    std::latch both(2);
    std::thread other([&] {
      both.arrive_and_wait();
      Work(claims.get(), &pieces, 1);
    });
    both.arrive_and_wait();
    Work(claims.get(), &pieces, 2);
    other.join();
    EXPECT_TRUE(claims->Ended());
    EXPECT_EQ(claims->error(), 0);
    for (const int mark : pieces) ASSERT_TRUE(mark == 1 || mark == 2) << mark;
    EXPECT_TRUE(claims->used());
    claims->Release();
  }
}

// Failures of pieces that were claimed do not stand for others that are still being copied.
TEST(DirectClaimsTest, DoneRestCountsAsClaimed) {
  const auto claims = Zeroed<DirectClaims>();
  claims->Begin(12, 4096);
  uint64_t piece = 0;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(claims->Claim(&piece));
  EXPECT_EQ(claims->Close(), 8U);
  claims->FinishRest(4);
  for (int i = 0; i < 4; ++i) claims->Fail(ECANCELED);
  EXPECT_FALSE(claims->Ended());
  claims->Finish(4);
  EXPECT_TRUE(claims->Ended());
}

// The rest is for whoever has closed them, and is counted when it is done.
TEST(DirectClaimsTest, NobodyClaimsAfterTheyAreClosed) {
  constexpr uint64_t kPieces = 2000;
  for (int round = 0; round < 50; ++round) {
    const auto claims = Zeroed<DirectClaims>();
    std::vector<int> pieces(kPieces);
    claims->Begin(kPieces, 4096);
    std::thread other([&] { Work(claims.get(), &pieces, 1); });
    uint64_t piece = 0;
    for (int i = 0; i < 10 * round; ++i) {
      if (!claims->Claim(&piece)) break;
      pieces[piece] += 1;
      claims->Finish(1);
    }
    const uint64_t claimed = std::min(claims->Close(), kPieces);
    EXPECT_EQ(std::min(claims->Close(), kPieces), claimed) << "once more changes nothing";
    EXPECT_FALSE(claims->Claim(&piece));
    for (uint64_t i = claimed; i < kPieces; ++i) pieces[i] += 1;
    if (claimed < kPieces) {
      EXPECT_FALSE(claims->Ended());
      claims->Finish(kPieces - claimed);
    }
    other.join();
    EXPECT_TRUE(claims->Ended());
    EXPECT_EQ(std::accumulate(pieces.begin(), pieces.end(), 0), static_cast<int>(kPieces));
  }
}

TEST(DirectClaimsTest, AFailureEndsTheCopyOnceNobodyCopies) {
  const auto claims = Zeroed<DirectClaims>();
  claims->Begin(10, 4096);
  uint64_t first = 0;
  uint64_t second = 0;
  ASSERT_TRUE(claims->Claim(&first));
  ASSERT_TRUE(claims->Claim(&second));
  claims->Fail(EFAULT);
  EXPECT_FALSE(claims->Ended()) << "the other piece is being copied";
  EXPECT_FALSE(claims->Claim(&first));
  claims->Finish(1);
  EXPECT_TRUE(claims->Ended());
  EXPECT_EQ(claims->error(), EFAULT);
}

TEST(SharedSegmentTest, IsOneMappingInAProcessAndGoesWithItsUsers) {
  auto made = SharedSegment::Create(10000);
  ASSERT_TRUE(made.ok()) << made.status();
  const SharedSegmentName name = (*made)->name();
  struct stat info = {};
  ASSERT_EQ(fstat(name.fd, &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  (*made)->data()[9999] = std::byte{7};
  {
    const auto other = SharedSegment::Attach(name);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ((*other)->data(), (*made)->data());
  }
  made->reset();
  const absl::Status gone = SharedSegment::Attach(name).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(fcntl(name.fd, F_GETFD), 0) << "the descriptor is closed";
}

// A process that opens the descriptor could otherwise have another one die at its next access.
TEST(SharedSegmentTest, KeepsItsSize) {
  const auto made = SharedSegment::Create(10000);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::string path = absl::StrCat("/proc/self/fd/", (*made)->name().fd);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(ftruncate(fd, 20000), 0);
  close(fd);
  (*made)->data()[9999] = std::byte{7};
}

TEST(SharedSegmentTest, TakesItsPagesAtOnce) {
  const auto made = SharedSegment::Create(size_t{1} << 20);
  ASSERT_TRUE(made.ok()) << made.status();
  struct stat info = {};
  ASSERT_EQ(fstat((*made)->name().fd, &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  ASSERT_TRUE((*made)->Reserve().ok());
  ASSERT_EQ(fstat((*made)->name().fd, &info), 0);
  EXPECT_GE(info.st_blocks * 512, 1 << 20);
}

TEST(SharedSegmentTest, ASegmentIsNotShorterThanItsNameSays) {
  SharedSegmentName name;
  int said[2] = {-1, -1};
  ASSERT_EQ(pipe(said), 0);
  const pid_t other = fork();
  if (other == 0) {
    const auto made = SharedSegment::Create(4096);
    SharedSegmentName own = (*made)->name();
    own.bytes = 1 << 20;
    static_cast<void>(!write(said[1], &own, sizeof(own)));
    while (true) pause();
  }
  ASSERT_EQ(read(said[0], &name, sizeof(name)), static_cast<ssize_t>(sizeof(name)));
  const absl::Status status = SharedSegment::Attach(name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
}

TEST(AvailableMemoryTest, IsMoreThanNothingAndLessThanEverything) {
  EXPECT_GT(AvailableMemory(), uint64_t{1} << 20);
  EXPECT_LT(AvailableMemory(), uint64_t{1} << 60) << "/proc/meminfo says how much";
}

TEST(DirectRowsTest, ReachFromTheFirstByteBehindTheLast) {
  EXPECT_EQ((DirectRows{100, 0, 0}.Extent()), 100u);
  EXPECT_EQ((DirectRows{0, 10, 20}.Extent()), 0u);
  EXPECT_EQ((DirectRows{30, 10, 20}.Extent()), 50u);
  EXPECT_EQ((DirectRows{20, 10, uint64_t{1} << 63}.Extent()), (uint64_t{1} << 63) + 10);
  EXPECT_EQ((DirectRows{30, 10, uint64_t{1} << 63}.Extent()), ~uint64_t{0});
}

TEST(SharedSegmentTest, SaysWhatCannotBe) {
  SharedSegmentName name;
  name.pid = getppid();
  name.fd = 12345;
  name.bytes = 4096;
  const absl::Status status = SharedSegment::Attach(name).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find(absl::StrCat("process ", getppid())), std::string::npos);
  EXPECT_EQ(SharedSegment::Create(size_t{1} << 60).status().code(),
            absl::StatusCode::kResourceExhausted);
}

std::vector<std::byte> Pattern(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251);
  return data;
}

// Rows of one length into rows of another, in three cuts; and nothing between the rows.
void CheckRows(uint64_t bytes, const DirectRows& from, const DirectRows& to, bool write) {
  const auto span = [bytes](const DirectRows& rows) { return rows.OffsetOf(bytes - 1) + 1; };
  std::vector<std::byte> src = Pattern(span(from));
  std::vector<std::byte> dst(span(to), std::byte{0xEE});
  std::vector<std::byte> expected = dst;
  for (uint64_t i = 0; i < bytes; ++i) expected[to.OffsetOf(i)] = src[from.OffsetOf(i)];
  for (uint64_t begin = 0, end = 0; begin < bytes; begin = end) {
    end = std::min(bytes, begin + bytes / 3 + 1);
    const int error = write ? WriteProcessMemory(getpid(), reinterpret_cast<uint64_t>(dst.data()),
                                                 to, src.data(), from, begin, end)
                            : ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(src.data()),
                                                from, dst.data(), to, begin, end);
    ASSERT_EQ(error, 0);
  }
  EXPECT_EQ(dst, expected);
}

TEST(ProcessMemoryTest, CopiesRowsOfAnyLength) {
  for (const bool write : {false, true}) {
    CheckRows(100000, {100000, 0, 0}, {100000, 0, 0}, write);
    CheckRows(120000, {120000, 12, 40}, {120000, 0, 0}, write);
    CheckRows(120000, {120000, 0, 0}, {120000, 600, 601}, write);
    CheckRows(120000, {120000, 40, 41}, {120000, 60, 100}, write);
    CheckRows(7, {7, 7, 7}, {7, 1, 2}, write);
  }
}

TEST(ProcessMemoryTest, SaysWhatCannotBeReached) {
  std::vector<std::byte> memory(4096);
  const DirectRows rows = {memory.size(), 0, 0};
  EXPECT_EQ(ReadProcessMemory(getpid(), 0, rows, memory.data(), rows, 0, 4096), EFAULT);
  EXPECT_EQ(WriteProcessMemory(getpid(), 0, rows, memory.data(), rows, 0, 4096), EFAULT);
}

TEST(DirectPiecesTest, AreWholeRowsAndNotTooMany) {
  constexpr uint64_t kMiB = 1 << 20;
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{5000}, 300 * uint64_t{1000}, 8 * kMiB}) {
    for (const uint64_t row : {uint64_t{0}, uint64_t{256}, uint64_t{3000}, 2 * kMiB}) {
      const uint64_t piece = DirectPieceBytes({bytes, row, 2 * row}, {bytes, 0, 0});
      EXPECT_GE(piece, uint64_t{12} << 10);
      EXPECT_LE(piece, uint64_t{256} << 10);
      if (row > 0 && row < 4096) {
        EXPECT_EQ(piece % row, 0u);
      }
    }
  }
}

TEST(DirectPiecesTest, AnEndWithATurnFindsOneFrom32KiBOn) {
  for (const uint64_t kib : {32, 48, 64, 100, 256, 1024}) {
    const uint64_t bytes = kib << 10;
    for (const uint64_t row : {uint64_t{0}, uint64_t{1} << 10, uint64_t{3000}}) {
      EXPECT_LE(2 * DirectPieceBytes({bytes, row, 2 * row}, {bytes, 0, 0}), bytes) << bytes;
    }
  }
  EXPECT_GE(DirectPieceBytes({16 << 10, 0, 0}, {16 << 10, 0, 0}), uint64_t{16} << 10);
}

TEST(DirectPiecesTest, TheEndThatLooksUpFewerRowsCopies) {
  const DirectRows whole = {1 << 20, 0, 0};
  const DirectRows short_rows = {1 << 20, 1 << 10, 8 << 10};
  const DirectRows long_rows = {1 << 20, 16 << 10, 32 << 10};
  const DirectRows dense = {1 << 20, 1 << 10, 1 << 10};
  const DirectPlace nowhere_mapped = {0x1000, 0, short_rows};
  for (const DirectRows& other : {whole, dense, long_rows}) {
    EXPECT_TRUE(CostsMore(nowhere_mapped, {0x1000, 0, other}));
    EXPECT_FALSE(CostsMore({0x1000, 0, other}, nowhere_mapped));
  }
  // Of two alike neither waits for the other.
  EXPECT_FALSE(CostsMore(nowhere_mapped, nowhere_mapped));
  EXPECT_FALSE(CostsMore({0x1000, 0, whole}, {0x1000, 0, dense}));
  // The kernel is not asked about memory that is mapped.
  EXPECT_TRUE(CostsMore(nowhere_mapped, {0, 1, short_rows}));
  EXPECT_FALSE(CostsMore({0, 1, short_rows}, {0x1000, 0, whole}));
  // Long rows cost no more to look up than to copy.
  EXPECT_FALSE(CostsMore({0x1000, 0, long_rows}, {0x1000, 0, whole}));
  EXPECT_FALSE(CostsMore({0x1000, 0, {}}, {0x1000, 0, {}}));
  EXPECT_FALSE(CostsMore({0x1000, 0, {1, 1, 2}}, {0x1000, 0, {1, 0, 0}}));
}

}  // namespace
}  // namespace sluice
