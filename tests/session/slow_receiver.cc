// Transfers and streams with a receiver that polls and asks for nothing.
#include "session/slow_receiver.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/resident_bytes.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "transport/all_ok.h"

namespace sluice::session_test {
namespace {

// Long enough for all of it to cross on any machine. Where it is not, a defect is not seen, but no
// test fails for it.
constexpr std::chrono::milliseconds kPause{700};

// What the process has grown by since it had `before`, after the session was polled for a while and
// nothing else was done with it.
int64_t GrowthWhilePolled(const SlowReceiver& receiver, Session* session, int64_t before) {
  int64_t growth = 0;
  do {
    const auto end = std::chrono::steady_clock::now() + kPause;
    while (std::chrono::steady_clock::now() < end) {
      EXPECT_TRUE(session->Poll().ok());
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    growth = ResidentBytes() - before;
  } while (growth < receiver.awaited_bytes);
  return growth;
}

// A new directory, which rank 0 has made, and has told the others of.
std::string DirectoryOfJob(const Rank& self) {
  std::string path =
      (std::filesystem::temp_directory_path() / "sluice_slow_receiver_XXXXXX").string();
  absl::Status status;
  if (self.rank == 0 && mkdtemp(path.data()) == nullptr) status = absl::ErrnoToStatus(errno, path);
  return GatherIfAllOk(self.fabric.get(), status, path, absl::Minutes(2)).value().front();
}

// Each item's bytes are its number.
void WriteItems(const std::string& directory, int64_t count, int64_t item_bytes) {
  std::ofstream file(directory + "/items", std::ios::binary);
  for (int64_t item = 0; item < count; ++item) {
    const std::string bytes(static_cast<size_t>(item_bytes), static_cast<char>(item % 251));
    file.write(bytes.data(), item_bytes);
  }
  file.close();
  EXPECT_TRUE(file.good()) << directory;
}

int64_t ValueAt(int64_t i) { return i * 0x9E3779B97F4A7C15 + (i >> 7); }

}  // namespace

int64_t GrowthBeforeMemoryComes(Rank& self, const SlowReceiver& receiver) {
  SessionOptions options;
  options.bucket_bytes = receiver.bucket_bytes;
  options.budget_bytes = receiver.budget_bytes;
  options.budget_buckets = static_cast<int>(receiver.budget_bytes / receiver.bucket_bytes);
  options.timeout = absl::Minutes(2);
  const int64_t elements = receiver.total_bytes / 8;
  const TransferSpec spec = {
      .tensors = {Moved("w", {elements}, DType::kI64, MakeLayout({1}, {0}, "R"),
                        MakeLayout({1}, {1}, "R"))}};
  std::vector<int64_t> memory;
  if (self.rank < 2) memory.resize(static_cast<size_t>(elements), -1);
  if (self.rank == 0) {
    for (int64_t i = 0; i < elements; ++i) memory[static_cast<size_t>(i)] = ValueAt(i);
  }
  const TensorView view = DenseView(memory.data(), {elements}, DType::kI64);
  const TensorView none = DenseView(nullptr, {elements}, DType::kI64);
  const std::unique_ptr<Session> session = OpenSession(self, options);
  Transfer* const transfer = session->Compile(spec).value();
  const StartOptions start = {.late_destinations = true};
  const int64_t before = ResidentBytesInUse();
  const auto run = session->Start(transfer, {self.rank == 0 ? view : none}, {none}, start);
  EXPECT_TRUE(run.ok()) << run.status();
  int64_t growth = 0;
  if (self.rank == 1) {
    growth = GrowthWhilePolled(receiver, session.get(), before);
    EXPECT_EQ(session->counters().staging_bytes_peak, 0);
    EXPECT_TRUE(run->Supply(0, view).ok());
  }
  EXPECT_TRUE(run->Wait().ok());
  if (self.rank == 1) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < elements; ++i) wrong += memory[static_cast<size_t>(i)] != ValueAt(i);
    EXPECT_EQ(wrong, 0);
  }
  self.meet();
  EXPECT_TRUE(session->Close().ok());
  return growth;
}

int64_t GrowthWhileAnItemIsHeld(Rank& self, const SlowReceiver& receiver) {
  // All items are of one object, which rank 0 reads for the others.
  const int64_t count = receiver.total_bytes / receiver.bucket_bytes;
  const std::string directory = DirectoryOfJob(self);
  if (self.rank == 0) WriteItems(directory, count, receiver.bucket_bytes);
  self.meet();
  StreamOptions options;
  options.source.uri = absl::StrCat("buffered:", directory);
  options.source.format = ItemFormat::kRaw;
  options.source.item_bytes = receiver.bucket_bytes;
  options.reads.budget_bytes = receiver.budget_bytes;
  options.buffers.count = 1;
  options.timeout = absl::Minutes(2);
  const SessionOptions session_options = {.timeout = absl::Minutes(2)};
  const std::unique_ptr<Session> session = OpenSession(self, session_options);
  // All may be there as soon as the first item is.
  const int64_t before = ResidentBytesInUse();
  auto stream = OpenStream(session.get(), options).value();
  int64_t growth = 0;
  int64_t items = 0;
  while (true) {
    const Lease lease = stream->Next().value();
    if (lease.end()) break;
    ++items;
    const auto expected = static_cast<std::byte>(lease.item() % 251);
    const auto* const data = static_cast<const std::byte*>(lease.view().data);
    EXPECT_EQ(data[0], expected);
    EXPECT_EQ(data[receiver.bucket_bytes - 1], expected);
    if (self.rank == 1 && items == 1) growth = GrowthWhilePolled(receiver, session.get(), before);
  }
  EXPECT_EQ(items, count);
  const int64_t held = stream->stats().budget_bytes_peak;
  EXPECT_LE(held, receiver.budget_bytes);
  stream.reset();
  self.meet();
  if (self.rank == 0) std::filesystem::remove_all(directory);
  EXPECT_TRUE(session->Close().ok());
  return growth;
}

}  // namespace sluice::session_test
