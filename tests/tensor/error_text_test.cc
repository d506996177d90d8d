// Texts of errors, and the fields that they keep.
#include "tensor/error_text.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sluice/status.h"

namespace sluice {
namespace {

using absl::StatusCode;

// What quoting and reading a text would take for fields.
constexpr char kName[] = "x' of rank 3, bucket 7; tensor \"y\";ranks 1;epoch 5";

ErrorFields FieldsAfterBytes(const ErrorFields& fields, size_t most_bytes) {
  const std::string bytes = FieldBytes(fields, most_bytes);
  EXPECT_LE(bytes.size(), most_bytes);
  return FieldsOf(WithFieldBytes(absl::InternalError("any"), bytes));
}

TEST(ErrorTextTest, WhatATextNamesIsInItsFields) {
  const absl::Status status =
      MakeError(StatusCode::kDataLoss, TensorInWords(3, kName), " of ", NamedRanks({1, 2, 5}), ": ",
                RankInWords(2), " -> ", 7, ", after ", QuotedName("other"));
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(
      status.message(),
      "tensor 3 'x\\' of rank 3, bucket 7; tensor \\\"y\\\";ranks 1;epoch 5' of ranks 1, 2, 5: "
      "rank 2 -> 7, after 'other'");
  EXPECT_EQ(FieldsOf(status), (ErrorFields{.ranks = {1, 2, 5}, .tensor = kName}));
}

TEST(ErrorTextTest, WhatIsNotNamedIsNoField) {
  EXPECT_EQ(FieldsOf(absl::OkStatus()), ErrorFields());
  EXPECT_EQ(FieldsOf(absl::InternalError("tensor 'w' of rank 3")), ErrorFields());
  EXPECT_EQ(FieldsOf(MakeError(StatusCode::kInternal, "/tmp/rank 3: ", 4)), ErrorFields());
  EXPECT_EQ(FieldsOf(MakeError(StatusCode::kInternal, RankInWords(-1))), ErrorFields());
}

TEST(ErrorTextTest, FieldsStayWhereMoreIsSaid) {
  const absl::Status inner =
      DisagreementError("source ", QuotedName(kName), " on ", RankInWords(4));
  const absl::Status outer = MakeError(inner.code(), "Connect failed on ", RankInWords(1), ": ",
                                       inner, "; ", TensorInWords("later"));
  EXPECT_EQ(FieldsOf(outer),
            (ErrorFields{.ranks = {1, 4}, .tensor = kName, .is_disagreement = true}));
  ErrorFields fields = FieldsOf(outer);
  fields.epoch = 12;
  EXPECT_EQ(FieldsOf(MakeError(StatusCode::kAborted, "once more: ", WithFields(outer, fields))),
            fields);
}

TEST(ErrorTextTest, ATensorsNameIsWholeWhereTheTextHasItsBeginning) {
  const std::string name(100, 'n');
  const absl::Status status = MakeError(StatusCode::kNotFound, QuotedName(name));
  EXPECT_EQ(status.message(), "'" + std::string(60, 'n') + "...'");
  EXPECT_EQ(FieldsOf(status).tensor, name);
}

TEST(ErrorTextTest, FieldsCrossAsFewBytes) {
  ErrorFields fields = {.ranks = {0, 1, 2, 5, 4095}, .tensor = kName, .epoch = 12};
  EXPECT_EQ(FieldBytes(fields), std::string("ranks 0-2,5,4095;epoch 12;tensor ") + kName);
  EXPECT_EQ(FieldsAfterBytes(fields, 200), fields);
  fields.tensor = std::string(500, '\0');
  for (int rank = 4098; rank < 5000; rank += 2) fields.ranks.push_back(rank);
  const ErrorFields cut = FieldsAfterBytes(fields, 64);
  EXPECT_EQ(cut.ranks, (std::vector<int>{0, 1, 2, 5, 4095, 4098, 4100, 4102}));
  EXPECT_EQ(cut.epoch, 12);
  EXPECT_EQ(cut.tensor, std::string(16, '\0'));
}

TEST(ErrorTextTest, BytesThatAreNoFieldsAreLeftOut) {
  for (const char* bytes :
       {"any", "ranks 1", "ranks 1;x", "ranks 1-;", "ranks 2-1;", "ranks 0-99999999;",
        "ranks 0-65535,0;", "epoch ;", "disagreement;epoch 1;ranks 1;"}) {
    const ErrorFields fields = FieldsOf(WithFieldBytes(absl::InternalError(""), bytes));
    EXPECT_EQ(fields, bytes == std::string("ranks 1") ? ErrorFields{.ranks = {1}} : ErrorFields())
        << bytes;
  }
}

TEST(RanksTextTest, JoinsNeighbours) {
  EXPECT_EQ(RanksText({}), "");
  EXPECT_EQ(RanksText({7}), "7");
  EXPECT_EQ(RanksText({0, 1}), "0, 1");
  EXPECT_EQ(RanksText({0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(RanksText({3, 0, 1, 5, 6, 7}, kCompactRuns), "3,0-1,5-7");
}

TEST(RanksTextTest, CountsWhatItLeavesOut) {
  EXPECT_EQ(RanksText({0, 1, 2, 5, 7, 8, 9}, {.most_runs = 2}), "0-2, 5 and 3 more");
  EXPECT_EQ(RanksText({0, 1, 2, 5}, {.most_runs = 2}), "0-2, 5");
  EXPECT_EQ(
      FieldsOf(MakeError(StatusCode::kInternal, NamedRanks({0, 1, 2, 5, 7}, {.most_runs = 2})))
          .ranks,
      (std::vector<int>{0, 1, 2, 5}));
}

TEST(OrDieTest, GivesTheValueOrEndsTheProcessWithTheError) {
  EXPECT_EQ(OrDie(absl::StatusOr<int>(7)), 7);
  OrDie(absl::OkStatus());
  EXPECT_EXIT(OrDie(absl::NotFoundError("no such tensor")), testing::ExitedWithCode(1),
              "NOT_FOUND: no such tensor");
  EXPECT_EXIT(OrDie(absl::StatusOr<int>(absl::DataLossError("torn"))), testing::ExitedWithCode(1),
              "DATA_LOSS: torn");
}

}  // namespace
}  // namespace sluice
