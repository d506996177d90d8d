// Reports in words.
#include "session/peers/bucket_report.h"

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

std::string StageText(Stage stage) {
  switch (stage) {
    case Stage::kDone:
      return "has done its part of it";
    case Stage::kFailed:
      return "has failed in it";
    case Stage::kCancelled:
      return "has cancelled it";
    default:
      return absl::StrCat("has it in stage ", StageName(stage));
  }
}

ErrorText StateText(uint64_t run, const BucketReport& report) {
  switch (report.state) {
    case BucketState::kUnknown:
      return ErrorText("answers, but does not know of it");
    case BucketState::kRunNotStarted:
      return ErrorText("has not started run ", run, ": ",
                       report.last_run == 0
                           ? std::string("it has started none")
                           : absl::StrCat("the last it has started is ", report.last_run));
    case BucketState::kOtherTransfer:
      return ErrorText("has started transfer ", report.transfer, " as run ", run);
    case BucketState::kNotFed:
      return ErrorText("has not come to it");
    case BucketState::kWaitsForChannel:
      return ErrorText("has not admitted it: its channel is full");
    case BucketState::kWaitsForBudget:
      return ErrorText("has not admitted it: it waits for the budget");
    case BucketState::kWaitsForMemory:
      return ErrorText("has not admitted it: it waits for memory for ",
                       TensorInWords(report.tensor));
    case BucketState::kInStage:
      return ErrorText(StageText(report.stage));
    case BucketState::kNotCalled:
      return ErrorText("answers, and has not called");
    case BucketState::kCalled:
      return ErrorText("has called");
  }
  return ErrorText("gives an answer that this rank does not know");
}

}  // namespace

ErrorText DescribeReport(const BucketQuestion& question, const BucketReport& report,
                         const Silence& silence) {
  ErrorText text = StateText(question.id.fields().run, report);
  if (!report.call.empty()) text.Add(", and waits in ", report.call);
  if (report.oldest.has_value() && *report.oldest != question.id) {
    text.Add("; its oldest bucket is ", report.oldest->ToString());
  }
  if (silence.rank >= 0) {
    text.Add(", held up by ", RankInWords(silence.rank), ", which does not answer");
  }
  return text;
}

}  // namespace sluice
