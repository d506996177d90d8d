// Transforms of images on their way through a stream: whole and in pieces, in batches, between
// ranks, and the ones that are refused.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "main/own_folder.h"
#include "session/stream/item_normalizer.h"
#include "session/world.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice {
namespace {

using session_test::Rank;
using session_test::RunRanks;
using stream_test::ForEachLease;
using stream_test::ShardDir;
using stream_test::WithStreams;
using testing::ElementsAre;

// Factors whose results are whole halves, so that f32 has them exactly.
ItemTransform ByChannels(std::vector<int64_t> shape) {
  ItemTransform transform;
  for (int64_t c = 0; c < shape.back(); ++c) {
    transform.channel_scale.push_back(0.5F * static_cast<float>(c + 1));
    transform.channel_bias.push_back(static_cast<float>(3 - c));
  }
  transform.shape = std::move(shape);
  return transform;
}

// What the byte at (y, x, c) of an item becomes.
float Expected(const ItemTransform& transform, int64_t item, int64_t y, int64_t x, int64_t c) {
  const auto channel = static_cast<size_t>(c);
  const bool by_channel = !transform.channel_scale.empty();
  const int64_t at = (y * transform.shape[1] + x) * transform.shape[2] + c;
  const auto byte = static_cast<float>(static_cast<uint8_t>(ShardDir::ByteOf(item, at)));
  return byte * (by_channel ? transform.channel_scale[channel] : transform.scale) +
         (by_channel ? transform.channel_bias[channel] : transform.bias);
}

void ExpectTransformed(const ItemTransform& transform, const TensorView& view, int64_t item) {
  const int64_t channels = transform.shape[2];
  const ItemCrop crop =
      transform.crop.value_or(ItemCrop{0, 0, transform.shape[0], transform.shape[1]});
  ASSERT_EQ(view.dtype, DType::kF32);
  if (transform.planar) {
    ASSERT_THAT(view.shape, ElementsAre(channels, crop.height, crop.width));
  } else {
    ASSERT_THAT(view.shape, ElementsAre(crop.height, crop.width, channels));
  }
  const auto* values = static_cast<const float*>(view.data);
  for (int64_t y = 0; y < crop.height; ++y) {
    for (int64_t x = 0; x < crop.width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t at = transform.planar ? (c * crop.height + y) * crop.width + x
                                            : (y * crop.width + x) * channels + c;
        ASSERT_EQ(values[at], Expected(transform, item, crop.top + y, crop.left + x, c))
            << "item " << item << " at " << y << ", " << x << ", " << c;
      }
    }
  }
}

void TakeTransformed(Stream* stream, const ItemTransform& transform, int64_t items) {
  int64_t taken = 0;
  ForEachLease(stream, [&](Lease& lease) {
    ASSERT_TRUE(lease.is_batch());
    ASSERT_EQ(lease.batch().shape[0], lease.items());
    for (int64_t i = 0; i < lease.items(); ++i) {
      ExpectTransformed(transform, lease.view(i), lease.item(i));
    }
    taken += lease.items();
  });
  EXPECT_EQ(taken, items);
}

TEST(StreamTransformTest, RandomShapesPiecesBatchesAndRanks) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto between = [&random](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
    };
    const std::vector<int64_t> shape = {between(1, 20), between(1, 30),
                                        random() % 2 == 0 ? 3 : between(1, 64)};
    ItemTransform transform = ByChannels(shape);
    transform.planar = random() % 2 == 0;
    if (random() % 3 == 0) {
      transform.channel_scale.clear();
      transform.channel_bias.clear();
      transform.scale = 0.5F;
    }
    if (random() % 2 == 0) {
      ItemCrop crop;
      crop.height = between(1, shape[0]);
      crop.width = between(1, shape[1]);
      crop.top = between(0, shape[0] - crop.height);
      crop.left = between(0, shape[1] - crop.width);
      transform.crop = crop;
    }
    const ShardDir dir(12, shape[0] * shape[1] * shape[2], 5);
    StreamOptions options = dir.Options();
    options.buffers.transform = transform;
    options.buffers.batch_items = between(1, 3);
    options.order.in_order = random() % 3 != 0;
    if (random() % 3 != 0) options.reads.piece_bytes = 64 * between(1, 20);
    const int ranks = random() % 3 == 0 ? 2 : 1;
    WithStreams(ranks, options,
                [&](int, Stream* stream) { TakeTransformed(stream, transform, dir.items()); });
  }
}

// Shapes that files say themselves. Images of two sizes, of which the same part is kept, are a
// batch.
TEST(StreamTransformTest, ShapesOfNpyFiles) {
  const OwnFolder folder;
  const std::string path = folder.path().string();
  const std::vector<std::vector<int64_t>> shapes = {{4, 5, 3}, {7, 3, 3}};
  for (size_t file = 0; file < shapes.size(); ++file) {
    const std::vector<int64_t>& s = shapes[file];
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, " +
                         std::to_string(s[0]) + ", " + std::to_string(s[1]) + ", " +
                         std::to_string(s[2]) + "), }";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream out(path + "/" + std::to_string(file) + ".npy", std::ios::binary);
    out << "\x93NUMPY" << '\x01' << '\0' << '\x76' << '\0' << header;
    for (int64_t i = 0; i < 2 * s[0] * s[1] * s[2]; ++i) out << static_cast<char>(i % 100);
  }
  StreamOptions options;
  options.source.uri = "buffered:" + path;
  options.source.format = ItemFormat::kNpy;
  options.buffers.batch_items = 4;
  ItemTransform transform = {.channel_scale = {1, 1, 2},
                             .channel_bias = {0, 0, 0},
                             .planar = true,
                             .crop = ItemCrop{1, 1, 2, 2}};
  options.buffers.transform = transform;
  WithStreams(1, options, [&](int, Stream* stream) {
    auto lease = stream->Next().value();
    ASSERT_EQ(lease.items(), 4);
    ASSERT_TRUE(lease.is_batch());
    ASSERT_THAT(lease.batch().shape, ElementsAre(4, 3, 2, 2));
    const auto* values = static_cast<const float*>(lease.batch().data);
    for (int64_t item = 0; item < 4; ++item) {
      const std::vector<int64_t>& s = shapes[static_cast<size_t>(item / 2)];
      for (int64_t c = 0; c < 3; ++c) {
        for (int64_t y = 1; y < 3; ++y) {
          for (int64_t x = 1; x < 3; ++x) {
            const int64_t at = ((item % 2 * s[0] + y) * s[1] + x) * s[2] + c;
            ASSERT_EQ(*values++, static_cast<float>(at % 100 * (c == 2 ? 2 : 1)));
          }
        }
      }
    }
  });
  // No format says that it is another image.
  RunRanks(1, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    const auto refused = [&](const char* text) {
      const absl::Status status = OpenStream(session.get(), options).status();
      EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, text));
    };
    options.buffers.transform->shape = {4, 5, 3};
    refused("of items of shape {4, 5, 3}, but there are some of {7, 3, 3}");
    options.buffers.transform->shape.clear();
    options.buffers.transform->crop = ItemCrop{3, 0, 2, 2};
    refused("reaches out of items of shape {4, 5, 3}");
    options.buffers.transform->crop = ItemCrop{0, 2, 2, 2};
    refused("reaches out of items of shape {7, 3, 3}");
    options.buffers.transform->crop.reset();
    options.buffers.transform->channel_scale = options.buffers.transform->channel_bias = {1, 2};
    refused("channel_scale is of 2 channels, but there are items of shape {4, 5, 3}");
  });
}

TEST(StreamTransformTest, WhatNoItemCouldHaveIsRefused) {
  const auto refused = [](const char* text, const std::function<void(ItemTransform*)>& change) {
    ItemTransform transform = ByChannels({6, 5, 3});
    change(&transform);
    EXPECT_THAT(CheckTransform(transform), Fails(absl::StatusCode::kInvalidArgument, text));
  };
  constexpr float kNaN = NAN;
  constexpr float kInfinity = INFINITY;
  refused("not a finite number", [](auto* t) { t->scale = kNaN; });
  refused("not a finite number", [](auto* t) { t->bias = -kInfinity; });
  refused("not a finite number", [](auto* t) { t->channel_scale[2] = kInfinity; });
  refused("channel_bias of 2", [](auto* t) { t->channel_bias.pop_back(); });
  refused("channel_bias of 0", [](auto* t) { t->channel_bias.clear(); });
  refused("65 channels; the most is 64", [](auto* t) { *t = ByChannels({6, 5, 65}); });
  refused("channel_scale is of 3 channels", [](auto* t) { t->shape = {6, 5, 4}; });
  refused("{height, width, channels}", [](auto* t) { t->shape = {30, 3}; });
  refused("{height, width, channels}", [](auto* t) { t->shape = {0, 5, 3}; });
  refused("{height, width, channels}", [](auto* t) {
    t->shape = {int64_t{1} << 40, int64_t{1} << 40, 3};
  });
  refused("at least 1", [](auto* t) { t->crop = ItemCrop{0, 0, 0, 1}; });
  refused("from at least 0", [](auto* t) { t->crop = ItemCrop{-1, 0, 1, 1}; });
  refused("reaches out", [](auto* t) { t->crop = ItemCrop{INT64_MAX, 0, 1, 1}; });
  refused("reaches out", [](auto* t) { t->crop = ItemCrop{1, 0, INT64_MAX, 1}; });
}

TEST(StreamTransformTest, ItemsThatAreNoImagesAreRefused) {
  const ShardDir dir(4, 90, 2);
  RunRanks(1, [&](Rank& self) {
    auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
    const auto refused = [&](const char* text, const ItemTransform& transform) {
      StreamOptions options = dir.Options();
      options.buffers.transform = transform;
      const absl::Status status = OpenStream(session.get(), options).status();
      EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, text));
    };
    refused("of items of shape {6, 6, 3}, but there are some of {90}", ByChannels({6, 6, 3}));
    ItemTransform flat = {.planar = true};
    refused("planar is of items {height, width, channels}, but there are some of shape {90}", flat);
    flat.planar = false;
    flat.crop = ItemCrop{0, 0, 1, 1};
    refused("crop is of items", flat);
    StreamOptions options;
    options.source.item_bytes = 90;
    options.source.generator_items = 4;
    options.source.sized_generator = [](int64_t, absl::Span<std::byte>) { return 7; };
    options.buffers.transform = ByChannels({6, 5, 3});
    EXPECT_THAT(std::string(OpenStream(session.get(), options).status().message()),
                testing::HasSubstr("items have no shape"));
  });
}

TEST(StreamTransformTest, RanksMustAgree) {
  const ShardDir dir(4, 90, 2);
  const std::vector<std::function<void(ItemTransform*)>> changes = {
      [](ItemTransform* t) { t->planar = true; }, [](ItemTransform* t) { t->channel_bias[1] += 1; },
      [](ItemTransform* t) {
        t->crop = ItemCrop{0, 0, 6, 5};
      },
      [](ItemTransform* t) { t->dst = DType::kBF16; }};
  for (const auto& change : changes) {
    RunRanks(2, [&](Rank& self) {
      auto session = Session::Create(std::move(self.fabric), SessionOptions()).value();
      StreamOptions options = dir.Options();
      options.buffers.transform = ByChannels({6, 5, 3});
      if (self.rank == 1) change(&*options.buffers.transform);
      EXPECT_TRUE(absl::IsFailedPrecondition(OpenStream(session.get(), options).status()));
    });
  }
}

TEST(StreamTransformTest, GeneratedImages) {
  StreamOptions options;
  options.source.item_bytes = 90;
  options.source.generator_items = 5;
  options.source.generator = [](int64_t item, absl::Span<std::byte> into) {
    for (size_t at = 0; at < into.size(); ++at) {
      into[at] = ShardDir::ByteOf(item, static_cast<int64_t>(at));
    }
    return absl::OkStatus();
  };
  ItemTransform transform = ByChannels({6, 5, 3});
  transform.planar = true;
  options.buffers.transform = transform;
  WithStreams(1, options, [&](int, Stream* stream) { TakeTransformed(stream, transform, 5); });
}

}  // namespace
}  // namespace sluice
