// What a stream's options have to be, and which of them ranks compare.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/shard/cursor.h"
#include "session/stream/stream_options.h"

namespace sluice {
namespace {

using testing::HasSubstr;

using Change = std::function<void(StreamOptions*)>;

StreamOptions With(const Change& change) {
  StreamOptions options;
  change(&options);
  return options;
}

void ExpectRefused(const std::string& text, const Change& change) {
  const absl::Status status = CheckStreamOptions(With(change));
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << ": " << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

TEST(StreamOptionsTest, WhatIsOutOfRangeIsNamed) {
  EXPECT_TRUE(CheckStreamOptions(StreamOptions()).ok());
  ExpectRefused("epochs is 0 but must be at least 1", [](auto* o) { o->order.epochs = 0; });
  ExpectRefused("budget_bytes is 0", [](auto* o) { o->reads.budget_bytes = 0; });
  ExpectRefused("reads.slots is 0", [](auto* o) { o->reads.slots = 0; });
  ExpectRefused("reads.piece_bytes is 0", [](auto* o) { o->reads.piece_bytes = 0; });
  ExpectRefused("buffers.count is 0", [](auto* o) { o->buffers.count = 0; });
  ExpectRefused("batch_items is 0", [](auto* o) { o->buffers.batch_items = 0; });
  ExpectRefused("selection.first is -1", [](auto* o) { o->selection.first = -1; });
  ExpectRefused("selection.step is 0", [](auto* o) { o->selection.step = 0; });
  ExpectRefused("selection.end is -1", [](auto* o) { o->selection.end = -1; });
  ExpectRefused("retry.attempts_max is 0", [](auto* o) { o->reads.retry.attempts_max = 0; });
  ExpectRefused("source.connections is 0", [](auto* o) { o->source.connections = 0; });
  ExpectRefused("source.connections is 4097 but must be at most 4096",
                [](auto* o) { o->source.connections = 4097; });
  ExpectRefused("timeout must be above 0", [](auto* o) { o->timeout = absl::ZeroDuration(); });
  ExpectRefused("retry.request_timeout must be above 0",
                [](auto* o) { o->reads.retry.request_timeout = absl::Seconds(-1); });
}

TEST(StreamOptionsTest, GeneratorsThatCannotKeepTheirOrderAreRefused) {
  ExpectRefused("generate_ahead is 0", [](auto* o) { o->source.generate_ahead = 0; });
  ExpectRefused("generator_threads is 0", [](auto* o) { o->source.generator_threads = 0; });
  ExpectRefused("generator_threads is 257 but must be at most 256",
                [](auto* o) { o->source.generator_threads = 257; });
  ExpectRefused("both given", [](StreamOptions* o) {
    o->source.generator = [](int64_t, absl::Span<std::byte>) { return absl::OkStatus(); };
    o->source.sized_generator = [](int64_t, absl::Span<std::byte>) { return int64_t{0}; };
  });
  for (const GenerateOrder order : {GenerateOrder::kAfterUpdate, GenerateOrder::kOneAhead}) {
    ExpectRefused("generate_ahead is 2, but the generate_order", [order](StreamOptions* o) {
      o->source.generate_order = order;
      o->source.generate_ahead = 2;
    });
    ExpectRefused("hedges make an item twice", [order](StreamOptions* o) {
      o->source.generate_order = order;
      o->reads.hedge.enabled = true;
    });
  }
  ExpectRefused("buffers.count of at least 2", [](StreamOptions* o) {
    o->source.generate_order = GenerateOrder::kOneAhead;
    o->buffers.count = 1;
  });
  ExpectRefused("goes with scale and bias alone", [](StreamOptions* o) {
    o->source.sized_generator = [](int64_t, absl::Span<std::byte>) { return int64_t{0}; };
    o->buffers.transform.emplace();
    o->buffers.transform->planar = true;
  });
}

TEST(StreamOptionsTest, TheFirstOfSeveralIsNamed) {
  ExpectRefused("budget_bytes is 0", [](StreamOptions* options) {
    options->buffers.batch_items = 0;
    options->reads.budget_bytes = 0;
  });
}

TEST(StreamOptionsTest, ItemsInDeviceBuffersAreBounded) {
  const auto batches = [](int64_t items) {
    return With([items](StreamOptions* options) {
      options->buffers.count = 4;
      options->buffers.batch_items = items;
    });
  };
  EXPECT_TRUE(CheckStreamOptions(batches(int64_t{1} << 22)).ok());
  EXPECT_THAT(std::string(CheckStreamOptions(batches((int64_t{1} << 22) + 1)).message()),
              HasSubstr("4 buffers of 4194305 batch_items are more than 16777216 items"));
}

TEST(StreamOptionsTest, EpochsAndCursorsAreBounded) {
  EXPECT_TRUE(CheckStreamOptions(With([](auto* o) { o->order.epochs = (1 << 24) - 1; })).ok());
  ExpectRefused("which is too many", [](auto* o) { o->order.epochs = 1 << 24; });
  ExpectRefused("the cursor is too long",
                [](auto* o) { o->order.cursor = std::string(Cursor::kBytesMax + 1, 'x'); });
}

TEST(StreamOptionsTest, ATransformMustExist) {
  EXPECT_TRUE(CheckStreamOptions(With([](StreamOptions* options) {
                options->buffers.transform.emplace();
                options->buffers.transform->src = DType::kU8;
                options->buffers.transform->dst = DType::kF32;
              })).ok());
  ExpectRefused("no transform leads from f32 to u8", [](StreamOptions* options) {
    options->buffers.transform.emplace();
    options->buffers.transform->src = DType::kF32;
    options->buffers.transform->dst = DType::kU8;
  });
}

// Never asked for memory.
class NamedAccelerator final : public Accelerator {
 public:
  std::string description() const override { return "cuda:0 (named)"; }
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int32_t ordinal() const override { return 0; }
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    return absl::InternalError("none");
  }
  absl::Status CheckMemory(const void*, DeviceKind) const override { return absl::OkStatus(); }
  absl::Status CheckStream(StreamHandle) const override { return absl::OkStatus(); }
};

TEST(StreamOptionsTest, ItemsForADeviceNeedItsAccelerator) {
  const NamedAccelerator accelerator;
  StreamOptions options;
  EXPECT_TRUE(CheckStreamDevice(options, nullptr).ok());
  EXPECT_TRUE(CheckStreamDevice(options, &accelerator).ok());
  options.buffers.await_in_stream = true;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckStreamDevice(options, &accelerator)));
  options.buffers.device = DeviceKind::kCuda;
  EXPECT_TRUE(CheckStreamDevice(options, &accelerator).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckStreamDevice(options, nullptr)));
  options.buffers.device = DeviceKind::kCudaHost;
  EXPECT_THAT(std::string(CheckStreamDevice(options, &accelerator).message()),
              HasSubstr("kind 3, but the session uses cuda:0 (named)"));
}

TEST(StreamOptionsTest, TheHashIsOfWhatRanksMustShare) {
  const int64_t plain = HashOfStream(StreamOptions());
  EXPECT_EQ(HashOfStream(StreamOptions()), plain);
  const Change shared[] = {
      [](auto* o) { o->source.uri = "file:/x"; },
      [](auto* o) { o->source.format = ItemFormat::kNpy; },
      [](auto* o) { o->source.item_bytes = 4; },
      [](auto* o) { o->source.generator_items = 4; },
      [](auto* o) { o->source.generate_order = GenerateOrder::kOneAhead; },
      [](auto* o) { o->source.generate_ahead = 2; },
      [](auto* o) { o->source.generator_threads = 2; },
      [](StreamOptions* o) {
        o->source.sized_generator = [](int64_t, absl::Span<std::byte>) { return int64_t{0}; };
      },
      [](auto* o) { o->order.shuffle = true; },
      [](auto* o) { o->order.seed = 1; },
      [](auto* o) { o->order.epochs = 2; },
      [](auto* o) { o->reads.piece_bytes = 64; },
      [](auto* o) { o->reads.exchange = false; },
  };
  int index = 0;
  for (const Change& change : shared) EXPECT_NE(HashOfStream(With(change)), plain) << index++;
  const Change own[] = {
      [](auto* o) { o->reads.budget_bytes = 1; }, [](auto* o) { o->reads.slots = 3; },
      [](auto* o) { o->selection.first = 1; },    [](auto* o) { o->buffers.batch_items = 2; },
      [](auto* o) { o->order.in_order = false; }, [](auto* o) { o->order.cursor = "x"; },
  };
  index = 0;
  for (const Change& change : own) EXPECT_EQ(HashOfStream(With(change)), plain) << index++;
}

}  // namespace
}  // namespace sluice
