// Opens, takes, checks.
#include "stream/take_all.h"

#include <utility>

#include "gtest/gtest.h"
#include "session/world.h"
#include "sluice/session.h"

namespace sluice::stream_test {

void WithStreams(int ranks, const std::function<StreamOptions(int rank)>& options_of,
                 const std::function<void(int rank, Stream*)>& body, bool progress_thread,
                 const InjectedDelay& delay) {
  session_test::RunRanks(ranks, [&](session_test::Rank& self) {
    const int rank = self.rank;
    auto session = Session::Create(std::move(self.fabric), {.timeout = absl::Minutes(2),
                                                            .progress_thread = progress_thread})
                       .value();
    auto stream = OpenDelayedStream(session.get(), options_of(rank), delay).value();
    body(rank, stream.get());
    self.meet();
    stream.reset();
    EXPECT_TRUE(session->Close().ok());
  });
}

void WithStreams(int ranks, const StreamOptions& options,
                 const std::function<void(int rank, Stream*)>& body, bool progress_thread,
                 const InjectedDelay& delay) {
  WithStreams(
      ranks, [&](int) { return options; }, body, progress_thread, delay);
}

void WithStream(const StreamOptions& options, const std::function<void(Stream*)>& body,
                bool progress_thread, const InjectedDelay& delay) {
  WithStreams(
      1, options, [&](int, Stream* stream) { body(stream); }, progress_thread, delay);
}

void ForEachLease(Stream* stream, const std::function<void(Lease&)>& body) {
  while (true) {
    Lease lease = stream->Next().value();
    if (lease.end()) return;
    body(lease);
  }
}

std::vector<int64_t> TakeAll(Stream* stream, const ShardDir& dir) {
  std::vector<int64_t> items;
  ForEachLease(stream, [&](const Lease& lease) {
    for (int64_t i = 0; i < lease.items(); ++i) {
      dir.Expect(lease.view(i), lease.item(i));
      items.push_back(lease.item(i));
    }
  });
  return items;
}

std::vector<int64_t> Every(int64_t first, int64_t step, int64_t end) {
  std::vector<int64_t> range;
  for (int64_t i = first; i < end; i += step) range.push_back(i);
  return range;
}

}  // namespace sluice::stream_test
