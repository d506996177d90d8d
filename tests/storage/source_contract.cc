// What every source must do while all goes well.
#include "storage/source_contract.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <random>

#include "session/heap_bytes.h"
#include "storage/source_run.h"

namespace sluice {
namespace {

constexpr int64_t kKiB = 1024;

}  // namespace

bool SourceContract::Make(const std::vector<ContractObject>& objects, int in_flight_max) {
  objects_ = objects;
  absl::StatusOr<ContractSource> made = GetParam().make(objects, in_flight_max);
  if (!made.ok()) {
    if (absl::IsUnavailable(made.status())) {
      [&] { GTEST_SKIP() << made.status(); }();
    } else {
      ADD_FAILURE() << made.status();
    }
    return false;
  }
  made_ = *std::move(made);
  return true;
}

bool SourceContract::MakeOfSizes(const std::vector<int64_t>& sizes, int in_flight_max) {
  std::vector<ContractObject> objects;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".bin";
    objects.push_back({.name = name, .content = SourceContent(i + 1, sizes[i])});
  }
  return Make(objects, in_flight_max);
}

absl::string_view SourceContract::Content(int object) const {
  return *objects_[static_cast<size_t>(object)].content;
}

absl::string_view SourceContract::Range(int object, int64_t offset, int64_t bytes) const {
  return Content(object).substr(static_cast<size_t>(offset), static_cast<size_t>(bytes));
}

namespace {

TEST_P(SourceContract, HasANameAndAnAlignment) {
  if (!MakeOfSizes({1})) return;
  EXPECT_FALSE(source().name().empty());
  const int64_t alignment = source().alignment();
  EXPECT_GE(alignment, 1);
  EXPECT_LE(alignment, kReadAlignment);
  EXPECT_EQ(alignment & (alignment - 1), 0) << "no power of two";
}

TEST_P(SourceContract, ReadsRangesOfAnySizeAnywhere) {
  constexpr int64_t kBytes = 700'001;
  if (!MakeOfSizes({kBytes})) return;
  SourceRun run(&source());
  for (const int64_t bytes : {1L, 2L, 511L, 512L, 513L, 4095L, 4096L, 4097L, 100'000L, kBytes}) {
    for (const int64_t offset : {0L, 1L, 511L, 512L, 4095L, 4096L, 4097L, kBytes - bytes}) {
      if (offset + bytes > kBytes) continue;
      const uint64_t cookie = run.Read(0, offset, bytes);
      if (!run.UntilAllEnded()) return;
      run.ExpectBytes(cookie, Range(0, offset, bytes));
    }
  }
  run.ExpectGuards();
}

TEST_P(SourceContract, ReadsLargeRanges) {
  constexpr int64_t kBytes = 5 * 1024 * kKiB + 7;
  if (!MakeOfSizes({kBytes})) return;
  SourceRun run(&source());
  const uint64_t whole = run.Read(0, 0, kBytes);
  const uint64_t part = run.Read(0, 4097, kBytes - 5000);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(whole, Content(0));
  run.ExpectBytes(part, Range(0, 4097, kBytes - 5000));
  run.ExpectGuards();
}

// All at once and in batches, beyond what the source has in flight and within.
TEST_P(SourceContract, GivesOneEventToEachOfMany) {
  for (const int in_flight_max : {1, 7, 300}) {
    const std::vector<int64_t> sizes = {300'000, 1, 70'000, 4096, 9999};
    if (!MakeOfSizes(sizes, in_flight_max)) return;
    SourceRun run(&source());
    std::mt19937_64 random(static_cast<uint64_t>(in_flight_max));
    std::vector<ReadOp> ops;
    for (int i = 0; i < 256; ++i) {
      const auto object = static_cast<int>(random() % sizes.size());
      const int64_t size = sizes[static_cast<size_t>(object)];
      const auto offset = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
      const auto bytes =
          1 + static_cast<int64_t>(random() %
                                   static_cast<uint64_t>(std::min<int64_t>(size - offset, 20'000)));
      ops.push_back(run.Op(object, offset, bytes));
    }
    const absl::Span<const ReadOp> all = ops;
    ASSERT_TRUE(run.Start(all.first(200)).ok());
    run.Poll(3);
    ASSERT_TRUE(run.Start(all.subspan(200, 40)).ok());
    ASSERT_TRUE(run.Start({}).ok());
    for (size_t i = 240; i < 256; ++i)
      if (!run.Finish(all.subspan(i, 1))) return;
    for (const ReadOp& op : ops) run.ExpectBytes(op.cookie, Range(op.object, op.offset, op.bytes));
    EXPECT_EQ(run.Poll(300), 0) << "more events than reads";
    run.ExpectGuards();
  }
}

TEST_P(SourceContract, GivesNoMoreEventsThanThereIsRoomFor) {
  if (!MakeOfSizes({100 * kKiB})) return;
  SourceRun run(&source());
  for (int i = 0; i < 20; ++i) run.Read(0, i * 5 * kKiB, 5 * kKiB);
  EXPECT_EQ(run.Poll(0), 0);
  // Poll checks that at most one comes; that the others are not lost shows in the end.
  for (int i = 0; i < 10; ++i) run.Poll(1);
  run.UntilAllEnded();
}

TEST_P(SourceContract, UsesCookiesAgain) {
  if (!MakeOfSizes({64 * kKiB})) return;
  SourceRun run(&source());
  const uint64_t first = run.Read(0, 0, 1000);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(first, Range(0, 0, 1000));
  ReadOp again = run.Op(0, 777, 1000);
  SourceRun second(&source());
  again = second.Op(0, 777, 1000);
  ASSERT_EQ(again.cookie, first);
  ASSERT_TRUE(second.Start(absl::MakeConstSpan(&again, 1)).ok());
  if (!second.UntilAllEnded()) return;
  second.ExpectBytes(first, Range(0, 777, 1000));
}

// Whoever sleeps on the descriptor does not spin once all is done.
TEST_P(SourceContract, DescriptorGoesQuiet) {
  if (!MakeOfSizes({64 * kKiB})) return;
  SourceRun run(&source());
  for (int i = 0; i < 8; ++i) run.Read(0, i * 1000, 1000);
  if (!run.UntilAllEnded()) return;
  pollfd wait = {.fd = source().ready_fd(), .events = POLLIN, .revents = 0};
  int polls = 0;
  for (; polls < 100 && poll(&wait, 1, 0) == 1; ++polls) EXPECT_EQ(run.Poll(8), 0);
  EXPECT_LT(polls, 100);
  // And wakes up again.
  const uint64_t cookie = run.Read(0, 0, 10);
  if (!run.UntilAllEnded()) return;
  run.ExpectBytes(cookie, Range(0, 0, 10));
}

TEST_P(SourceContract, OpensEachObjectOnce) {
  if (!MakeOfSizes({50'000, 60'000, 70'000, 1})) return;
  EXPECT_EQ(source().counters().opens, 0);
  SourceRun run(&source());
  for (int round = 0; round < 3; ++round) {
    std::vector<ReadOp> ops;
    for (int i = 0; i < 48; ++i) ops.push_back(run.Op(i % 3, i * 1000, 1000));
    if (!run.Finish(ops)) return;
    for (const ReadOp& op : ops) run.ExpectBytes(op.cookie, Range(op.object, op.offset, op.bytes));
  }
  EXPECT_EQ(source().counters().opens, 3) << "nobody has asked for the fourth";
}

TEST_P(SourceContract, CountsWhatItAskedFor) {
  if (!MakeOfSizes({200'000})) return;
  SourceRun run(&source());
  int64_t bytes = 0;
  int64_t room = 0;
  for (int i = 0; i < 20; ++i) {
    run.Read(0, i * 7000, 5000 + i);
    bytes += 5000 + i;
    room += ReadRoom(i * 7000, 5000 + i, source().alignment());
  }
  if (!run.UntilAllEnded()) return;
  EXPECT_GE(source().counters().requests, 20);
  EXPECT_GE(source().counters().bytes_read, bytes);
  EXPECT_LE(source().counters().bytes_read, room);
}

TEST_P(SourceContract, AllocatesNothingOnceWarm) {
  constexpr size_t kReads = 40;
  constexpr int64_t kBytes = 10'000;
  if (!MakeOfSizes({kReads * kBytes, kReads * kBytes}, 16)) return;
  const int64_t room = ReadRoom(1, kBytes, kReadAlignment) + kReadAlignment;
  const size_t all = kReads * static_cast<size_t>(room);
  const std::unique_ptr<void, void (*)(void*)> memory(
      std::aligned_alloc(static_cast<size_t>(kReadAlignment), all), std::free);
  std::vector<ReadOp> ops(kReads);
  for (size_t i = 0; i < kReads; ++i) {
    ops[i] = {.object = static_cast<int>(i % 2),
              .offset = static_cast<int64_t>(i) * 9000,
              .bytes = kBytes,
              .data = static_cast<std::byte*>(memory.get()) + i * static_cast<size_t>(room),
              .cookie = i};
  }
  std::vector<ReadEvent> events(8);
  // Of the quietest round: a connection that breaks is opened again, and what broke has a message.
  int64_t allocations = std::numeric_limits<int64_t>::max();
  for (int round = 0; round < 6 && allocations > 0; ++round) {
    const int64_t before = session_test::AllocationCount();
    ASSERT_TRUE(source().Start(ops).ok());
    size_t ended = 0;
    while (ended < kReads) {
      pollfd wait = {.fd = source().ready_fd(), .events = POLLIN, .revents = 0};
      ASSERT_NE(poll(&wait, 1, 60'000), 0);
      const auto count = source().Poll(absl::MakeSpan(events)).value();
      for (int i = 0; i < count; ++i) ASSERT_TRUE(events[static_cast<size_t>(i)].status.ok());
      ended += static_cast<size_t>(count);
    }
    allocations = std::min(allocations, session_test::AllocationCount() - before);
  }
  EXPECT_EQ(allocations, 0);
}

}  // namespace

// A program that has no such source on this machine is no error.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SourceContract);

}  // namespace sluice
