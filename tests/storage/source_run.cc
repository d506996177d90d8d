// Guarded memory for reads, and the loop that waits for their events.
#include "storage/source_run.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int64_t kGuardBytes = kReadAlignment;
constexpr int kGuard = 0xA5;
constexpr int kPatience_ms = 60'000;  // for a machine that does other things, too

bool AllGuard(const std::byte* data, int64_t bytes) {
  return std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{kGuard}; });
}

// Cookies use all 64 bits, and come neither in order nor densely.
uint64_t CookieOf(uint64_t n) { return n % 2 == 0 ? n / 2 : ~(n / 2); }

}  // namespace

std::string SourceContent(uint64_t seed, int64_t bytes) {
  std::string content(static_cast<size_t>(bytes), '\0');
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (char& c : content) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  return content;
}

void SourceRun::Freer::operator()(std::byte* memory) const { std::free(memory); }

ReadOp SourceRun::Op(int object, int64_t offset, int64_t bytes) {
  const uint64_t cookie = CookieOf(next_++);
  Entry& entry = reads_[cookie];
  entry.room = ReadRoom(offset, bytes, source_->alignment());
  const int64_t total = (entry.room + 3 * kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  entry.memory.reset(static_cast<std::byte*>(
      std::aligned_alloc(static_cast<size_t>(kReadAlignment), static_cast<size_t>(total))));
  std::memset(entry.memory.get(), kGuard, static_cast<size_t>(total));
  entry.op = {.object = object,
              .offset = offset,
              .bytes = bytes,
              .data = entry.memory.get() + kGuardBytes,
              .cookie = cookie,
              .item = static_cast<int64_t>(next_ - 1)};
  return entry.op;
}

absl::Status SourceRun::Start(absl::Span<const ReadOp> ops) {
  // An event may come as soon as the source has heard of the read.
  absl::Status status = source_->Start(ops);
  if (!status.ok()) return status;
  for (const ReadOp& op : ops) reads_.at(op.cookie).started = true;
  outstanding_ += static_cast<int64_t>(ops.size());
  return status;
}

uint64_t SourceRun::Read(int object, int64_t offset, int64_t bytes) {
  const ReadOp op = Op(object, offset, bytes);
  EXPECT_EQ(Start(absl::MakeConstSpan(&op, 1)), absl::OkStatus());
  return op.cookie;
}

void SourceRun::Take(const ReadEvent& event) {
  const auto it = reads_.find(event.cookie);
  ASSERT_NE(it, reads_.end()) << "an event of a read that never was: " << event.cookie;
  Entry& entry = it->second;
  ASSERT_TRUE(entry.started) << "an event of a read that was refused";
  ASSERT_FALSE(entry.ended) << "a second event";
  entry.ended = true;
  entry.event = event;
  --outstanding_;
  if (!event.status.ok()) return;
  EXPECT_GE(event.skew, 0);
  EXPECT_LT(event.skew, source_->alignment());
  EXPECT_LE(event.skew + entry.op.bytes, entry.room);
}

int SourceRun::Poll(int events_max) {
  std::vector<ReadEvent> events(static_cast<size_t>(events_max));
  const absl::StatusOr<int> count = source_->Poll(absl::MakeSpan(events));
  if (!count.ok()) {
    ADD_FAILURE() << count.status();
    outstanding_ = 0;  // nothing will be heard of them
    return 0;
  }
  EXPECT_GE(*count, 0);
  EXPECT_LE(*count, events_max);
  for (int i = 0; i < *count; ++i) Take(events[static_cast<size_t>(i)]);
  return *count;
}

bool SourceRun::UntilEnded(int64_t outstanding_max) {
  while (outstanding_ > outstanding_max) {
    pollfd wait = {.fd = source_->ready_fd(), .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, kPatience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready != 1 || (wait.revents & POLLIN) == 0) {
      ADD_FAILURE() << "nothing to do, and " << outstanding_ << " reads outstanding";
      return false;
    }
    Poll(16);
    if (testing::Test::HasFatalFailure()) return false;
  }
  return true;
}

absl::string_view SourceRun::Bytes(uint64_t cookie) const {
  const Entry& entry = reads_.at(cookie);
  return absl::string_view(reinterpret_cast<const char*>(entry.op.data + entry.event.skew),
                           static_cast<size_t>(entry.op.bytes));
}

void SourceRun::ExpectBytes(uint64_t cookie, absl::string_view bytes) const {
  const Entry& entry = reads_.at(cookie);
  ASSERT_TRUE(entry.ended);
  ASSERT_TRUE(entry.event.status.ok()) << entry.event.status;
  // Not EXPECT_EQ: nobody wants to read a megabyte.
  EXPECT_TRUE(Bytes(cookie) == bytes) << "wrong bytes in " << entry.op.bytes << " at "
                                      << entry.op.offset << " of object " << entry.op.object;
}

void SourceRun::ExpectAll(absl::Span<const ReadOp> ops, absl::string_view content) const {
  for (const ReadOp& op : ops) {
    ExpectBytes(op.cookie,
                content.substr(static_cast<size_t>(op.offset), static_cast<size_t>(op.bytes)));
  }
}

void SourceRun::ExpectAll(absl::Span<const ReadOp> ops,
                          absl::Span<const std::string> contents) const {
  for (const ReadOp& op : ops) ExpectAll({&op, 1}, contents[static_cast<size_t>(op.object)]);
}

void SourceRun::ExpectGuards() const {
  for (const auto& [cookie, entry] : reads_) {
    EXPECT_TRUE(AllGuard(entry.memory.get(), kGuardBytes)) << "written before a read's memory";
    EXPECT_TRUE(AllGuard(entry.op.data + entry.room, kGuardBytes))
        << "written behind a read's memory of " << entry.room;
    if (entry.started) continue;
    EXPECT_TRUE(AllGuard(entry.op.data, entry.room)) << "refused, yet written";
  }
}

}  // namespace sluice
