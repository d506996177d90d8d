// Leases as DLPack tensors.
#include <dlpack/dlpack.h>

#include "gtest/gtest.h"
#include "sluice/stream.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice::stream_test {
namespace {

TEST(DlpackTest, HoldsTheLeaseUntilItIsDeleted) {
  const ShardDir dir(8, 1000, 3);
  WithStreams(1, dir.Options(), [&](int, Stream* stream) {
    // Both buffers of the stream.
    absl::StatusOr<Lease> first = stream->Next();
    absl::StatusOr<Lease> second = stream->Next();
    ASSERT_TRUE(first.ok() && second.ok());
    const auto made = ToDLPack(&*second).value();
    EXPECT_TRUE(second->end());
    EXPECT_EQ(stream->Next().status().code(), absl::StatusCode::kFailedPrecondition);
    const DLTensor& tensor = made->dl_tensor;
    EXPECT_EQ(tensor.device.device_type, kDLCPU);
    EXPECT_EQ(tensor.dtype.code, kDLUInt);
    EXPECT_EQ(tensor.dtype.bits, 8);
    ASSERT_EQ(tensor.ndim, 2);
    EXPECT_EQ(tensor.shape[0], 1);
    EXPECT_EQ(tensor.shape[1], 1000);
    EXPECT_EQ(tensor.strides[0], 1000);
    EXPECT_EQ(tensor.strides[1], 1);
    dir.Expect(DenseView(tensor.data, {1000}, DType::kU8), 1);
    made->deleter(made);
    EXPECT_TRUE(stream->Next().ok());
  });
}

TEST(DlpackTest, RefusesWhatIsNotThere) {
  const ShardDir dir(4, 100, 4);
  WithStreams(1, dir.Options(), [&](int, Stream* stream) {
    Lease none;
    EXPECT_EQ(ToDLPack(&none).status().code(), absl::StatusCode::kInvalidArgument);
    auto lease = stream->Next().value();
    EXPECT_EQ(ToDLPack(&lease, 1).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_FALSE(lease.end());  // kept
    const auto item = ToDLPack(&lease, 0).value();
    EXPECT_EQ(item->dl_tensor.ndim, 1);
    item->deleter(item);
  });
}

}  // namespace
}  // namespace sluice::stream_test
