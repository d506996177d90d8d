// What a stream's options have to be, and which of them ranks compare.
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "device/device.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "plan/shard/cursor.h"
#include "session/stream/stream_options.h"

namespace sluice {
namespace {

using Change = std::function<void(StreamOptions*)>;

StreamOptions With(const Change& change) {
  StreamOptions options;
  change(&options);
  return options;
}

void ExpectRefused(const std::string& text, const Change& change) {
  EXPECT_THAT(CheckStreamOptions(With(change)), Fails(absl::StatusCode::kInvalidArgument, text));
}

TEST(StreamOptionsTest, GeneratorsThatCannotKeepTheirOrderAreRefused) {
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

TEST(StreamOptionsTest, AnIndexIsOfObjectsAndOfNoOtherFormat) {
  ExpectRefused("a generator has no objects", [](StreamOptions* o) { o->source.index = "{}"; });
  ExpectRefused("no format but \"index\"", [](StreamOptions* o) {
    o->source.uri = "file:/data";
    o->source.index = "{}";
    o->source.format = ItemFormat::kNpy;
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
              testing::HasSubstr("4 buffers of 4194305 batch_items are more than 16777216 items"));
}

TEST(StreamOptionsTest, EpochsAndCursorsAreBounded) {
  EXPECT_TRUE(CheckStreamOptions(With([](auto* o) { o->order.epochs = (1 << 24) - 1; })).ok());
  ExpectRefused("which is too many", [](auto* o) { o->order.epochs = 1 << 24; });
  ExpectRefused("the cursor is too long",
                [](auto* o) { o->order.cursor = std::string(Cursor::kBytesMax + 1, 'x'); });
}

TEST(StreamOptionsTest, BlocksAreShuffled) {
  ExpectRefused("order.shuffle_block_items goes with order.shuffle",
                [](auto* o) { o->order.shuffle_block_items = 4; });
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
  ExpectRefused("not a finite number", [](StreamOptions* options) {
    options->buffers.transform.emplace();
    options->buffers.transform->scale = INFINITY;
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
              testing::HasSubstr("kind 3, but the session uses cuda:0 (named)"));
}

}  // namespace
}  // namespace sluice
