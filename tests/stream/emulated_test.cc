// Streams into the memory of an emulated device: bytes, counts, traces, awaiting.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "sluice/trace.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using stream_test::Every;
using stream_test::ForEachLease;
using stream_test::ShardDir;
using testing::HasSubstr;

// Runs `body` on each rank with a stream into an emulated device, and returns rank 0's trace.
std::string WithEmulated(int ranks, const StreamOptions& options, double bytes_per_s,
                         bool progress_thread, const std::function<void(Stream*)>& body) {
  std::string trace;
  RunRanks(ranks, [&](Rank& self) {
    SessionOptions session_options;
    session_options.accelerator = MakeEmulatedAccelerator(bytes_per_s);
    session_options.trace_events = 100'000;
    session_options.progress_thread = progress_thread;
    auto session = Session::Create(std::move(self.fabric), session_options).value();
    StreamOptions emulated = options;
    emulated.buffers.device = kEmulatedDevice;
    auto stream = OpenStream(session.get(), emulated).value();
    body(stream.get());
    self.meet();
    stream.reset();
    if (self.rank == 0) trace = ChromeTrace(*session->trace());
    EXPECT_TRUE(session->Close().ok());
  });
  return trace;
}

// It is host memory after all.
void ExpectItem(const ShardDir& dir, const Lease& lease, int64_t i) {
  TensorView view = lease.view(i);
  EXPECT_EQ(view.device, kEmulatedDevice);
  view.device = DeviceKind::kCpu;
  dir.Expect(view, lease.item(i));
}

TEST(EmulatedStream, ItemsAreCopiedAsTheyAre) {
  const ShardDir dir(60, 20'000, 7);
  for (const char* scheme : {"buffered:", "file:", "mmap:"}) {
    for (const bool progress_thread : {false, true}) {
      StreamOptions options = dir.Options(scheme);
      options.reads.piece_bytes = 8192;
      options.buffers.count = 3;
      options.buffers.batch_items = 2;
      const std::string trace = WithEmulated(2, options, 1e9, progress_thread, [&](Stream* stream) {
        std::vector<int64_t> items;
        ForEachLease(stream, [&](const Lease& lease) {
          for (int64_t i = 0; i < lease.items(); ++i) {
            ExpectItem(dir, lease, i);
            items.push_back(lease.item(i));
          }
        });
        EXPECT_EQ(items, Every(0, 1, 60));
        const StreamStats stats = stream->stats();
        EXPECT_EQ(stats.bytes_copied, 60 * 20'000);
        EXPECT_GT(stats.busy, absl::ZeroDuration());
      });
      EXPECT_THAT(trace, HasSubstr("emulated device buffer 2"));
      EXPECT_THAT(trace, testing::Not(HasSubstr(", device buffer")));
      EXPECT_THAT(trace, HasSubstr("device_copy"));
    }
  }
}

// A lease is there before its bytes are; to await it is to wait for them.
TEST(EmulatedStream, AConsumerMayAwaitInAStream) {
  const ShardDir dir(20, 50'000, 20);
  StreamOptions options = dir.Options();
  options.buffers.await_in_stream = true;
  WithEmulated(1, options, 50e6, false, [&](Stream* stream) {
    for (int64_t item = 0; item < 20; ++item) {
      auto lease = stream->Next().value();
      ASSERT_TRUE(lease.Await({}).ok());
      ExpectItem(dir, lease, 0);
      EXPECT_TRUE(lease.Release({}).ok());
    }
  });
}

// Spans of later epochs are counted instead of kept.
TEST(EmulatedStream, ATraceKeepsTheFirstEpochs) {
  const ShardDir dir(4, 1000, 4);
  StreamOptions options = dir.Options();
  options.order.epochs = 7;
  const auto take_all = [&](int64_t* left_out) {
    return [&dir, left_out](Stream* stream) {
      ForEachLease(stream, [&](const Lease& lease) { ExpectItem(dir, lease, 0); });
      *left_out = stream->stats().trace_left_out;
    };
  };
  int64_t left_out = 0;
  const std::string first = WithEmulated(1, options, 0, false, take_all(&left_out));
  EXPECT_THAT(first, HasSubstr("\"epoch\":4"));
  EXPECT_THAT(first, testing::Not(HasSubstr("\"epoch\":5")));
  // A wait, a read, a copy, an item and a lease for each item, and the epochs themselves.
  EXPECT_EQ(left_out, 2 * (4 * 5 + 1));
  options.trace_epochs = 7;
  EXPECT_THAT(WithEmulated(1, options, 0, false, take_all(&left_out)), HasSubstr("\"epoch\":6"));
  EXPECT_EQ(left_out, 0);
}

}  // namespace
}  // namespace sluice
