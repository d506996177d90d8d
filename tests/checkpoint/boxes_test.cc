// Checkpoints of tensors that lie in boxes, and calls that a rank's caller has refused.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "sluice/session.h"

namespace sluice {
namespace {

using checkpoint_test::CheckpointDir;
using checkpoint_test::WithSessions;
using testing::HasSubstr;

// Rows 0-3 of eight lie on rank 0, the others on rank 1.
struct HalfRows {
  std::vector<float> memory = std::vector<float>(16, 1.0F);
  CheckpointTensor tensor;

  explicit HalfRows(int rank) {
    tensor.name = "w";
    tensor.shape = {8, 4};
    tensor.layout.boxes = *BoxList::Create({{0, {{{0, 0}, {4, 4}}}}, {1, {{{4, 0}, {4, 4}}}}});
    tensor.view.boxes = {DenseView(memory.data(), {4, 4}, DType::kF32)};
    if (rank == 1) memory.assign(16, 2.0F);
  }
};

using Spoil = std::function<void(int rank, HalfRows* rows, CheckpointOptions* options)>;

// Saves what is good; what `spoil` has changed is then neither saved nor loaded on any rank.
void ExpectBothRefuse(const Spoil& spoil, absl::StatusCode code, const std::string& text,
                      bool load = true) {
  const CheckpointDir dir;
  WithSessions(2, [&](int rank, Session* session) {
    HalfRows good(rank);
    ASSERT_TRUE(SaveCheckpoint(session, dir.path(), {good.tensor}).ok());
    HalfRows bad(rank);
    CheckpointOptions options;
    spoil(rank, &bad, &options);
    absl::Status status = SaveCheckpoint(session, dir.path(), {bad.tensor}, options).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    bad.memory.assign(16, -1.0F);
    if (load) {
      status = LoadCheckpoint(session, dir.uri(), {bad.tensor}, options).status();
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
      EXPECT_EQ(bad.memory, std::vector<float>(16, -1.0F));
    }
    // The checkpoint and the session are as good as before.
    HalfRows again(rank);
    again.memory.assign(16, 0.0F);
    status = LoadCheckpoint(session, dir.uri(), {again.tensor}).status();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(again.memory, std::vector<float>(16, static_cast<float>(rank + 1)));
  });
}

TEST(CheckpointBoxesTest, WhatIsWrongIsSaidOnBothRanks) {
  ExpectBothRefuse(
      [](int rank, HalfRows* rows, CheckpointOptions*) {
        if (rank == 1) rows->tensor.view.boxes.clear();
      },
      absl::StatusCode::kInvalidArgument,
      "rank 1: tensor 'w': views of 0 boxes, but this rank has 1");
  ExpectBothRefuse(
      [](int rank, HalfRows* rows, CheckpointOptions*) {
        if (rank == 0) rows->tensor.view.boxes[0].shape = {4, 3};
      },
      absl::StatusCode::kInvalidArgument, "rank 0: tensor 'w': box 0: view has shape [4,3]");
  ExpectBothRefuse(
      [](int rank, HalfRows* rows, CheckpointOptions*) {
        rows->tensor.layout.boxes = *BoxList::Create({{rank, {{{4 * rank, 0}, {4, 4}}}}});
      },
      absl::StatusCode::kInvalidArgument, "no box of any rank has element", /*load=*/false);
  ExpectBothRefuse(
      [](int rank, HalfRows* rows, CheckpointOptions*) {
        if (rank == 0) return;
        rows->tensor.layout.boxes =
            *BoxList::Create({{0, {{{0, 0}, {8, 4}}}}, {1, {{{4, 0}, {4, 4}}}}});
      },
      absl::StatusCode::kFailedPrecondition, "ranks disagree on the tensors' meshes, ranks or");
  ExpectBothRefuse(
      [](int, HalfRows* rows, CheckpointOptions*) {
        rows->tensor.shape = {7, 4};
      },
      absl::StatusCode::kInvalidArgument, "does not lie in a tensor");
}

TEST(CheckpointBoxesTest, ASaveWantsEachElementFromSomebody) {
  ExpectBothRefuse(
      [](int, HalfRows* rows, CheckpointOptions*) {
        rows->tensor.shape = {8, 5};
      },
      absl::StatusCode::kInvalidArgument, "tensor 'w': no box of any rank has element [0,4]",
      /*load=*/false);
}

TEST(CheckpointBoxesTest, ALoadMayNotWriteOneByteTwice) {
  const CheckpointDir dir;
  WithSessions(2, [&](int rank, Session* session) {
    HalfRows good(rank);
    ASSERT_TRUE(SaveCheckpoint(session, dir.path(), {good.tensor}).ok());
    HalfRows bad(rank);
    bad.tensor.layout.boxes =
        *BoxList::Create({{0, {{{0, 0}, {2, 4}}, {{2, 0}, {2, 4}}}}, {1, {{{4, 0}, {4, 4}}}}});
    if (rank == 0) {
      const TensorView part = DenseView(bad.memory.data(), {2, 4}, DType::kF32);
      bad.tensor.view.boxes = {part, part};
    }
    const absl::Status status = LoadCheckpoint(session, dir.uri(), {bad.tensor}).status();
    EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "share memory"));
  });
}

TEST(CheckpointRefusalTest, ReachesEveryRankWithItsCode) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kUnimplemented}) {
    const CheckpointDir dir;
    WithSessions(2, [&](int rank, Session* session) {
      HalfRows rows(rank);
      const absl::Status why(code, "no such tensor");
      const absl::Status saved = rank == 1
                                     ? session->Refuse("SaveCheckpoint", why)
                                     : SaveCheckpoint(session, dir.path(), {rows.tensor}).status();
      const absl::Status loaded = rank == 1
                                      ? session->Refuse("LoadCheckpoint", why)
                                      : LoadCheckpoint(session, dir.uri(), {rows.tensor}).status();
      for (const absl::Status& status : {saved, loaded}) {
        EXPECT_EQ(status.code(), code) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("failed on rank 1: no such tensor"));
      }
      EXPECT_TRUE(SaveCheckpoint(session, dir.path(), {rows.tensor}).ok());
    });
  }
}

}  // namespace
}  // namespace sluice
