// Opens, takes, checks.
#include "stream/take_all.h"

#include <memory>
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
    SessionOptions session_options;
    session_options.progress_thread = progress_thread;
    session_options.timeout = absl::Minutes(2);
    absl::StatusOr<std::unique_ptr<Session>> session =
        Session::Create(std::move(self.fabric), session_options);
    ASSERT_TRUE(session.ok()) << session.status();
    absl::StatusOr<std::unique_ptr<Stream>> stream =
        OpenDelayedStream(session->get(), options_of(rank), delay);
    ASSERT_TRUE(stream.ok()) << stream.status();
    body(rank, stream->get());
    self.meet();
    stream->reset();
    EXPECT_TRUE((*session)->Close().ok());
  });
}

std::vector<int64_t> TakeAll(Stream* stream, const ShardDir& dir) {
  std::vector<int64_t> items;
  while (true) {
    absl::StatusOr<Lease> lease = stream->Next();
    EXPECT_TRUE(lease.ok()) << lease.status();
    if (!lease.ok() || lease->end()) return items;
    for (int64_t i = 0; i < lease->items(); ++i) {
      dir.Expect(lease->view(i), lease->item(i));
      items.push_back(lease->item(i));
    }
  }
}

std::vector<int64_t> Every(int64_t first, int64_t step, int64_t end) {
  std::vector<int64_t> range;
  for (int64_t i = first; i < end; i += step) range.push_back(i);
  return range;
}

}  // namespace sluice::stream_test
