// Data shards into a fake GPU's memory, whole or normalised, taken by a consumer that works in a
// stream of its own.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "cuda/fake_world.h"
#include "device/copy_flat.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "session/job.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"

namespace sluice::session_test {
namespace {

using stream_test::ShardDir;

StreamOptions OnDevice(const ShardDir& dir) {
  StreamOptions options = dir.Options();
  options.buffers.device = DeviceKind::kCuda;
  options.buffers.count = 3;
  return options;
}

// Runs `body` on each rank with a stream into its GPU.
void WithStreams(int ranks, const StreamOptions& options,
                 const std::function<void(Rank&, Stream*)>& body) {
  RunRanksOnFakeGpus(ranks, ranks, FakeTransport::kMessages, [&](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    auto stream = OpenStream(session.get(), options).value();
    body(self, stream.get());
    self.meet();
    stream.reset();
    EXPECT_TRUE(session->Close().ok());
  });
}

// A view of the same on the host.
TensorView Fetch(Device* device, const TensorView& view, std::vector<std::byte>* memory) {
  int64_t bytes = DTypeBytes(view.dtype);
  for (const int64_t size : view.shape) bytes *= size;
  memory->resize(static_cast<size_t>(bytes));
  EXPECT_EQ(CopyFlat(device, static_cast<const std::byte*>(view.data), DeviceKind::kCuda,
                     memory->data(), DeviceKind::kCpu, memory->size()),
            absl::OkStatus());
  return DenseView(memory->data(), view.shape, view.dtype);
}

TEST(CudaDataStreamTest, ItemsAreInDeviceMemory) {
  const ShardDir dir(60, 10'000, 7);
  for (const int ranks : {1, 3}) {
    for (const bool exchange : {true, false}) {
      StreamOptions options = OnDevice(dir);
      options.reads.exchange = exchange;
      options.reads.piece_bytes = 4096;
      WithStreams(ranks, options, [&](Rank& self, Stream* stream) {
        const auto device = self.accelerator->OpenDevice();
        ASSERT_TRUE(device.ok());
        int64_t expected = 0;
        while (true) {
          auto lease = stream->Next().value();
          if (lease.end()) break;
          const TensorView view = lease.view();
          EXPECT_EQ(view.device, DeviceKind::kCuda);
          EXPECT_EQ(view.device_ordinal, self.rank);
          std::vector<std::byte> memory;
          dir.Expect(Fetch(device->get(), view, &memory), lease.item());
          EXPECT_EQ(lease.item(), expected++);
        }
        EXPECT_EQ(expected, dir.items());
      });
    }
  }
}

TEST(CudaDataStreamTest, NormalisesOnTheDevice) {
  const ShardDir dir(24, 3000, 5);
  StreamOptions options = OnDevice(dir);
  options.buffers.batch_items = 4;
  options.buffers.transform = ItemTransform{DType::kU8, DType::kF32, 0.5F, -3};
  WithStreams(1, options, [&](Rank& self, Stream* stream) {
    const auto device = self.accelerator->OpenDevice().value();
    int64_t batches = 0;
    while (true) {
      auto lease = stream->Next().value();
      if (lease.end()) break;
      ++batches;
      std::vector<std::byte> memory;
      const TensorView batch = Fetch(device.get(), lease.batch(), &memory);
      const auto* const values = reinterpret_cast<const float*>(memory.data());
      ASSERT_EQ(batch.dtype, DType::kF32);
      for (int64_t i = 0; i < lease.items(); ++i) {
        for (int64_t at = 0; at < dir.item_bytes(); ++at) {
          const auto byte = static_cast<float>(ShardDir::ByteOf(lease.item(i), at));
          ASSERT_EQ(values[i * dir.item_bytes() + at], byte * 0.5F - 3);
        }
      }
    }
    EXPECT_EQ(batches, 6);
  });
}

// In pieces that end within pixels, and of which the device makes planes.
TEST(CudaDataStreamTest, MakesPlanesOnTheDevice) {
  const ShardDir dir(24, 40 * 30 * 3, 5);
  StreamOptions options = OnDevice(dir);
  options.buffers.batch_items = 4;
  options.reads.piece_bytes = 640;
  ItemTransform transform = {.channel_scale = {0.5F, 1, 2},
                             .channel_bias = {-3, 0, 7},
                             .shape = {40, 30, 3},
                             .planar = true,
                             .crop = ItemCrop{3, 4, 30, 20}};
  options.buffers.transform = transform;
  for (const int ranks : {1, 2}) {
    WithStreams(ranks, options, [&](Rank& self, Stream* stream) {
      const auto device = self.accelerator->OpenDevice().value();
      int64_t items = 0;
      while (true) {
        auto lease = stream->Next().value();
        if (lease.end()) break;
        std::vector<std::byte> memory;
        const TensorView batch = Fetch(device.get(), lease.batch(), &memory);
        ASSERT_THAT(batch.shape, testing::ElementsAre(4, 3, 30, 20));
        const auto* values = reinterpret_cast<const float*>(memory.data());
        for (int64_t i = 0; i < lease.items(); ++i, ++items) {
          for (int64_t c = 0; c < 3; ++c) {
            for (int64_t pixel = 0; pixel < 30 * 20; ++pixel) {
              const int64_t at = ((3 + pixel / 20) * 30 + 4 + pixel % 20) * 3 + c;
              const auto byte = static_cast<float>(ShardDir::ByteOf(lease.item(i), at));
              ASSERT_EQ(*values++, byte * transform.channel_scale[static_cast<size_t>(c)] +
                                       transform.channel_bias[static_cast<size_t>(c)]);
            }
          }
        }
      }
      EXPECT_EQ(items, 24);
    });
  }
}

// The consumer never waits for the GPU: its kernels come after the copies, and copies into a buffer
// after its kernels.
TEST(CudaDataStreamTest, LeasesGoThroughStreams) {
  FakeCudaConfigure({.delay_us = 200});
  const ShardDir dir(80, 5000, 9);
  StreamOptions options = OnDevice(dir);
  options.buffers.await_in_stream = true;
  WithStreams(1, options, [&](Rank& self, Stream* stream) {
    ASSERT_EQ(cudaSetDevice(self.rank), cudaSuccess);
    const ScopedStream consumer;
    std::atomic<int64_t> wrong = 0;
    int64_t items = 0;
    while (true) {
      auto lease = stream->Next().value();
      if (lease.end()) break;
      ++items;
      ASSERT_TRUE(lease.Await({consumer.get()}).ok());
      const auto bytes = static_cast<size_t>(dir.item_bytes());
      void* const data = lease.view().data;
      const auto* const host = static_cast<std::byte*>(FakeCudaHostPointer(data, bytes));
      const int64_t item = lease.item();
      const cudaError_t launched =
          FakeCudaEnqueue(consumer.get(),
                          [host, item, bytes, &wrong] {
                            for (size_t at = 0; at < bytes; ++at) {
                              if (host[at] != ShardDir::ByteOf(item, static_cast<int64_t>(at)))
                                ++wrong;
                            }
                          },
                          {{data, bytes}});
      ASSERT_EQ(launched, cudaSuccess);
      const absl::Status released = lease.Release({consumer.get()});
      ASSERT_TRUE(released.ok()) << released;
    }
    EXPECT_EQ(items, dir.items());
    EXPECT_EQ(cudaStreamSynchronize(consumer.get()), cudaSuccess);
    EXPECT_EQ(wrong, 0);
  });
}

TEST(CudaDataStreamTest, TakesAnAccelerator) {
  const ShardDir dir(4, 100, 4);
  RunRanks(2, [&](Rank& self) {
    const auto session = OpenSession(self, SessionOptions());
    const auto stream = OpenStream(session.get(), OnDevice(dir));
    EXPECT_THAT(stream.status(), Fails(absl::StatusCode::kInvalidArgument, "accelerator"));
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
