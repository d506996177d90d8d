// Answers on the wire and in memory.
#include "session/peers/watch_record.h"

namespace sluice {

AnswerRecord AnswerOf(uint32_t number, const BucketReport& report, const Silence& silence,
                      const Moves& heard_of, const Lateness& lateness) {
  AnswerRecord record;
  record.number = number;
  record.state = report.state;
  record.stage = report.stage;
  record.has_oldest = report.oldest.has_value();
  record.transfer = report.transfer;
  record.silence = silence;
  record.last_run = report.last_run;
  record.moves = report.moves;
  record.heard_of = heard_of;
  record.lateness = lateness;
  record.oldest = report.oldest.value_or(BucketId());
  record.call = ShortText<kMaxCallBytes>(report.call);
  record.tensor = ShortText<kMaxTensorNameBytes>(report.tensor);
  return record;
}

BucketReport ReportOf(const AnswerRecord& record) {
  BucketReport report;
  report.state = record.state;
  report.stage = record.stage;
  report.last_run = record.last_run;
  report.moves = record.moves;
  report.transfer = record.transfer;
  report.tensor = record.tensor.ToString();
  report.call = record.call.ToString();
  if (record.has_oldest) report.oldest = record.oldest;
  return report;
}

}  // namespace sluice
