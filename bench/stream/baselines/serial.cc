// One wave of reads at a time: it fills the whole budget, and is consumed before the next begins.
#include "stream/baselines/baseline.h"
#include "stream/baselines/wave.h"

namespace sluice::bench {

absl::Status RunSerial(const BaselineJob& job, RankOutcome* outcome) {
  job.consumer->Asked();
  WaveReader reader(job);
  Wave wave;
  absl::Status status = reader.Open(1);
  while (status.ok() && !job.consumer->done()) {
    status = reader.Fill(0, &wave);
    if (status.ok()) reader.Consume(wave, true);
  }
  reader.AddTo(outcome);
  return status;
}

}  // namespace sluice::bench
