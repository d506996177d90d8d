// The streams of a random job: opens them, takes items, checks every byte, and goes on elsewhere.
#ifndef SLUICE_TESTS_CHAOS_STREAMS_H_
#define SLUICE_TESTS_CHAOS_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chaos/memory_watch.h"
#include "chaos/verdict.h"
#include "nlohmann/json.hpp"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace sluice::chaos {

// Writes the data sets of a job into `folder`: files of records.
absl::Status MakeDatasets(const nlohmann::json& datasets, const std::string& folder);

class Streams {
 public:
  // `between`: what else the rank has to do while it waits for items; false: it has failed.
  Streams(Session* session, MemoryWatch* watch, Verdict* verdict, const nlohmann::json& job,
          std::string folder, std::function<bool()> between)
      : session_(session),
        watch_(watch),
        verdict_(verdict),
        job_(job),
        folder_(std::move(folder)),
        between_(std::move(between)) {}
  ~Streams();

  // Operations of a job. False: the session has failed. The failure of a stream is its own.
  bool Open(const nlohmann::json& op);
  bool Take(const nlohmann::json& op);
  bool Close(const nlohmann::json& op);
  // Rank 0 cuts a file of a data set short.
  bool Truncate(const nlohmann::json& op);

 private:
  using Item = std::pair<int64_t, int64_t>;  // epoch and number

  struct Open_ {
    std::unique_ptr<Stream> stream;
    const nlohmann::json* spec = nullptr;
    int number = 0;
    size_t dataset = 0;
    int64_t allowed = 0;
    bool failed = false;
    bool ended = false;
    bool truncated = false;
    Lease held;
    std::vector<Item> taken;
  };
  // What all streams of one spec have given out here, over all resumes.
  struct Past {
    std::string cursor;
    std::set<Item> released;
  };

  void CheckItem(Open_* open, const Lease& lease, int64_t i);
  void CheckAll(const Open_& open);
  std::vector<int64_t> Selected(const Open_& open) const;

  Session* const session_;
  MemoryWatch* const watch_;
  Verdict* const verdict_;
  const nlohmann::json& job_;
  const std::string folder_;
  const std::function<bool()> between_;
  std::map<int, Open_> open_;
  std::map<int, Past> past_;
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_STREAMS_H_
