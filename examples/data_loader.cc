// A data loader: records stream from files into batches of normalised values, while the ranks of
// the job train. Training stops half-way and goes on from cursors.
//
// The ranks are data-parallel replicas: each gets every size-th record of an order that is shuffled
// anew in each epoch. Every value of every batch is checked.
//
//   mpirun -np 4 data_loader [DIRECTORY for the records]
//   scripts/spawn.sh -n 4 data_loader     # without MPI
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "ranks.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace {

constexpr int kFiles = 4;
constexpr int64_t kRecordsPerFile = 50;
constexpr int64_t kRecordBytes = 4096;
constexpr int64_t kEpochs = 2;

// Byte `at` of a record, as it lies in a file.
uint8_t ByteAt(int64_t record, int64_t at) {
  return static_cast<uint8_t>((record * 131 + at * 7) % 251);
}

bool WriteRecords(const std::string& directory) {
  for (int file = 0; file < kFiles; ++file) {
    std::string bytes;
    for (int64_t i = 0; i < kRecordsPerFile * kRecordBytes; ++i) {
      const int64_t record = file * kRecordsPerFile + i / kRecordBytes;
      bytes.push_back(static_cast<char>(ByteAt(record, i % kRecordBytes)));
    }
    std::ofstream out(directory + "/records-" + std::to_string(file) + ".bin", std::ios::binary);
    if (!out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return false;
  }
  return true;
}

sluice::StreamOptions OptionsOf(const std::string& directory, int rank, int ranks) {
  sluice::StreamOptions options;
  options.source.uri = "file:" + directory;
  options.source.format = sluice::ItemFormat::kRaw;
  options.source.item_bytes = kRecordBytes;
  options.selection.first = rank;
  options.selection.step = ranks;
  options.order.shuffle = true;
  options.order.seed = 17;
  options.order.epochs = kEpochs;
  options.buffers.batch_items = 8;
  options.reads.budget_bytes = int64_t{1} << 20;
  options.buffers.transform =
      sluice::ItemTransform{sluice::DType::kU8, sluice::DType::kF32, 1 / 255.0F, 0};
  return options;
}

// Takes batches until `items` have come, or to the end; returns how many values were wrong, -1
// after an error.
int64_t Train(sluice::Stream* stream, int64_t items) {
  int64_t wrong = 0;
  for (int64_t taken = 0; taken < items;) {
    // Usually no wait: the next batches are read while this one is trained on.
    absl::StatusOr<sluice::Lease> lease = stream->Next();
    if (!lease.ok()) {
      std::fprintf(stderr, "%s\n", lease.status().ToString().c_str());
      return -1;
    }
    if (lease->end()) break;
    taken += lease->items();
    for (int64_t i = 0; i < lease->items(); ++i) {
      const auto* const values = static_cast<const float*>(lease->view(i).data) +
                                 lease->view(i).byte_offset / int64_t{sizeof(float)};
      for (int64_t at = 0; at < kRecordBytes; ++at) {
        const float expected = static_cast<float>(ByteAt(lease->item(i), at)) * (1 / 255.0F);
        if (values[at] != expected) ++wrong;
      }
    }
  }  // a lease that goes gives its memory back
  return wrong;
}

// One part of the job: opens the stream where `cursor` says and takes `items` of it. Afterwards
// `cursor` says where to go on.
int64_t RunPart(examples::Ranks* ranks, sluice::Session* session,
                const sluice::StreamOptions& options, int64_t items, std::string* cursor,
                int64_t* taken) {
  sluice::StreamOptions resumed = options;
  resumed.order.cursor = *cursor;
  absl::StatusOr<std::unique_ptr<sluice::Stream>> stream = OpenStream(session, resumed);
  if (!stream.ok()) {
    std::fprintf(stderr, "%s\n", stream.status().ToString().c_str());
    return -1;
  }
  const int64_t wrong = Train(stream->get(), items);
  *cursor = (*stream)->Cursor();
  *taken += (*stream)->stats().items;
  ranks->Barrier();  // who closes a shared stream early ends it for the others
  return wrong;
}

int Run(const std::string& directory, examples::Ranks* job) {
  const int rank = job->rank();
  const int ranks = job->size();
  absl::StatusOr<std::unique_ptr<sluice::Fabric>> fabric = job->MakeFabric();
  if (!fabric.ok()) return 1;
  auto session = sluice::Session::Create(*std::move(fabric), {});
  if (!session.ok()) {
    std::fprintf(stderr, "%s\n", session.status().ToString().c_str());
    return 1;
  }
  job->SetMeanwhile([&] { (*session)->Poll().IgnoreError(); });
  const sluice::StreamOptions options = OptionsOf(directory, rank, ranks);
  const int64_t half = kFiles * kRecordsPerFile * kEpochs / ranks / 2;
  std::string cursor;
  std::array<int64_t, 2> sums = {0, 0};  // wrong values, items
  for (const int64_t items : {half, INT64_MAX}) {
    const int64_t wrong = RunPart(job, session->get(), options, items, &cursor, &sums[1]);
    sums[0] += wrong;
    if (wrong >= 0) continue;
    job->SetMeanwhile(nullptr);
    return 1;
  }
  for (int64_t& sum : sums) sum = job->Sum(sum);
  job->SetMeanwhile(nullptr);
  const int64_t expected = kFiles * kRecordsPerFile * kEpochs;
  if (rank == 0) {
    std::printf("%lld of %lld records came to %d ranks in %lld epochs, %lld values wrong\n",
                static_cast<long long>(sums[1]), static_cast<long long>(expected), ranks,
                static_cast<long long>(kEpochs), static_cast<long long>(sums[0]));
  }
  return (*session)->Close().ok() && sums[0] == 0 && sums[1] == expected ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::Ranks ranks;
  // Rank 0 writes the records where all can read them.
  std::string directory;  // empty: there are none
  if (ranks.rank() == 0) {
    std::string pattern = std::string(argc > 1 ? argv[1] : "/tmp") + "/records-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr && WriteRecords(pattern)) directory = pattern;
    if (directory.empty()) std::fprintf(stderr, "cannot write records as %s\n", pattern.c_str());
  }
  directory = ranks.AllGather(directory)[0];
  const int failed = directory.empty() ? 1 : Run(directory, &ranks);
  ranks.Barrier();
  std::error_code ignored;
  if (ranks.rank() == 0 && !directory.empty()) std::filesystem::remove_all(directory, ignored);
  return failed;
}
