// What a checkpoint call is given: what is refused, and what must be equal on all ranks.
#include <array>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/checkpoint/checkpoint_input.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CheckpointInputTest : public testing::Test {
 protected:
  // Half of 16 elements for each of two ranks; rank 1's in `at`.
  CheckpointTensor Half(const std::string& name, float* at) {
    CheckpointTensor tensor;
    tensor.name = name;
    tensor.shape = {16};
    tensor.layout = {*Mesh::Create({2}, {0, 1}), {Placement::Shard(0)}};
    tensor.view = DenseView(at, {8}, DType::kF32);
    return tensor;
  }
  CheckpointInput Look(const std::vector<CheckpointTensor>& tensors,
                       CheckpointFlow flow = CheckpointFlow::kLoad,
                       const CheckpointOptions& options = {}, const std::string& place = "/x") {
    return LookAtInput(flow, tensors, place, options, MemoryRules(), 1, 2);
  }
  void ExpectRefused(const std::string& text, const std::vector<CheckpointTensor>& tensors,
                     CheckpointFlow flow = CheckpointFlow::kLoad) {
    const CheckpointInput input = Look(tensors, flow);
    EXPECT_TRUE(absl::IsInvalidArgument(input.status)) << text << ": " << input.status;
    EXPECT_THAT(std::string(input.status.message()), HasSubstr(text));
  }

  std::array<float, 32> memory_{};
};

TEST_F(CheckpointInputTest, GoodTensorsAreBound) {
  const CheckpointInput input = Look({Half("a", &memory_[0]), Half("b", &memory_[8])});
  ASSERT_TRUE(input.status.ok()) << input.status;
  ASSERT_THAT(input.views, SizeIs(2));
  EXPECT_EQ(input.views[1].base, reinterpret_cast<std::byte*>(&memory_[8]));
  EXPECT_EQ(input.views[1].shape[0], 8);
}

TEST_F(CheckpointInputTest, BadTensorsAreNamed) {
  ExpectRefused("no tensors", {});
  ExpectRefused("a tensor has no name", {Half("", &memory_[0])});
  ExpectRefused("tensor 'a' is there twice", {Half("a", &memory_[0]), Half("a", &memory_[8])},
                CheckpointFlow::kSave);
  CheckpointTensor bad = Half("a", &memory_[0]);
  bad.layout.placements = {Placement::Partial(ReduceOp::kSum)};
  ExpectRefused("tensor 'a': placement P(sum)", {bad});
  bad = Half("a", &memory_[0]);
  bad.view.shape = {9};
  ExpectRefused("tensor 'a': ", {bad});
  bad = Half("a", &memory_[0]);
  bad.layout.mesh = *Mesh::Create({2}, {1, 2});
  EXPECT_FALSE(Look({bad}).status.ok()) << "there is no rank 2";
}

TEST_F(CheckpointInputTest, ALoadMayNotWriteOneByteTwice) {
  const std::vector<CheckpointTensor> tensors = {Half("a", &memory_[0]), Half("b", &memory_[4])};
  EXPECT_TRUE(absl::IsInvalidArgument(Look(tensors).status)) << Look(tensors).status;
  EXPECT_TRUE(Look(tensors, CheckpointFlow::kSave).status.ok());
}

TEST_F(CheckpointInputTest, ALoadMayHaveSeveralDestinationsOfOneName) {
  EXPECT_TRUE(Look({Half("a", &memory_[0]), Half("a", &memory_[8])}).status.ok());
  ExpectRefused("", {Half("a", &memory_[0]), Half("a", &memory_[4])});
}

TEST_F(CheckpointInputTest, BadOptionsComeFirst) {
  CheckpointOptions options;
  options.piece_bytes = 1;
  const CheckpointInput input = Look({}, CheckpointFlow::kLoad, options);
  EXPECT_THAT(std::string(input.status.message()), HasSubstr("piece_bytes is 1"));
  EXPECT_THAT(input.views, IsEmpty());
}

TEST_F(CheckpointInputTest, HashesAreOfWhatRanksMustShare) {
  const CheckpointTensor a = Half("a", &memory_[0]);
  const CheckpointInput plain = Look({a});
  CheckpointTensor other = Half("b", &memory_[0]);
  EXPECT_NE(Look({other}).tensors.names, plain.tensors.names);
  other = a;
  other.file_dtype = DType::kBF16;
  EXPECT_NE(Look({other}).tensors.all, plain.tensors.all);
  EXPECT_EQ(Look({Half("a", &memory_[8])}).tensors.all, plain.tensors.all);
  EXPECT_EQ(Look({other}).call, plain.call);
  const auto call = [&](auto CheckpointOptions::*option, int64_t value) {
    CheckpointOptions options;
    options.*option = value;
    return Look({a}, CheckpointFlow::kLoad, options).call;
  };
  EXPECT_EQ(call(&CheckpointOptions::budget_bytes, 5), plain.call);
  EXPECT_EQ(call(&CheckpointOptions::slots, 1), plain.call);
  EXPECT_NE(call(&CheckpointOptions::piece_bytes, 64), plain.call);
  EXPECT_NE(call(&CheckpointOptions::shard_bytes_max, 64), plain.call);
  EXPECT_NE(Look({a}, CheckpointFlow::kLoad, {}, "/y").call, plain.call);
}

}  // namespace
}  // namespace sluice
