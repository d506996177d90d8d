// Where tensors go in the files of a checkpoint, what these are called, and how they are read.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/checkpoint/checkpoint_layout.h"
#include "session/checkpoint/checkpoint_limits.h"
#include "session/checkpoint/checkpoint_names.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

CheckpointTensor Tensor(const std::string& name, int64_t elements) {
  CheckpointTensor tensor;
  tensor.name = name;
  tensor.shape = {elements};
  tensor.layout = {*Mesh::Create({1}, {0}), {Placement::Replicate()}};
  return tensor;
}

TEST(CheckpointNamesTest, ShardsAreNumberedFromOne) {
  EXPECT_EQ(ShardName("", 0, 3), "model-00001-of-00003.safetensors");
  EXPECT_EQ(ShardName("", 122999, 123456), "model-123000-of-123456.safetensors");
  EXPECT_EQ(ShardName("0a1b2c3d", 2, 3), "model-0a1b2c3d-00003-of-00003.safetensors");
}

TEST(CheckpointNamesTest, ShardNamesAreKnownAgain) {
  for (const char* name :
       {"model-00001-of-00003.safetensors", "model-123000-of-123456.safetensors",
        "model-0a1B-00003-of-00003.safetensors", "model-12345-00001-of-00002.safetensors"}) {
    EXPECT_TRUE(IsShardName(name)) << name;
  }
  for (const char* name :
       {"", "model.safetensors", "model-00001-of-00003", "model-0001-of-00003.safetensors",
        "model-00001-of-0003.safetensors", "model--00001-of-00003.safetensors",
        "model-xyz-00001-of-00003.safetensors", "model-0a-1b-00001-of-00003.safetensors",
        "other-00001-of-00003.safetensors", "model-00001-of-00003.safetensors.tmp",
        "model-0000100003.safetensors", "model-of-00003.safetensors"}) {
    EXPECT_FALSE(IsShardName(name)) << name;
  }
}

TEST(CheckpointNamesTest, APlaceMayBeOneFile) {
  struct Case {
    SourceAddress given;
    const char* place;
    const char* file;
  };
  for (const Case& one : std::vector<Case>{
           {{"file", "/data/a.safetensors"}, "/data", "a.safetensors"},
           {{"mmap", "/a.safetensors"}, "/", "a.safetensors"},
           {{"file", "a.safetensors"}, ".", "a.safetensors"},
           {{"file", "/data"}, "/data", ""},
           {{"file", "/data.safetensors/"}, "/data.safetensors/", ""},
           {{"http", "http://host/x/a.safetensors/"}, "http://host/x/", "a.safetensors"},
           {{"http", "http://host/x/"}, "http://host/x/", ""}}) {
    SourceAddress address = one.given;
    EXPECT_EQ(TakeFileName(&address), one.file) << one.given.place;
    EXPECT_EQ(address.place, one.place);
    EXPECT_EQ(address.scheme, one.given.scheme);
  }
}

TEST(CheckpointLayoutTest, TextsGoIntoTheIndexOrTheFile) {
  const SafetensorsMetadata texts = {{"epoch", "3"}, {"a \"b\"", "c"}};
  const std::vector<CheckpointTensor> tensors = {Tensor("a", 8), Tensor("b", 8)};
  const auto one = LayOutCheckpoint(tensors, 1 << 20, "0123", texts).value();
  EXPECT_THAT(one.files[0].header, HasSubstr(R"("epoch":"3")"));
  const auto two = LayOutCheckpoint(tensors, 32, "0123", texts).value();
  ASSERT_THAT(two.files, SizeIs(2));
  EXPECT_THAT(two.files[0].header, Not(HasSubstr("epoch")));
  EXPECT_EQ(two.index->metadata, texts);
  for (const char* own : {"format", "total_size", "sluice_save_id", "epoch"}) {
    const auto wrong = LayOutCheckpoint(tensors, 32, "0123", {{"epoch", "3"}, {own, "4"}});
    EXPECT_THAT(wrong.status().message(), HasSubstr(own));
  }
}

TEST(CheckpointLayoutTest, OneFileHasTheCustomaryNameAndNoIndex) {
  const auto layout = LayOutCheckpoint({Tensor("a", 16), Tensor("b", 8)}, 96, "0123").value();
  ASSERT_THAT(layout.files, SizeIs(1));
  EXPECT_EQ(layout.files[0].name, "model.safetensors");
  EXPECT_FALSE(layout.index.has_value());
  EXPECT_THAT(layout.files[0].header, SizeIs(4096));
  EXPECT_THAT(layout.files[0].header, HasSubstr(R"("sluice_save_id":"0123")"));
  EXPECT_EQ(layout.files[0].bytes, 4096 + 96);
  EXPECT_EQ(layout.places[0].begin, 4096);
  EXPECT_EQ(layout.places[1].begin, 4096 + 64);
}

TEST(CheckpointLayoutTest, AFileHasAsManyTensorsAsItMayHold) {
  // 40 and 24 bytes fit 64; 80 are more than a file may have, and 4 come after them.
  const auto layout =
      LayOutCheckpoint({Tensor("d", 10), Tensor("c", 6), Tensor("b", 20), Tensor("a", 1)}, 64,
                       "0123")
          .value();
  ASSERT_THAT(layout.files, SizeIs(3));
  const int files[] = {0, 0, 1, 2};
  const int64_t begins[] = {4096, 4136, 4096, 4096};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layout.places[i].file, files[i]) << i;
    EXPECT_EQ(layout.places[i].begin, begins[i]) << i;
  }
  EXPECT_EQ(layout.files[1].name, "model-00002-of-00003.safetensors");
  EXPECT_EQ(layout.files[1].bytes, 4096 + 80);
  ASSERT_TRUE(layout.index.has_value());
  EXPECT_EQ(layout.index->total_bytes, 148);
  EXPECT_EQ(layout.index->save_id, "0123");
  ASSERT_THAT(layout.index->files, SizeIs(3));
  EXPECT_EQ(layout.index->files[2], "model-00003-of-00003.safetensors");
  ASSERT_THAT(layout.index->tensors, SizeIs(4));
  EXPECT_EQ(layout.index->tensors[2].tensor, "b");
  EXPECT_EQ(layout.index->tensors[2].file, 1);
}

TEST(CheckpointLayoutTest, ATensorThatIsTooLongForAnyFileHasOneOfItsOwn) {
  const auto layout = LayOutCheckpoint({Tensor("a", 20), Tensor("b", 20)}, 64, "0123").value();
  EXPECT_THAT(layout.files, SizeIs(2));
  EXPECT_EQ(layout.places[0].file, 0);
  EXPECT_EQ(layout.places[1].file, 1);
}

TEST(CheckpointLayoutTest, FilesHaveTheTypeThatIsAskedFor) {
  CheckpointTensor tensor = Tensor("a", 16);
  tensor.file_dtype = DType::kBF16;
  const auto layout = LayOutCheckpoint({tensor, Tensor("b", 4)}, 32, "0123").value();
  ASSERT_THAT(layout.files, SizeIs(2));
  EXPECT_EQ(layout.files[0].bytes, 4096 + 32);
  EXPECT_THAT(layout.files[0].header, HasSubstr(R"("BF16")"));
}

TEST(CheckpointLayoutTest, AScalarHasNoDimensions) {
  CheckpointTensor scalar = Tensor("scalar", 1);
  scalar.shape.clear();
  const auto layout = LayOutCheckpoint({scalar, Tensor("one", 1)}, 96, "").value();
  ASSERT_THAT(layout.files, SizeIs(1));
  EXPECT_THAT(layout.files[0].header, HasSubstr(R"("shape":[],)"));
  EXPECT_THAT(layout.files[0].header, HasSubstr(R"("shape":[1],)"));
  EXPECT_EQ(layout.files[0].bytes, 4096 + 8);
}

TEST(CheckpointLayoutTest, BadNamesAreRefused) {
  const auto layout = LayOutCheckpoint({Tensor("a", 1), Tensor("a", 1)}, 64, "0123");
  EXPECT_TRUE(absl::IsInvalidArgument(layout.status())) << layout.status();
}

TEST(CheckpointLayoutTest, EachSaveHasAnIdOfItsOwn) {
  const auto one = NewSaveId();
  const auto other = NewSaveId();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_THAT(*one, SizeIs(kSaveIdBytes));
  EXPECT_EQ(one->find_first_not_of("0123456789abcdef"), one->npos) << *one;
  EXPECT_NE(*one, *other);
}

// Boxes of 1024 bytes on one rank.
CheckpointPlan PlanOf(int64_t boxes) {
  CheckpointPlanTensor tensor;
  tensor.shape = {boxes * 1024};
  tensor.layout = {*Mesh::Create({1}, {0}), {Placement::Replicate()}};
  return {{tensor}, 1024, CheckpointFlow::kLoad, 0};
}

TEST(CheckpointLimitsTest, ABlockHoldsAPieceWhereverItBegins) {
  CheckpointOptions options;
  const auto exact = ResolveCheckpointLimits(options, PlanOf(4), 1).value();
  EXPECT_EQ(exact.block_bytes, 4096);
  EXPECT_EQ(exact.slots, 4);  // as many as there are pieces
  const auto aligned = ResolveCheckpointLimits(options, PlanOf(4), 4096).value();
  EXPECT_EQ(aligned.block_bytes, 8192);
}

TEST(CheckpointLimitsTest, ABudgetWithoutLimitHoldsNothingUp) {
  CheckpointOptions options;
  options.budget_bytes = kNoLimit;
  const auto limits = ResolveCheckpointLimits(options, PlanOf(100), 1).value();
  EXPECT_EQ(limits.slots, 100);
}

TEST(CheckpointLimitsTest, SlotsFitTheBudget) {
  CheckpointOptions options;
  options.budget_bytes = 5 * 4096 + 4095;
  const auto limits = ResolveCheckpointLimits(options, PlanOf(100), 1).value();
  EXPECT_EQ(limits.slots, 5);
  options.slots = 2;
  EXPECT_EQ(ResolveCheckpointLimits(options, PlanOf(100), 1)->slots, 2);
  options.budget_bytes = 8191;
  EXPECT_EQ(ResolveCheckpointLimits(options, PlanOf(100), 4096).status(),
            absl::InvalidArgumentError(
                "budget_bytes 8191 is too small: the least is 8192 (a piece of 1024 bytes at "
                "alignment 4096); piece_bytes makes pieces smaller"));
}

}  // namespace
}  // namespace sluice
