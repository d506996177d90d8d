// A loader with worker threads, whose items come in order.
#include <memory>
#include <utility>
#include <vector>

#include "stream/baselines/baseline.h"
#include "stream/baselines/loader_worker.h"
#include "stream/contents.h"

namespace sluice::bench {
namespace {

using Workers = std::vector<std::unique_ptr<LoaderWorker>>;

absl::Status MakeWorkers(const BaselineJob& job, int count, int ahead, Workers* workers) {
  StreamOptions stream = *job.stream;
  stream.source.connections = 1;  // each worker's own
  Catalog catalog;
  if (!stream.source.uri.empty()) {
    auto found = FindCatalog(stream);
    if (!found.ok()) return found.status();
    catalog = *std::move(found);
  }
  for (int w = 0; w < count; ++w) {
    auto opened = OpenBaselineSource(stream, job.delay, catalog, 1);
    if (!opened.ok()) return opened.status();
    const LoaderShare share = {w, count, ahead, job.consumer->wanted()};
    auto worker = LoaderWorker::Make(job, share, *std::move(opened));
    if (!worker.ok()) return worker.status();
    workers->push_back(*std::move(worker));
  }
  return absl::OkStatus();
}

absl::Status ConsumeAll(const BaselineJob& job, const Workers& workers) {
  int64_t position = job.plan.NextPosition(0);
  for (size_t place = 0; !job.consumer->done(); ++place) {
    LoaderWorker& worker = *workers[place % workers.size()];
    bool waited = false;
    if (place > 0) job.consumer->Asked();
    absl::Status status = worker.Take(job.stream->timeout, &waited);
    if (!status.ok()) return status;
    job.consumer->Arrived(waited);
    worker.Consume(position, job.consumer);
    position = job.plan.NextPosition(position + 1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunThreads(const BaselineJob& job, int workers, int ahead, RankOutcome* outcome) {
  job.consumer->Asked();
  Workers made;
  absl::Status status = MakeWorkers(job, workers, ahead, &made);
  if (!status.ok()) return status;
  for (const auto& worker : made) worker->Start();
  status = ConsumeAll(job, made);
  for (const auto& worker : made) worker->Stop();
  for (const auto& worker : made) worker->JoinAndAdd(outcome);
  return status;
}

}  // namespace sluice::bench
